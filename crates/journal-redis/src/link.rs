//! One connection to Redis that recovers, and calls over it that never lie about their outcome.
//!
//! A call goes out once, on the connection there is, or not at all; nothing here repeats a command, and no call waits
//! for a new connection. A keeper, one task for each link, connects in the background and asks for a sign of life
//! when nobody else has. A connection is given up when the socket fails, when several calls in a row have no answer
//! (a wave of calls that time out together is one), and when the server says that it is the wrong one or does not
//! know us (any more). Credentials and address are looked up anew for each connection.
//!
//! Connections are numbered, those of all links together, so that a caller knows when what it has seen was seen on
//! another one. Redis handles the commands of one connection in their order, so what is read on it was read after
//! everything sent on it before.
//!
//! That holds only while it has the same data. A server that is demoted, takes the data of another, and is promoted
//! again keeps its connections, and all that can be over within two milliseconds. So each connection asks to be told
//! (`CLIENT TRACKING`) when all data is put away: the word comes on the connection itself, before the answers to
//! whatever is done on the new data. From then on it counts as another connection, and what was sent on the old one
//! is as if it had no answer. It costs nothing, and does not depend on any time.

mod confirm;
mod failure;
mod keeper;
mod state;
mod voice;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use streamweld_journal::Level;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::target::Target;

pub(crate) use confirm::Confirmed;
use confirm::Confirmer;
pub use failure::ConnectError;
pub(crate) use failure::{Code, Failure};
use state::State;
pub(crate) use voice::Voice;

/// Deadlines of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a call may take, apart from the time that much data needs. Shorter finds a dead server sooner, longer
    /// forgives a busy one. The default of one second is far above what an append takes.
    pub answer: Duration,
    /// How long connecting may take, with name lookup, TLS and credentials.
    pub connect: Duration,
    /// How long a server may be loading its data before another address is looked for.
    pub loading: Duration,
    /// How often a connection that is not used is asked for a sign of life.
    pub ping: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(1),
            connect: Duration::from_secs(2),
            loading: Duration::from_secs(10),
            ping: Duration::from_secs(5),
        }
    }
}

/// A handle; the connection is closed with the last one.
pub(crate) struct Link {
    shared: Arc<Shared>,
    confirmer: Confirmer,
    _keeper: Option<AbortOnDropHandle<()>>,
}

/// What a link lets whoever has several of them know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Its connection was made or lost.
    Connection,
    /// The server has said that it does not have what it was asked for (now).
    Moved,
}

pub(crate) type Tell = Box<dyn Fn(News) + Send + Sync>;

struct Shared {
    name: &'static str,
    timing: Timing,
    news: Tell,
    /// Who speaks of it in the log.
    voice: Arc<Voice>,
    state: Mutex<State>,
    /// Wakes the keeper: the connection is given up.
    lost: Notify,
    /// The number of the connection that is up, 0 while none is.
    up: Mutex<u64>,
}

/// An answer and the connection it came on.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) connection: u64,
}

impl Link {
    /// Begins to connect. The keeper is a task of the runtime this is called in, and ends with the link.
    pub(crate) fn start(
        name: &'static str,
        target: Target,
        timing: Timing,
        news: Tell,
        voice: Arc<Voice>,
    ) -> Self {
        let mut link = Self::unconnected(name, timing, news, voice);
        let keeper = tokio::spawn(keeper::keep(Arc::clone(&link.shared), target));
        link._keeper = Some(AbortOnDropHandle::new(keeper));
        link
    }

    /// One that leads to no server.
    pub(crate) fn nowhere(timing: Timing) -> Self {
        Self::unconnected("nowhere", timing, Box::new(|_| {}), Arc::default())
    }

    fn unconnected(name: &'static str, timing: Timing, news: Tell, voice: Arc<Voice>) -> Self {
        let shared = Arc::new(Shared {
            name,
            timing,
            news,
            voice,
            state: Mutex::default(),
            lost: Notify::new(),
            up: Mutex::default(),
        });
        let confirmer = Confirmer::start(Arc::clone(&shared));
        Self {
            shared,
            confirmer,
            _keeper: None,
        }
    }

    /// The number of the connection that is up; `None` while there is none.
    pub(crate) fn connection(&self) -> Option<u64> {
        let up = *self
            .shared
            .up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Some(up).filter(|number| *number != 0)
    }

    /// How long the connection has been up.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.shared.lock().age()
    }

    /// Why there is no connection, as far as that is known.
    pub(crate) fn trouble(&self) -> Option<ConnectError> {
        self.shared.lock().trouble.clone()
    }

    /// Waits until everything that was answered on this connection before has reached `level`. It takes the
    /// time of two answers at most: of a round that is under way, and of its own.
    pub(crate) async fn confirm(&self, connection: u64, level: Level) -> Confirmed {
        self.confirmer.confirm(connection, level).await
    }

    /// Sends one command of about `size` bytes.
    pub(crate) async fn call(&self, command: &Cmd, size: usize) -> Result<Answer<Value>, Failure> {
        self.shared.call(None, command, size).await
    }

    /// One command of about `size` bytes, on the connection of this number and no other. It is sent by the first poll,
    /// behind everything that was sent before; a connection whose queue is full is the exception.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it may or may not be sent.
    pub(crate) fn call_later(
        &self,
        connection: u64,
        command: Cmd,
        size: usize,
    ) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        async move {
            let answer = shared.call(Some(connection), &command, size).await;
            answer.map(|_| ())
        }
    }

    /// Sends several commands together, on the connection of this number and no other. Each has its own answer; a
    /// failure is one of all of them. The answers are given only while the number is still that of the connection.
    pub(crate) async fn call_on(
        &self,
        connection: u64,
        commands: &Pipeline,
        size: usize,
    ) -> Result<Vec<Result<Value, Code>>, Failure> {
        let answer = self.shared.pipeline(Some(connection), commands, size);
        let answer = answer.await?;
        // That the data was put away is heard before the answer to what was done after it.
        if self.shared.lock().number() != connection {
            return Err(Failure::Unanswered);
        }
        Ok(answer.value)
    }

    /// The same on whatever connection there is.
    pub(crate) async fn call_all(
        &self,
        commands: &Pipeline,
        size: usize,
    ) -> Result<Answer<Vec<Result<Value, Code>>>, Failure> {
        self.shared.pipeline(None, commands, size).await
    }
}

/// One command on a connection of its own, which is closed then.
pub(crate) async fn ask(
    target: &Target,
    timing: &Timing,
    command: &Cmd,
) -> Result<Value, ConnectError> {
    let mut connected = keeper::connect(target, timing, || {}).await?;
    let answer = connected.connection.send_packed_command(command);
    let answer = timeout(timing.answer, answer).await;
    match answer.map_err(|_| ConnectError::TimedOut)? {
        Ok(Value::ServerError(error)) => Err((&error).into()),
        answer => answer.map_err(RedisError::into),
    }
}

impl Shared {
    async fn call(
        &self,
        only: Option<u64>,
        command: &Cmd,
        size: usize,
    ) -> Result<Answer<Value>, Failure> {
        let send = async |mut connection: redis::aio::MultiplexedConnection| {
            connection.send_packed_command(command).await
        };
        let answer = self.exchange(only, size, send).await?;
        match answer.value {
            Value::ServerError(error) => Err(Failure::Refused(
                self.refused(answer.connection, Code::of(&error)),
            )),
            value => Ok(Answer { value, ..answer }),
        }
    }

    async fn pipeline(
        &self,
        only: Option<u64>,
        commands: &Pipeline,
        size: usize,
    ) -> Result<Answer<Vec<Result<Value, Code>>>, Failure> {
        let count = commands.len();
        let send = async |mut connection: redis::aio::MultiplexedConnection| {
            connection.send_packed_commands(commands, 0, count).await
        };
        let answer = self.exchange(only, size, send).await?;
        if answer.value.len() != count {
            self.lock().give_up(answer.connection);
            self.tell();
            return Err(Failure::Unanswered);
        }
        let each = answer.value.into_iter().map(|value| match value {
            Value::ServerError(error) => Err(self.refused(answer.connection, Code::of(&error))),
            value => Ok(value),
        });
        Ok(Answer {
            value: each.collect(),
            connection: answer.connection,
        })
    }

    /// One exchange over the connection there is, within its deadline.
    async fn exchange<T>(
        &self,
        only: Option<u64>,
        size: usize,
        send: impl AsyncFnOnce(redis::aio::MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<Answer<T>, Failure> {
        let Some((connection, number)) = self.lock().connection() else {
            return Err(Failure::NotSent);
        };
        if only.is_some_and(|only| only != number) {
            return Err(Failure::NotSent);
        }
        let began = Instant::now();
        let deadline = self.timing.answer + Duration::from_secs((size / SLOWEST) as u64);
        let outcome = timeout(deadline, send(connection)).await;
        let failure = match outcome {
            Ok(Ok(value)) => {
                self.lock().answered(number);
                return Ok(Answer {
                    value,
                    connection: number,
                });
            }
            Ok(Err(error)) => match error.code() {
                Some(code) => Failure::Refused(self.refused(number, Code::new(code))),
                None => {
                    tracing::debug!(link = self.name, %error, "a call to Redis failed");
                    self.lock().give_up(number);
                    Failure::Unanswered
                }
            },
            Err(_) => {
                if self.lock().missed(number, began) {
                    self.voice.trouble(self.name, &ConnectError::TimedOut);
                }
                Failure::Unanswered
            }
        };
        self.tell();
        Err(failure)
    }

    /// The server has put away the data that it had on the connection that began with this number.
    fn emptied(&self, first: u64) {
        if self.lock().emptied(first) {
            tracing::warn!(link = self.name, "Redis has other data than before");
            self.tell();
        }
    }

    fn refused(&self, connection: u64, code: Code) -> Code {
        let trouble = self.lock().refused(connection, &code, self.timing.loading);
        if let Some(trouble) = trouble {
            self.voice.trouble(self.name, &trouble);
        } else if !code.is("NOSCRIPT") {
            // That it does not know a script yet is how one is made known.
            self.voice.refuses(self.name, &code);
        }
        if code.is("MOVED") || code.is("CLUSTERDOWN") {
            (self.news)(News::Moved);
        }
        self.tell();
        code
    }

    /// Lets everybody know when the connection is gone.
    fn tell(&self) {
        let (is_changed, is_lost) = {
            let mut up = self.up.lock().unwrap_or_else(PoisonError::into_inner);
            // Looked up in here: of two that tell at once, the later one must not tell what the earlier one knew, or a
            // connection that is up would be taken for none until it is lost.
            let number = self.lock().number();
            let is_changed = std::mem::replace(&mut *up, number) != number;
            (is_changed, is_changed && number == 0)
        };
        if is_lost {
            self.lost.notify_one();
        }
        if is_changed {
            (self.news)(News::Connection);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is whole before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes a second that any network between us and Redis carries: a healed suffix of 16 MiB gets some seconds more.
const SLOWEST: usize = 4 << 20;
