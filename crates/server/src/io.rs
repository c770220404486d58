//! A client's connection: writes that must make progress, and an end that cannot be taken for a proper one.

mod idle;

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use idle::Idle;

/// Breaks a connection when it is dropped, if armed.
///
/// HTTP/1.0 has no framing that could be left unfinished: only a reset tells its client that a body is short.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaker(Option<Arc<AtomicBool>>);

impl Breaker {
    /// A breaker that does nothing: the protocol has a way of its own.
    pub(crate) fn inert() -> Self {
        Self(None)
    }

    pub(crate) fn arm(&self) {
        if let Some(armed) = &self.0 {
            armed.store(true, Ordering::Release);
        }
    }
}

/// A TCP connection of a client.
#[derive(Debug)]
pub(crate) struct ClientIo {
    stream: TcpStream,
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    opening: Option<Opening>,
    idle: Idle,
    reset: Arc<AtomicBool>,
}

/// Up to here, pieces to be written are put together first: one plain write of so few bytes costs less than the
/// kernel's work on a list of pieces. An event with its chunk framing is three pieces and some 300 bytes.
const SMALL: usize = 4 << 10;

thread_local! {
    static TOGETHER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How long a client may take to show which HTTP it speaks: the HTTP implementation measures heads, but only once it
/// knows that, so a client that says nothing, or half of the preface of HTTP/2, would stay for ever.
#[derive(Debug)]
struct Opening {
    read: usize,
    late: Pin<Box<Sleep>>,
}

/// What an HTTP/2 client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Opening {
    /// Takes what was read; whether the version is known now.
    fn is_over(&mut self, read: &[u8]) -> bool {
        let rest = &PREFACE[self.read..];
        self.read += read.len();
        read.is_empty() || read.len() >= rest.len() || !rest.starts_with(read)
    }
}

impl ClientIo {
    pub(crate) fn new(
        stream: TcpStream,
        write_timeout: Duration,
        header_timeout: Duration,
    ) -> Self {
        Self {
            stream,
            write_timeout,
            stalled: None,
            opening: Some(Opening {
                read: 0,
                late: Box::pin(sleep_until(Instant::now() + header_timeout)),
            }),
            idle: Idle::default(),
            reset: Arc::default(),
        }
    }

    /// Resets this connection at its end, once armed.
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker(Some(Arc::clone(&self.reset)))
    }

    /// Gives up on a peer that takes nothing: a write that stays pending for the write timeout is an error.
    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let after = self.write_timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + after)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for ClientIo {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Acquire) {
            // A linger of zero makes the close a reset. Where it fails, the close is a plain one.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let Self { stream, idle, .. } = &mut *self;
        let read = idle.poll(cx, |cx| Pin::new(stream).poll_read(cx, buf));
        let Some(opening) = &mut self.opening else {
            return read;
        };
        if read.is_pending() {
            return opening
                .late
                .as_mut()
                .poll(cx)
                .map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        if opening.is_over(&buf.filled()[before..]) {
            self.opening = None;
        }
        read
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = bufs.iter().map(|buf| buf.len()).sum();
        let stream = Pin::new(&mut self.stream);
        let written = if length <= SMALL && bufs.len() > 1 {
            TOGETHER.with_borrow_mut(|together| {
                together.clear();
                bufs.iter().for_each(|buf| together.extend_from_slice(buf));
                stream.poll_write(cx, together)
            })
        } else {
            stream.poll_write_vectored(cx, bufs)
        };
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.load(Ordering::Acquire) {
            // A FIN now would look like a proper end; dropping the connection resets it.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
