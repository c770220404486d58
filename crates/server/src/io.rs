//! A client's connection: writes that must make progress, and an end that cannot be taken for a proper one.

mod idle;

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use idle::Idle;

use crate::listen::Stream;
use crate::pace::Pace;

/// What a connection is told about the responses that it carries.
///
/// HTTP/1.0 has no framing that could be left unfinished: only a reset tells its client that a body is short. So there
/// it breaks the connection when that is dropped, if armed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaker {
    told: Arc<Told>,
    resets: bool,
}

#[derive(Debug, Default)]
struct Told {
    reset: AtomicBool,
    /// A reader came, and its connection does not know it yet.
    reader: AtomicBool,
}

impl Breaker {
    /// The same for a protocol that has a way of its own to break a body off.
    pub(crate) fn inert(&self) -> Self {
        Self {
            told: Arc::clone(&self.told),
            resets: false,
        }
    }

    pub(crate) fn arm(&self) {
        if self.resets {
            self.told.reset.store(true, Ordering::Release);
        }
    }

    /// The response is that of a reader.
    pub(crate) fn carries_a_reader(&self) {
        self.told.reader.store(true, Ordering::Release);
    }
}

/// How much the kernel is asked to hold for a reader; Linux doubles it, for what it needs itself.
///
/// A socket that was full is writable again only when a third of it is free, and the kernel lets it grow to megabytes: a
/// client that takes a few KiB/s of a long answer would look like one that takes nothing. The kernel of the client adds
/// steps of its own. Measured between two Linux with their defaults, a steady reader makes room once in 190 KB with this
/// size, in 135 KB with half of it or less, and in 370 KB without a bound. It is also what a
/// reader that has stopped keeps in the kernel. At 100 ms to the client, 1.2 MB pass in a second.
const READER_BUFFER: usize = 64 << 10;

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct ClientIo<S: Stream> {
    stream: S,
    /// `None`: what lies below it is watched there.
    pace: Option<Pace>,
    opening: Option<Opening>,
    idle: Idle,
    told: Arc<Told>,
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

impl<S: Stream> ClientIo<S> {
    pub(crate) fn new(stream: S, pace: Option<Pace>, header_timeout: Duration) -> Self {
        Self {
            stream,
            pace,
            opening: Some(Opening {
                read: 0,
                late: Box::pin(sleep_until(Instant::now() + header_timeout)),
            }),
            idle: Idle::default(),
            told: Arc::default(),
        }
    }

    /// The socket that it is.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.stream.socket()
    }

    /// Tells this connection, and resets it at its end once armed.
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker {
            told: Arc::clone(&self.told),
            resets: true,
        }
    }

    /// Bounds what the kernel holds, before the first byte of a reader is written. On a connection that is used again this
    /// stays, whatever comes after.
    fn mind_reader(&self) {
        // Read first: it is set once for a response, and this is asked for every write.
        let told = &self.told.reader;
        if told.load(Ordering::Relaxed) && told.swap(false, Ordering::AcqRel) {
            let Some(socket) = self.stream.socket() else {
                return;
            };
            if let Err(error) = SockRef::from(&socket).set_send_buffer_size(READER_BUFFER) {
                tracing::debug!(%error, "the send buffer of a reader is not to be bounded");
            }
        }
    }

    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match &mut self.pace {
            Some(pace) => pace.watch(written, cx),
            None => written,
        }
    }
}

impl<S: Stream> Drop for ClientIo<S> {
    fn drop(&mut self) {
        if self.told.reset.load(Ordering::Acquire) {
            if let Some(socket) = self.stream.socket() {
                // A linger of zero makes the close a reset. Where it fails, the close is a plain one.
                let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

impl<S: Stream> AsyncRead for ClientIo<S> {
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

impl<S: Stream> AsyncWrite for ClientIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.mind_reader();
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.mind_reader();
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
        if self.told.reset.load(Ordering::Acquire) {
            // A FIN now would look like a proper end; dropping the connection resets it.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
