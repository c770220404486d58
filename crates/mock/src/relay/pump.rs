//! One direction of a relayed connection.

use std::{
    io,
    net::Shutdown,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use socket2::SockRef;
use tokio::{net::TcpStream, sync::watch, time::sleep};

use super::{Direction, RelayStep, Shared};
use crate::Cut;

/// How a direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PumpEnd {
    /// It was closed, and the other may go on.
    Closed,
    /// The whole connection is to be cut.
    Cut(Cut),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    shared: &'a Arc<Shared>,
    passed: &'a AtomicU64,
    paused: watch::Receiver<bool>,
    piece: usize,
    every: Duration,
    bytes_per_second: Option<u32>,
}

/// What is done to bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treat {
    Pass,
    Discard,
    Flip,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        from: &'a TcpStream,
        to: &'a TcpStream,
        shared: &'a Arc<Shared>,
        direction: Direction,
    ) -> Self {
        Self {
            from,
            to,
            shared,
            passed: shared.counter(direction),
            paused: shared.paused.subscribe(),
            piece: usize::MAX,
            every: Duration::ZERO,
            bytes_per_second: None,
        }
    }

    /// Takes the steps, then passes on what is left.
    pub(super) async fn run(mut self, steps: Vec<RelayStep>) -> PumpEnd {
        for step in steps {
            let ended = match step {
                RelayStep::Pass(count) => self.flow(count, Treat::Pass).await,
                RelayStep::Discard(count) => self.flow(count, Treat::Discard).await,
                RelayStep::Flip(count) => self.flow(count, Treat::Flip).await,
                RelayStep::Delay(span) => {
                    sleep(span).await;
                    None
                }
                RelayStep::Gate(name) => {
                    self.shared.gates.pass(&name).await;
                    None
                }
                RelayStep::Split { bytes, every } => {
                    self.piece = bytes.max(1);
                    self.every = every;
                    None
                }
                RelayStep::Throttle(rate) => {
                    self.bytes_per_second = Some(rate.max(1));
                    None
                }
                RelayStep::HalfClose => {
                    self.close();
                    self.flow(u64::MAX, Treat::Discard).await
                }
                RelayStep::Stop => std::future::pending().await,
                RelayStep::Cut(cut) => Some(PumpEnd::Cut(cut)),
            };
            if let Some(end) = ended {
                return end;
            }
        }
        self.flow(u64::MAX, Treat::Pass)
            .await
            .unwrap_or(PumpEnd::Closed)
    }

    /// Takes `count` bytes; an end when the source ended before.
    async fn flow(&mut self, mut count: u64, treat: Treat) -> Option<PumpEnd> {
        let mut buf = vec![0; 16 * 1024];
        while count > 0 {
            let most = usize::try_from(count).unwrap_or(usize::MAX).min(buf.len());
            let size = match self.read(&mut buf[..most]).await {
                Ok(0) => {
                    self.close();
                    return Some(PumpEnd::Closed);
                }
                Ok(size) => size,
                Err(_) => return Some(PumpEnd::Cut(Cut::Rst)),
            };
            count -= size as u64;
            let bytes = &mut buf[..size];
            match treat {
                Treat::Pass => {}
                Treat::Discard => continue,
                Treat::Flip => bytes.iter_mut().for_each(|byte| *byte = !*byte),
            }
            if self.pieces(bytes).await.is_err() {
                return Some(PumpEnd::Cut(Cut::Rst));
            }
        }
        None
    }

    async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            self.from.readable().await?;
            if self.paused.wait_for(|paused| !paused).await.is_err() {
                return Ok(0);
            }
            match self.from.try_read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    async fn pieces(&self, bytes: &[u8]) -> io::Result<()> {
        // A throttled flow is cut small enough to be smooth: ten writes a second at the least.
        let smooth = self
            .bytes_per_second
            .map_or(usize::MAX, |rate| (rate as usize / 10).max(1));
        for piece in bytes.chunks(self.piece.min(smooth)) {
            self.write(piece).await?;
            self.passed.fetch_add(piece.len() as u64, Ordering::AcqRel);
            self.shared.changed.send_replace(());
            if !self.every.is_zero() {
                sleep(self.every).await;
            }
            if let Some(rate) = self.bytes_per_second {
                sleep(Duration::from_secs_f64(
                    piece.len() as f64 / f64::from(rate),
                ))
                .await;
            }
        }
        Ok(())
    }

    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.to.writable().await?;
            match self.to.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the other side that nothing more comes.
    fn close(&self) {
        // Fails only on a socket that is gone, which is as closed as can be.
        let _ = SockRef::from(self.to).shutdown(Shutdown::Write);
    }
}
