//! One connection: writes that notice a client that left, waits that do, and ways to cut.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::BytesMut;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    task::yield_now,
    time::timeout,
};

use crate::{Cut, Outcome};

/// What a client sends while an answer is written is kept for the next request, up to this.
const READ_AHEAD: usize = 64 * 1024;

/// A stream that never has to wait gives way to others, and looks for a client that left, after so
/// many writes. Measured to cost nothing; without it one fast client starves a one-thread runtime.
const WRITES_PER_BREATH: u32 = 64;

/// What a connection runs over: TCP, or whatever a simulation has in its place.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the close of it a reset.
    fn reset_on_close(&self);
}

impl Wire for TcpStream {
    fn reset_on_close(&self) {
        // Fails only on a socket that is dead already.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

/// The client left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It closed its side. Like real engines, the mock takes a half-close for a close.
    Closed,
    /// It reset the connection.
    Reset,
}

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self::Reset
    }
}

impl From<Gone> for Outcome {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Closed => Self::ClientClosed,
            Gone::Reset => Self::ClientReset,
        }
    }
}

/// See the module.
pub(crate) struct Io {
    stream: Box<dyn Wire>,
    /// Bytes read and not yet used.
    pub(crate) input: BytesMut,
    writes: u32,
    /// Set when connections that are dropped have to be reset.
    reset_on_drop: Arc<AtomicBool>,
}

impl Io {
    pub(crate) fn new(stream: impl Wire, reset_on_drop: Arc<AtomicBool>) -> Self {
        Self {
            stream: Box::new(stream),
            input: BytesMut::new(),
            writes: 0,
            reset_on_drop,
        }
    }

    /// Reads some more input. `Closed` at its end.
    pub(crate) async fn fill(&mut self) -> Result<(), Gone> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(Gone::Closed),
            _ => Ok(()),
        }
    }

    /// Writes everything, in one write where the socket takes it.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Gone> {
        self.writes += 1;
        if self.writes % WRITES_PER_BREATH == 0 {
            yield_now().await;
            poll_fn(|cx| Poll::Ready(self.look(cx))).await?;
        }
        while !bytes.is_empty() {
            let written = poll_fn(
                |cx| match Pin::new(&mut self.stream).poll_write(cx, bytes) {
                    Poll::Ready(written) => Poll::Ready(written.map_err(Gone::from)),
                    Poll::Pending => match self.look(cx) {
                        Ok(()) => Poll::Pending,
                        Err(gone) => Poll::Ready(Err(gone)),
                    },
                },
            );
            bytes = &bytes[written.await?..];
        }
        Ok(())
    }

    /// Writes everything, also to a client that has closed its half.
    pub(crate) async fn write_on(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Waits for something of ours, or for the client to leave.
    pub(crate) async fn wait<T>(&mut self, ours: impl Future<Output = T>) -> Result<T, Gone> {
        let mut ours = pin!(ours);
        poll_fn(|cx| match ours.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => match self.look(cx) {
                Ok(()) => Poll::Pending,
                Err(gone) => Poll::Ready(Err(gone)),
            },
        })
        .await
    }

    /// Waits until the client leaves.
    pub(crate) async fn silence(&mut self) -> Gone {
        match self.wait(std::future::pending::<()>()).await {
            Ok(()) => Gone::Closed,
            Err(gone) => gone,
        }
    }

    /// Cuts the connection.
    pub(crate) fn cut(self, cut: Cut) {
        if cut == Cut::Rst {
            self.stream.reset_on_close();
        }
    }

    /// Closes in peace: nothing that the client still sends turns the close into a reset that could
    /// destroy what it has not read yet.
    pub(crate) async fn close(mut self) {
        if self.stream.shutdown().await.is_ok() {
            let drain = async {
                loop {
                    self.input.clear();
                    if self.fill().await.is_err() {
                        return;
                    }
                }
            };
            let _ = timeout(Duration::from_secs(1), drain).await;
        }
    }

    /// Takes what the client has sent. Whoever asks is woken by more of it.
    fn look(&mut self, cx: &mut Context<'_>) -> Result<(), Gone> {
        while self.input.len() < READ_AHEAD {
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => return Err(Gone::Closed),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [0; 4 * 1024];
        let mut read = ReadBuf::new(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.input.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").finish_non_exhaustive()
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        if self.reset_on_drop.load(Ordering::Acquire) {
            self.stream.reset_on_close();
        }
    }
}
