//! One TCP connection: writes that notice a client that left, waits that do, and ways to cut.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
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
#[derive(Debug)]
pub(crate) struct Io {
    stream: TcpStream,
    /// Bytes read and not yet used.
    pub(crate) input: BytesMut,
    writes: u32,
    /// Set when connections that are dropped have to be reset.
    reset_on_drop: Arc<AtomicBool>,
}

impl Io {
    pub(crate) fn new(stream: TcpStream, reset_on_drop: Arc<AtomicBool>) -> Self {
        Self {
            stream,
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
            self.look()?;
        }
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = self
                        .stream
                        .ready(self.interest() | Interest::WRITABLE)
                        .await?;
                    if ready.is_readable() {
                        self.look()?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes everything, also to a client that has closed its half.
    pub(crate) async fn write_on(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Waits for something of ours, or for the client to leave.
    pub(crate) async fn wait<T>(&mut self, ours: impl Future<Output = T>) -> Result<T, Gone> {
        tokio::pin!(ours);
        loop {
            tokio::select! {
                biased;
                done = &mut ours => return Ok(done),
                ready = self.stream.readable(), if self.input.len() < READ_AHEAD => ready?,
            }
            self.look()?;
        }
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
            // Fails only on a socket that is dead already.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
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

    /// Takes what the client sent, without waiting.
    fn look(&mut self) -> Result<(), Gone> {
        while self.input.len() < READ_AHEAD {
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Err(Gone::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn interest(&self) -> Interest {
        if self.input.len() < READ_AHEAD {
            Interest::READABLE
        } else {
            Interest::WRITABLE
        }
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        if self.reset_on_drop.load(Ordering::Acquire) {
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}
