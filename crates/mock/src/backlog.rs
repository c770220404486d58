//! A listener whose accept queue is full: the kernel answers no further handshake.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
};

use socket2::{Domain, Socket, Type};

/// A port to which connecting hangs, as on a server that is too busy to accept. Until it is
/// dropped; then connecting is refused.
#[derive(Debug)]
pub struct FullBacklog {
    addr: SocketAddr,
    _listener: Socket,
    /// The one connection that a queue of length 0 takes.
    _filling: TcpStream,
}

impl FullBacklog {
    /// Listens on a free loopback port and fills its queue.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub fn bind() -> io::Result<Self> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        listener.listen(0)?;
        let addr = listener.local_addr()?.as_socket();
        let addr = addr.ok_or_else(|| io::Error::other("the listener has no address"))?;
        // On loopback the kernel completes this by itself, so it does not block.
        let filling = TcpStream::connect(addr)?;
        Ok(Self {
            addr,
            _listener: listener,
            _filling: filling,
        })
    }

    /// The port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}
