//! A connection between two requests.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Waker};

use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};

use crate::transport::Transport;

/// An open HTTP/1.1 connection that nothing uses.
pub(crate) struct Connection {
    pub(super) io: Transport,
    /// The most bytes of a response head.
    pub(super) max_head: usize,
}

impl Connection {
    pub(crate) fn new(io: Transport, max_head: usize) -> Self {
        Self { io, max_head }
    }

    /// Whether the peer has neither closed it nor said anything. What it said would be taken for
    /// the answer to a request that was not made.
    ///
    /// The kernel is asked first: it knows of an end that the runtime has not heard of yet, which
    /// is common when a peer closes right behind its answer. The runtime is asked as well, because
    /// it may be gone, and because bytes under TLS need not mean anything (session tickets).
    pub(crate) fn is_quiet(&mut self) -> bool {
        if let Some(socket) = self.io.tcp() {
            let mut byte = [MaybeUninit::uninit()];
            match SockRef::from(socket).peek(&mut byte) {
                Ok(1) if self.io.is_tls() => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return false,
            }
        }
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        let read = Pin::new(&mut self.io).poll_read(&mut cx, &mut ReadBuf::new(&mut byte));
        read.is_pending()
    }
}
