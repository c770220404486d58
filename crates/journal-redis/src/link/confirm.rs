//! Waiting until what was written on a connection is on replicas, or on disk.
//!
//! `WAIT` and `WAITAOF` count from the last write of their own connection, and hold up everything that is sent behind
//! them there. So they go by the connection of the writes, and at most one is under way on each: whoever asks in the
//! meantime shares the next, and whoever asks has had the answer to its write, so the next one covers it. One task of
//! the link sends them. While the level is not reached, each of them waits for a fifth of its time only: what comes
//! behind is a claim, a tail, a new log, and a replica that comes back is found soon enough.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use streamweld_journal::Level;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::failure::{Code, Failure};

/// What a confirmation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// The level is reached.
    Yes,
    /// The server cannot say: it has no `WAITAOF`, or not for us. It has the write in its memory.
    Unsupported,
    /// The server says that it is not, not in time.
    Below,
    /// There is no answer.
    Unknown,
}

/// The handle of the task.
pub(super) struct Confirmer {
    asked: mpsc::Sender<Ask>,
    _task: AbortOnDropHandle<()>,
}

struct Ask {
    connection: u64,
    level: Level,
    told: oneshot::Sender<Confirmed>,
}

impl Confirmer {
    /// The task ends with the handle.
    pub(super) fn start(shared: Arc<Shared>) -> Self {
        let (asked, asks) = mpsc::channel(QUEUE);
        let task = Rounds {
            shared,
            asks,
            missed: false,
            has_waitaof: None,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.run()));
        Self { asked, _task: task }
    }

    pub(super) async fn confirm(&self, connection: u64, level: Level) -> Confirmed {
        let (told, confirmed) = oneshot::channel();
        let ask = Ask {
            connection,
            level,
            told,
        };
        if self.asked.send(ask).await.is_err() {
            return Confirmed::Unknown;
        }
        confirmed.await.unwrap_or(Confirmed::Unknown)
    }
}

struct Rounds {
    shared: Arc<Shared>,
    asks: mpsc::Receiver<Ask>,
    /// The last round did not reach its level.
    missed: bool,
    /// Whether the server at the other end of this connection has `WAITAOF`.
    has_waitaof: Option<(u64, bool)>,
}

impl Rounds {
    async fn run(mut self) {
        let mut asks = Vec::new();
        while self.asks.recv_many(&mut asks, QUEUE).await > 0 {
            while let Some(Ask {
                connection, level, ..
            }) = asks.first()
            {
                let (connection, level) = (*connection, *level);
                let confirmed = self.round(connection, level).await;
                // Those of another connection have a round of their own, which may find it gone.
                let (these, others) = asks
                    .into_iter()
                    .partition(|ask| ask.connection == connection && ask.level == level);
                asks = others;
                let these: Vec<Ask> = these;
                for ask in these {
                    // Whoever asked may have gone.
                    _ = ask.told.send(confirmed);
                }
            }
        }
    }

    async fn round(&mut self, connection: u64, level: Level) -> Confirmed {
        let whole = self.shared.timing.answer / 2;
        let patience = if self.missed { whole / 5 } else { whole };
        let confirmed = match level {
            Level::Async => Confirmed::Yes,
            Level::Replicated(replicas) => {
                let mut command = redis::cmd("WAIT");
                command.arg(replicas.get()).arg(millis(patience));
                reached(self.count(connection, &command).await, replicas.get())
            }
            Level::Fsync => match self.has_waitaof(connection).await {
                Some(true) => {
                    let mut command = redis::cmd("WAITAOF");
                    command.arg(1).arg(0).arg(millis(patience));
                    reached(self.count(connection, &command).await, 1)
                }
                Some(false) => Confirmed::Unsupported,
                None => Confirmed::Unknown,
            },
        };
        self.missed = confirmed == Confirmed::Below;
        confirmed
    }

    /// The first number of the answer. Both commands say what was reached, also when that is not enough.
    async fn count(&self, connection: u64, command: &Cmd) -> Result<Option<u64>, Failure> {
        let answer = self.shared.call(Some(connection), command, 0).await?;
        let first = match answer.value {
            Value::Array(numbers) => numbers.into_iter().next(),
            number => Some(number),
        };
        Ok(match first {
            Some(Value::Int(count)) => u64::try_from(count).ok(),
            _ => None,
        })
    }

    async fn has_waitaof(&mut self, connection: u64) -> Option<bool> {
        if let Some((of, has)) = self.has_waitaof {
            if of == connection {
                return Some(has);
            }
        }
        // Waits for nothing, so it is answered at once.
        let mut probe = redis::cmd("WAITAOF");
        probe.arg(0).arg(0).arg(0);
        let send = async |mut connection: redis::aio::MultiplexedConnection| {
            connection.send_packed_command(&probe).await
        };
        let answer = self.shared.exchange(Some(connection), 0, send).await;
        let has = match answer.map(|answer| answer.value) {
            Ok(Value::ServerError(error)) => match Code::of(&error) {
                // The checks tell of it.
                code if code.is("ERR") || code.is("NOPERM") => false,
                // Whatever the server is doing, it knows the command then.
                code => {
                    self.shared.refused(connection, code);
                    true
                }
            },
            Ok(_) | Err(Failure::Refused(_)) => true,
            Err(Failure::NotSent | Failure::Unanswered) => return None,
        };
        self.has_waitaof = Some((connection, has));
        Some(has)
    }
}

fn reached(count: Result<Option<u64>, Failure>, wanted: u8) -> Confirmed {
    match count {
        Ok(Some(count)) if count >= u64::from(wanted) => Confirmed::Yes,
        // `WAITAOF` is an error without an append-only file.
        Ok(_) | Err(Failure::Refused(_)) => Confirmed::Below,
        Err(Failure::NotSent | Failure::Unanswered) => Confirmed::Unknown,
    }
}

fn millis(time: Duration) -> u64 {
    // Zero would wait for ever.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Askers that wait for the next round without a turn; beyond them one waits for it.
const QUEUE: usize = 1024;
