//! What others publish: one connection to Redis for all channels that this replica listens to.
//!
//! A [`Subscription`] hears the messages of its channel in order, and [`Heard::Renewed`] whenever it may have
//! missed some: at its start, after the connection was made again, and after it did not keep up. Redis keeps no
//! message for anybody, so whoever is told reads what was written meanwhile. A message that was published after
//! what it tells of was written is thus never lost, but may be heard of twice.
//!
//! One task owns the connection and ends with the [`Feed`]. It makes a lost connection again, as often as needed,
//! and notices a flow that was cut without a word, because silence is answered with a `PING` that has a deadline.
//! Nothing waits for a listener: each has a bounded mailbox, and one that overflows is emptied into a single
//! [`Heard::Renewed`]. What listeners want is a table and not a queue of commands, so nothing grows while the
//! server is away.
//!
//! It speaks RESP2 itself. The client library hands messages over in an unbounded queue and knows no sharded
//! channels; what is left of the protocol here is small.

mod connection;
mod fault;
mod mailbox;
mod registry;
mod resp;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::mailbox::Mailbox;
use self::registry::Registry;

/// One connection, and what is heard on it.
///
/// Dropping it ends its task, its connection and every [`Subscription`].
#[derive(Debug)]
pub struct Feed {
    registry: Arc<Registry>,
    // When it panics, its subscriptions end.
    _task: AbortOnDropHandle<()>,
}

impl Feed {
    /// A feed over the connections that `connect` makes, the first of them now.
    ///
    /// `connect` is asked again after each loss, so it may look up anew where the server is and what its password
    /// is. Its errors are logged by their kind only, apart from those of this crate.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new<C, F, S>(options: Options, connect: C) -> Self
    where
        C: Fn() -> F + Send + 'static,
        F: Future<Output = io::Result<Link<S>>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self::telling(options, connect, || {})
    }

    /// The same, and calls `moved` when the server says that it does not have the slot of a channel (any more). Who
    /// listens to it hears nothing for as long as that is so; it is asked for again now and then.
    pub(crate) fn telling<C, F, S>(
        options: Options,
        connect: C,
        moved: impl Fn() + Send + Sync + 'static,
    ) -> Self
    where
        C: Fn() -> F + Send + 'static,
        F: Future<Output = io::Result<Link<S>>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let registry = Arc::new(Registry::new(
            options.mailbox_messages,
            options.mailbox_bytes,
        ));
        let task = connection::run(Arc::clone(&registry), options, connect, moved);
        Self {
            registry,
            _task: AbortOnDropHandle::new(tokio::spawn(task)),
        }
    }

    /// Listens to a channel. Any number may listen to the same one.
    ///
    /// It hears [`Heard::Renewed`] first, and nothing before that.
    #[must_use]
    pub fn subscribe(&self, channel: impl Into<Bytes>) -> Subscription {
        let channel = channel.into();
        let mailbox = self.registry.join(&channel);
        Subscription {
            registry: Arc::clone(&self.registry),
            channel,
            mailbox,
        }
    }

    /// Makes the connection again, for whoever learns that it leads to the wrong server.
    pub fn renew(&self) {
        self.registry.renew();
    }

    /// Since when not all channels are listened to that should be, and why; `None` while they are.
    pub(crate) fn fault(&self) -> Option<(Instant, String)> {
        self.registry.fault()
    }

    /// Waits until all channels are listened to that should be.
    pub(crate) async fn sound(&self) {
        self.registry.is_sound().await;
    }

    /// Whether there is a connection that answered.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.registry.is_connected()
    }
}

/// One listener of one channel. When the last of a channel is dropped, the channel is left.
#[derive(Debug)]
pub struct Subscription {
    registry: Arc<Registry>,
    channel: Bytes,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    /// The next that it hears; none after its [`Feed`] was dropped.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Heard> {
        self.mailbox.next().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.registry.leave(&self.channel, &self.mailbox);
    }
}

/// What a [`Subscription`] hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A message. It owns its bytes, and keeps no read buffer alive.
    Message(Bytes),
    /// The subscription stands now, and messages before this one may be missing: read what was written.
    Renewed,
}

/// A new connection, on which nothing was said yet.
pub struct Link<S> {
    /// The bytes, behind TLS where there is some.
    pub stream: S,
    /// How to log in, if needed.
    pub login: Option<Login>,
    /// Ready when it leads to the wrong server by now; never, where nobody can tell.
    pub moved: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Who logs in. Its `Debug` output hides both.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Redis knows users since version 6; without one it is `default`.
    pub username: Option<String>,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Link<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Which channels are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// `PUBLISH`: every node of a cluster hears every message.
    #[default]
    Plain,
    /// `SPUBLISH`, Redis 7: a message stays on the node that has the slot of its channel. The connection must lead
    /// to that node; when the slot moves away, its channels are heard no more, and the others are.
    Sharded,
}

/// The deadlines and bounds of a [`Feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What it is called in logs. `feed`.
    pub name: &'static str,
    /// Whether a loss is a warning in the log, once until it is over; otherwise it is for debugging. `true`.
    pub is_told: bool,
    /// Which channels are meant.
    pub kind: Kind,
    /// How long making a connection may take. `2s`.
    pub connect: Duration,
    /// How long a connection may be silent before it is probed. `5s`. With [`Options::answer`] and one connect it
    /// is the time in which a flow that was cut silently is replaced, and that is to be below ten seconds.
    pub idle: Duration,
    /// How long the server may stay silent while it owes an answer. `2s`. Any byte counts, so a long message on a
    /// slow link is no fault.
    pub answer: Duration,
    /// The first wait before a connection is made again; it doubles up to [`Options::backoff_max`], until one has
    /// worked for a while. `50ms`.
    pub backoff_min: Duration,
    /// The longest wait before a connection is made again, and so how late a server that is back may be noticed.
    /// `1s`.
    pub backoff_max: Duration,
    /// The largest message. A larger one costs the connection. `32MiB`, which is also where Redis gives up on a
    /// subscriber by default.
    pub message_bytes: usize,
    /// How many messages may wait for one listener. `1024`.
    pub mailbox_messages: usize,
    /// How many bytes may wait for one listener, beside one message of any size. `4MiB`. A message is held once,
    /// however many listen.
    pub mailbox_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "feed",
            is_told: true,
            kind: Kind::Plain,
            connect: Duration::from_secs(2),
            idle: Duration::from_secs(5),
            answer: Duration::from_secs(2),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(1),
            message_bytes: 32 << 20,
            mailbox_messages: 1024,
            mailbox_bytes: 4 << 20,
        }
    }
}
