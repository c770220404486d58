//! One side of a connection.

use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};

use super::Port;
use super::state::Got;
use crate::clock::Moment;

/// See the module.
pub struct Stream {
    port: Port,
    conn: u64,
    side: usize,
    resets: AtomicBool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(port: Port, conn: u64, side: usize) -> Self {
        Self {
            port,
            conn,
            side,
            resets: AtomicBool::new(false),
            timer: None,
        }
    }

    /// Wakes the task at a moment.
    fn wake_at(&mut self, moment: Moment, cx: &mut Context<'_>) {
        let instant = self.port.clock.instant(moment);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(instant)));
        timer.as_mut().reset(instant);
        if timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, most) = (self.port.clock.now(), buf.remaining());
        let (conn, side) = (self.conn, self.side);
        let got = self
            .port
            .net
            .with(|state| state.read(conn, side, most, now, cx.waker()));
        match got {
            Got::Data(data) => {
                buf.put_slice(&data);
                Poll::Ready(Ok(()))
            }
            Got::End => Poll::Ready(Ok(())),
            Got::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Got::Nothing(next) => {
                if let Some(next) = next {
                    self.wake_at(next, cx);
                }
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let now = self.port.clock.now();
        let (conn, side) = (self.conn, self.side);
        let sent = self
            .port
            .net
            .with(|state| state.write(conn, side, buf, now, cx.waker()));
        match sent {
            Ok(Some(sent)) => Poll::Ready(Ok(sent)),
            Ok(None) => Poll::Pending,
            Err(()) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let now = self.port.clock.now();
        let (conn, side) = (self.conn, self.side);
        self.port.net.with(|state| state.shut(conn, side, now));
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let now = Handle::try_current().ok().map(|_| self.port.clock.now());
        let (conn, side, resets) = (self.conn, self.side, self.resets.load(Ordering::Relaxed));
        self.port.net.with(|state| {
            let now = now.unwrap_or(state.round);
            state.drop_side(conn, side, resets, now);
        });
    }
}

impl streamweld_server::listen::Stream for Stream {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl streamweld_mock::Wire for Stream {
    fn reset_on_close(&self) {
        self.resets.store(true, Ordering::Relaxed);
    }
}
