//! A relay in front of a Redis that reads what is sent to it, so that a story can stop the world at one command.

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
    let halt = watch::Sender::new(None);
    tokio::select! {
        ended = commands(from_client, to_server, &shared, &halt) => ended,
        ended = answers(from_server, to_client, &shared, &halt) => ended,
    }
}

async fn commands(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    halt: &watch::Sender<Option<Halt>>,
) -> io::Result<()> {
    let mut buf = Vec::new();
    while from.read_buf(&mut buf).await? > 0 {
        while let Some(length) = command_length(&buf) {
            let found = shared.halt_of(&buf[..length]);
            // Before the server can answer.
            halt.send_replace(found);
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

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    halt: &watch::Sender<Option<Halt>>,
) -> io::Result<()> {
    let (queue, mut queued) = mpsc::channel::<(Instant, Vec<u8>)>(1024);
    let read = async {
        loop {
            let mut some = Vec::with_capacity(64 << 10);
            if from.read_buf(&mut some).await? == 0 {
                return io::Result::Ok(());
            }
            let due = Instant::now() + shared.delay;
            // The other end is beside this one.
            _ = queue.send((due, some)).await;
        }
    };
    let write = async {
        while let Some((due, some)) = queued.recv().await {
            if !shared.delay.is_zero() {
                sleep_until(due).await;
            }
            let halt = *halt.borrow();
            if matches!(halt, Some(Halt::Before | Halt::Unanswered)) {
                pending::<()>().await;
            }
            to.write_all(&some).await?;
            if halt == Some(Halt::Answered) {
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

/// Whether a command, as it stands on the wire, is of this name.
#[must_use]
pub fn is_command(wire: &[u8], name: &str) -> bool {
    let head = number(wire, 0, b'*').and_then(|(_, at)| number(wire, at, b'$'));
    head.is_some_and(|(length, at)| {
        let named = wire.get(at..at + length);
        named.is_some_and(|named| named.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// How long the command at the front is, once it is whole: `*2 CRLF $4 CRLF LLEN CRLF $1 CRLF k CRLF`.
fn command_length(buf: &[u8]) -> Option<usize> {
    let (parts, mut at) = number(buf, 0, b'*')?;
    for _ in 0..parts {
        let (length, start) = number(buf, at, b'$')?;
        at = start + length + 2;
    }
    (at <= buf.len()).then_some(at)
}

/// The number behind `mark` at `at`, and where the line behind it begins.
fn number(buf: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let line = buf.get(at..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    assert_eq!(line[0], mark, "a command is an array of strings");
    let number = std::str::from_utf8(&line[1..end]).ok()?.parse().ok()?;
    Some((number, at + end + 2))
}
