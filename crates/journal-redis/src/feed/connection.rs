//! The task that makes the connection, keeps it, and makes it again.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::fault::{Code, Fault};
use super::registry::{Order, Registry};
use super::resp::{Reply, command, parse};
use super::{Kind, Link, Login, Options};

/// Keeps a connection for as long as it is polled. When it ends, which is when it is dropped, so does every
/// subscription.
pub(super) async fn run<C, F, S>(
    registry: Arc<Registry>,
    options: Options,
    connect: C,
    moved: impl Fn(),
) where
    C: Fn() -> F,
    F: Future<Output = io::Result<Link<S>>>,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let closing = Closing(registry);
    let registry = &*closing.0;
    let mut backoff = options.backoff_min;
    // Whether the log knows that it is lost; a server that is away for long is worth one line.
    let mut told = false;
    loop {
        let fault = match timeout(options.connect, connect()).await {
            Err(_) => Fault::ConnectTimeout,
            Ok(Err(error)) => Fault::unmade(&error),
            Ok(Ok(link)) => {
                let mut connection = Connection::new(registry, &options, &moved, link.stream);
                let fault = select! {
                    fault = connection.serve(link.login, &mut told) => fault,
                    () = link.moved => Fault::Moved,
                };
                // One that was let in, and then refused or cut at once, would be so again.
                if connection.is_proven() {
                    backoff = options.backoff_min;
                }
                registry.lost();
                fault
            }
        };
        registry.fails(fault.to_string());
        if told || !options.is_told {
            debug!(link = options.name, reason = %fault, "no subscription connection");
        } else {
            warn!(link = options.name, reason = %fault, "lost the subscription connection");
            told = true;
        }
        // From half of it to all, so that the replicas do not come at once.
        let wait = backoff / 2 + backoff.mul_f64(random_part() / 2.0);
        select! {
            () = sleep(wait) => {}
            () = registry.renewal() => {}
        }
        backoff = (backoff * 2).min(options.backoff_max);
    }
}

/// The commands of a kind of channel, and the words with which they are answered.
struct Words {
    subscribe: &'static [u8],
    unsubscribe: &'static [u8],
    subscribed: &'static [u8],
    unsubscribed: &'static [u8],
    message: &'static [u8],
}

const PLAIN: Words = Words {
    subscribe: b"SUBSCRIBE",
    unsubscribe: b"UNSUBSCRIBE",
    subscribed: b"subscribe",
    unsubscribed: b"unsubscribe",
    message: b"message",
};

const SHARDED: Words = Words {
    subscribe: b"SSUBSCRIBE",
    unsubscribe: b"SUNSUBSCRIBE",
    subscribed: b"ssubscribe",
    unsubscribed: b"sunsubscribe",
    message: b"smessage",
};

struct Connection<'a, M, S> {
    registry: &'a Registry,
    options: &'a Options,
    moved: &'a M,
    words: &'static Words,
    stream: S,
    input: BytesMut,
    output: BytesMut,
    /// The answers that the server owes, in their order. One for each channel at most, and one beside.
    owed: VecDeque<Owed>,
    /// When the first of them was asked for.
    asked: Instant,
    /// When the server last said anything.
    heard: Instant,
    /// It has answered, so it is not loading and we are let in.
    ready: bool,
    /// When it had every channel that was wanted for the first time.
    sound: Option<Instant>,
    /// When to ask again for the channels whose slots it does not have.
    again: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owed {
    Login,
    Ready,
    Pong,
    Channel(Bytes),
}

impl<'a, M: Fn(), S: AsyncRead + AsyncWrite + Unpin> Connection<'a, M, S> {
    fn new(registry: &'a Registry, options: &'a Options, moved: &'a M, stream: S) -> Self {
        let now = Instant::now();
        Self {
            registry,
            options,
            moved,
            words: match options.kind {
                Kind::Plain => &PLAIN,
                Kind::Sharded => &SHARDED,
            },
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            owed: VecDeque::new(),
            asked: now,
            heard: now,
            ready: false,
            sound: None,
            again: None,
        }
    }

    /// Works until it cannot go on.
    async fn serve(&mut self, login: Option<Login>, told: &mut bool) -> Fault {
        self.log_in(login);
        loop {
            if let Err(fault) = self.turn().await {
                return fault;
            }
            if self.sound.is_none() && self.ready && self.owed.is_empty() {
                self.settle();
            }
            if *told && self.is_proven() {
                info!(
                    link = self.options.name,
                    "the subscription connection is back"
                );
                *told = false;
            }
        }
    }

    /// Whether there is nothing left to be refused.
    fn settle(&mut self) {
        if self.registry.is_settled() {
            self.sound = Some(Instant::now());
            self.registry.works();
        }
    }

    /// Whether it has worked for a while.
    fn is_proven(&self) -> bool {
        self.sound.is_some_and(|since| since.elapsed() >= PROVEN)
    }

    fn log_in(&mut self, login: Option<Login>) {
        if let Some(Login { username, password }) = login {
            let password = password.as_bytes();
            match &username {
                Some(username) => self.ask(Owed::Login, &[b"AUTH", username.as_bytes(), password]),
                None => self.ask(Owed::Login, &[b"AUTH", password]),
            }
        }
        // A server that loads its data lets one subscribe, but answers this with an error. Whoever is told
        // `Renewed` reads at once, so it is to be ready.
        self.ask(Owed::Ready, &[b"PING"]);
    }

    async fn turn(&mut self) -> Result<(), Fault> {
        self.write().await?;
        // Silence that is too long: of a server that owes something, or of one that is to be asked.
        let silent = match self.owed.front() {
            Some(_) => self.asked.max(self.heard) + self.options.answer,
            None => self.heard + self.options.idle,
        };
        self.input.reserve(READ);
        // In this order: orders are few, and what can be read is heard before silence is judged, also when this
        // process itself stood still.
        select! {
            biased;
            () = self.registry.renewal() => Err(Fault::Renewal),
            () = self.registry.changed(), if self.ready => {
                self.give_orders();
                Ok(())
            }
            read = self.stream.read_buf(&mut self.input) => {
                if read? == 0 {
                    return Err(Fault::Closed);
                }
                self.heard = Instant::now();
                self.hear()
            }
            () = sleep_until(self.again.unwrap_or(silent)), if self.again.is_some() => {
                self.again = None;
                self.registry.again();
                Ok(())
            }
            () = sleep_until(silent) => {
                if !self.owed.is_empty() {
                    return Err(Fault::Silent);
                }
                self.ask(Owed::Pong, &[b"PING"]);
                Ok(())
            }
        }
    }

    fn give_orders(&mut self) {
        for order in self.registry.orders(ORDERS) {
            // One command for each, so that each answer belongs to one command, and because channels of
            // different slots may not share one.
            let (word, name) = match &order {
                Order::Subscribe(name) => (self.words.subscribe, name),
                Order::Unsubscribe(name) => (self.words.unsubscribe, name),
            };
            self.ask(Owed::Channel(name.clone()), &[word, name]);
        }
    }

    fn ask(&mut self, owed: Owed, parts: &[&[u8]]) {
        if self.owed.is_empty() {
            self.asked = Instant::now();
        }
        self.owed.push_back(owed);
        command(&mut self.output, parts);
    }

    async fn write(&mut self) -> Result<(), Fault> {
        if self.output.is_empty() {
            return Ok(());
        }
        let written = async {
            self.stream.write_all_buf(&mut self.output).await?;
            self.stream.flush().await
        };
        // Redis reads also while nobody reads what it sends, so this cannot wait for ourselves.
        timeout(self.options.answer, written)
            .await
            .map_err(|_| Fault::Silent)??;
        Ok(())
    }

    /// Takes in every reply that is complete.
    fn hear(&mut self) -> Result<(), Fault> {
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while let Some((reply, length)) = parse(&input[at..], self.options.message_bytes)? {
            self.reply(&reply)?;
            at += length;
        }
        input.advance(at);
        if input.is_empty() && input.capacity() > KEPT {
            // What one large message needed is not kept for ever.
            input = BytesMut::new();
        }
        self.input = input;
        Ok(())
    }

    fn reply(&mut self, reply: &Reply<'_>) -> Result<(), Fault> {
        match reply {
            Reply::Told {
                what,
                about,
                message,
            } => self.told(what, about, message),
            Reply::Line(line) => match (self.owed.pop_front(), *line) {
                (Some(Owed::Login), b"OK") | (Some(Owed::Pong), b"PONG") => Ok(()),
                (Some(Owed::Ready), b"PONG") => {
                    self.get_ready();
                    Ok(())
                }
                _ => Err(Fault::Unexpected),
            },
            Reply::Error(error) => match (self.owed.pop_front(), Code::of(error)) {
                // Any answer is a sign of life.
                (Some(Owed::Pong), _) => Ok(()),
                // A server with a full disk says so even to a `PING`. It can be read and listened to.
                (Some(Owed::Ready), code) if code.is("MISCONF") => {
                    self.get_ready();
                    Ok(())
                }
                (Some(Owed::Channel(name)), code) if code.is_of_slot() => {
                    self.elsewhere(&name);
                    Ok(())
                }
                (_, code) => Err(Fault::Refused(code)),
            },
        }
    }

    fn told(&mut self, what: &[u8], about: &[u8], message: &[u8]) -> Result<(), Fault> {
        let is_owed =
            |owed: Option<&Owed>| matches!(owed, Some(Owed::Channel(name)) if name == about);
        let is_answer = if what == self.words.message {
            self.registry.message(about, message)?;
            return Ok(());
        } else if what == self.words.subscribed {
            self.registry.subscribed(about)?;
            is_owed(self.owed.front())
        } else if what == self.words.unsubscribed {
            if !is_owed(self.owed.front()) && self.options.kind == Kind::Sharded {
                // Unasked, it says that the slot of a channel has moved.
                self.elsewhere(about);
                return Ok(());
            }
            self.registry.unsubscribed(about)?;
            is_owed(self.owed.front())
        } else if what == b"pong" {
            self.owed.front() == Some(&Owed::Pong)
        } else {
            false
        };
        if !is_answer {
            return Err(Fault::Unexpected);
        }
        self.owed.pop_front();
        Ok(())
    }

    fn elsewhere(&mut self, channel: &[u8]) {
        self.registry.elsewhere(channel);
        self.again.get_or_insert_with(|| Instant::now() + AGAIN);
        (self.moved)();
    }

    fn get_ready(&mut self) {
        self.ready = true;
        self.registry.connected();
    }
}

struct Closing(Arc<Registry>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A number from 0 to 1. Each state of the standard hasher has keys of its own.
fn random_part() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

/// When a channel is asked for again that the server does not have. Most are left before that: who
/// listens goes elsewhere.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a connection has to work before a loss is one that can be made good at once, and is told again.
const PROVEN: Duration = Duration::from_secs(1);

/// How many commands go out before the answers are looked at again. Some 60 KiB.
const ORDERS: usize = 1024;

const READ: usize = 16 << 10;

/// How much memory for reading is kept between messages.
const KEPT: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_differ() {
        let parts: Vec<_> = (0..9).map(|_| random_part()).collect();
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
        assert!(parts.iter().any(|part| *part != parts[0]));
    }
}
