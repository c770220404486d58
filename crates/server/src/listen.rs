//! Where connections of clients come from.
//!
//! TCP, except where a simulation has listeners of its own. What only a socket can be asked for is asked of a socket:
//! any other stream has no buffer in a kernel and uses up no descriptor.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A listener.
pub trait Listen: Send + 'static {
    /// What it accepts.
    type Stream: Stream;

    /// Waits for the next connection.
    ///
    /// # Errors
    /// That connection has failed, or there is no room for one.
    ///
    /// # Cancel safety
    /// No connection is lost.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system does not say.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// A connection of a client, in the clear.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The socket that it is.
    fn socket(&self) -> Option<BorrowedFd<'_>>;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        TcpListener::accept(self)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}

impl Stream for TcpStream {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}
