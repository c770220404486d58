//! A port of a host that accepts connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::{Port, Stream};

/// See the module.
pub struct Listener {
    port: Port,
    number: u16,
    knocked: Arc<Notify>,
}

impl Listener {
    pub(super) fn new(port: Port, number: u16) -> Self {
        let host = port.host;
        let knocked = port.net.with(|state| state.listen(host, number));
        Self {
            port,
            number,
            knocked,
        }
    }

    /// Waits for the next connection.
    ///
    /// # Cancel safety
    /// None is lost.
    pub async fn accept(&self) -> Stream {
        let Port { net, host, clock } = &self.port;
        loop {
            let now = clock.now();
            match net.with(|state| state.accept(*host, self.number, now)) {
                Ok(conn) => return Stream::new(self.port.clone(), conn, 1),
                Err(None) => self.knocked.notified().await,
                Err(Some(next)) => tokio::select! {
                    biased;
                    () = self.knocked.notified() => {}
                    () = sleep_until(clock.instant(next)) => {}
                },
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (host, number) = (self.port.host, self.number);
        self.port.net.with(|state| state.close(host, number));
    }
}

impl streamweld_server::listen::Listen for Listener {
    type Stream = Stream;

    async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        Ok((Self::accept(self).await, self.local_addr()?))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], self.number)))
    }
}
