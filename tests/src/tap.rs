//! A relay in front of a Redis that reads what is sent to it, so that a story can stop the world at one command.

mod framing;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

pub use self::framing::is_command;
use self::framing::{command_length, said};
use crate::client::patience;

/// Where the connection of a command stands still, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The command has not reached the server.
    Before,
    /// The server has the command; its answer is kept back.
    Unanswered,
    /// The answer has been passed on, and nothing else.
    Answered,
}

/// A running relay. It ends with this, and every connection with it.
#[derive(Debug)]
pub struct Tap {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    target: SocketAddr,
    /// How long an answer is on its way.
    delay: Duration,
    rule: Mutex<Option<Rule>>,
    halted: watch::Sender<bool>,
}

/// Whether a command is the one.
type IsIt = Box<dyn Fn(&[u8]) -> bool + Send>;

struct Rule {
    halt: Halt,
    is_it: IsIt,
}

impl Tap {
    /// A relay to a server whose answers take `delay` longer; how many are on their way does not matter.
    ///
    /// # Panics
    /// When a port cannot be had, or the address is none.
    pub async fn start(target: &str, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            target: target.parse().expect("an address"),
            delay,
            rule: Mutex::default(),
            halted: watch::Sender::new(false),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { addr, shared, task }
    }

    /// The URL of a Redis that is here.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    /// Halts at the next command of which `is_it` holds. A command is given as it stands on the wire.
    pub fn halt(&self, halt: Halt, is_it: impl Fn(&[u8]) -> bool + Send + 'static) {
        let is_it = Box::new(is_it);
        *self.shared.lock() = Some(Rule { halt, is_it });
    }

    /// Waits until that has happened.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn halted(&self) {
        let mut halted = self.shared.halted.subscribe();
        let halted = patience(halted.wait_for(|halted| *halted)).await;
        drop(halted.expect("the relay runs"));
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Rule>> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn halt_of(&self, command: &[u8]) -> Option<Halt> {
        let mut rule = self.lock();
        rule.take_if(|rule| (rule.is_it)(command))
            .map(|rule| rule.halt)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(relay(client, Arc::clone(&shared)));
            }
            Some(ended) = connections.join_next() => drop(ended),
        }
    }
}

/// Ends when either side has closed.
async fn relay(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect(shared.target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let halt = watch::Sender::new(None::<At>);
    tokio::select! {
        ended = commands(from_client, to_server, &shared, &halt) => ended,
        ended = answers(from_server, to_client, &shared, &halt) => ended,
    }
}

/// A connection stands still at a command.
#[derive(Clone, Copy)]
struct At {
    halt: Halt,
    /// How many commands came before it, and so how many answers.
    before: usize,
}

async fn commands(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    halt: &watch::Sender<Option<At>>,
) -> io::Result<()> {
    let (mut buf, mut before) = (Vec::new(), 0);
    while from.read_buf(&mut buf).await? > 0 {
        while let Some(length) = command_length(&buf) {
            let found = shared.halt_of(&buf[..length]);
            // Before the server can answer.
            halt.send_replace(found.map(|halt| At { halt, before }));
            before += 1;
            if found != Some(Halt::Before) {
                to.write_all(&buf[..length]).await?;
            }
            if found.is_some() {
                if found != Some(Halt::Answered) {
                    shared.halted.send_replace(true);
                }
                pending::<()>().await;
            }
            buf.drain(..length);
        }
    }
    Ok(())
}

/// What the server says is passed on up to the answer of a command at which it stands still: the commands before it have
/// theirs, in whichever pieces they come.
async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    halt: &watch::Sender<Option<At>>,
) -> io::Result<()> {
    let (queue, mut queued) = mpsc::channel::<(Instant, Vec<u8>, bool)>(1024);
    let read = async {
        let mut buf = Vec::new();
        loop {
            if from.read_buf(&mut buf).await? == 0 {
                return io::Result::Ok(());
            }
            let due = Instant::now() + shared.delay;
            while let Some((length, is_answer)) = said(&buf) {
                let one = buf.drain(..length).collect();
                // The other end is beside this one.
                _ = queue.send((due, one, is_answer)).await;
            }
        }
    };
    let write = async {
        let mut answered = 0;
        while let Some((due, one, is_answer)) = queued.recv().await {
            if !shared.delay.is_zero() {
                sleep_until(due).await;
            }
            let at = *halt.borrow();
            if at.is_some_and(|at| at.halt != Halt::Answered && answered >= at.before) {
                pending::<()>().await;
            }
            let written = to.write_all(&one).await;
            // What has been sent to the server by then gets there, also if whoever sent it is gone.
            if at.is_none() {
                written?;
            }
            answered += usize::from(is_answer);
            if at.is_some_and(|at| at.halt == Halt::Answered && answered > at.before) {
                shared.halted.send_replace(true);
                pending::<()>().await;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        ended = read => ended,
        ended = write => ended,
    }
}
