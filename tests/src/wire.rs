//! Bytes on a connection, for stories about what stands on the wire itself: either end of it, read by hand.

use std::net::SocketAddr;

use streamweld_upstream::Backend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Client, patience};

/// One end of a connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl Wire {
    /// Connects and sends these bytes.
    pub async fn open(client: &Client, bytes: impl AsRef<[u8]>) -> Self {
        Self::from(client.begin(bytes.as_ref()).await)
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// When they cannot be sent.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.stream.write_all(bytes.as_ref());
        patience(sent).await.expect("is sent");
    }

    /// Reads on until `what` has come, and gives everything up to and with it.
    ///
    /// # Panics
    /// When the connection ends first.
    pub async fn until(&mut self, what: impl AsRef<[u8]>) -> String {
        let what = what.as_ref();
        loop {
            let found = self.seen.windows(what.len()).position(|seen| seen == what);
            if let Some(at) = found {
                let rest = self.seen.split_off(at + what.len());
                let seen = std::mem::replace(&mut self.seen, rest);
                return String::from_utf8_lossy(&seen).into_owned();
            }
            let read = patience(self.stream.read_buf(&mut self.seen)).await;
            assert!(
                matches!(read, Ok(1..)),
                "it ended with {:?}",
                String::from_utf8_lossy(&self.seen)
            );
        }
    }

    /// Reads a head.
    pub async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// Everything until the other side closes, or resets.
    pub async fn rest(mut self) -> String {
        while let Ok(1..) = patience(self.stream.read_buf(&mut self.seen)).await {}
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// The connection itself.
    #[must_use]
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Self {
            stream,
            seen: Vec::new(),
        }
    }
}

/// A backend that says what the story says, byte for byte, and hears everything.
#[derive(Debug)]
pub struct RawBackend {
    listener: TcpListener,
    addr: SocketAddr,
}

impl RawBackend {
    /// Listens.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("bound");
        Self { listener, addr }
    }

    /// How a server is told of it.
    ///
    /// # Panics
    /// Never: the URL is a plain one.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let url = format!("http://{}", self.addr);
        Backend::named("llm", url.parse().expect("a plain URL"))
    }

    /// The next connection.
    ///
    /// # Panics
    /// When there is none.
    pub async fn accept(&self) -> Wire {
        let accepted = patience(self.listener.accept()).await;
        Wire::from(accepted.expect("a connection").0)
    }
}
