//! The servers that hold the journal, and which of them is asked for which slot.
//!
//! Each has two links and a feed, so connections grow with servers and with nothing else. A single server has all
//! slots.

use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use streamweld_journal::Level;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::feed::{self, Feed, Subscription};
use crate::link::{Answer, Code, Confirmed, ConnectError, Failure, Link, Timing};
use crate::slot::Slot;
use crate::target::Target;

/// All of them.
pub(crate) struct Nodes {
    node: Node,
    /// Whoever tells where they are now.
    _watch: Option<AbortOnDropHandle<()>>,
}

/// A server.
struct Node {
    /// For everything that is small and must not wait: appends, transitions, tails, claims.
    appends: Link,
    /// For what may be large.
    reads: Link,
    /// What others publish.
    feed: Feed,
}

impl Node {
    fn start(target: Target, timing: Timing) -> Self {
        let options = feed::Options {
            connect: timing.connect,
            idle: timing.ping,
            ..feed::Options::default()
        };
        let dialled = target.clone();
        let feed = Feed::new(options, move || {
            let target = dialled.clone();
            async move { target.dial_feed().await }
        });
        Self {
            appends: Link::start("appends", target.clone(), timing),
            reads: Link::start("reads", target, timing),
            feed,
        }
    }
}

impl Nodes {
    /// Begins to connect. Its tasks are those of the runtime this is called in, and end with it.
    pub(crate) fn start(target: Target, timing: Timing) -> Self {
        Self {
            _watch: target.watch(),
            node: Node::start(target, timing),
        }
    }

    /// The way of everything that is small and must not wait, to whoever has this slot.
    pub(crate) fn appends(&self, slot: impl Into<Slot>) -> Route<'_> {
        let slot = slot.into();
        Route {
            nodes: self,
            slot,
            way: Way::Appends,
        }
    }

    /// The way of what may be large.
    pub(crate) fn reads(&self, slot: impl Into<Slot>) -> Route<'_> {
        let slot = slot.into();
        Route {
            nodes: self,
            slot,
            way: Way::Reads,
        }
    }

    /// Listens to a channel of this slot.
    pub(crate) fn subscribe(&self, _slot: impl Into<Slot>, channel: String) -> Subscription {
        self.node.feed.subscribe(channel)
    }

    /// Changes whenever a connection that appends go by was made or lost.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.node.appends.connections()
    }

    /// Waits until there are connections, at most `patience`.
    ///
    /// # Errors
    /// Why there are none. It goes on connecting.
    pub(crate) async fn connected(&self, patience: Duration) -> Result<(), ConnectError> {
        let Node { appends, reads, .. } = &self.node;
        let both = async {
            for link in [appends, reads] {
                // The link is alive, so the other end is.
                _ = link.connections().wait_for(|number| *number != 0).await;
            }
        };
        timeout(patience, both).await.map_err(|_| {
            let trouble = appends.trouble().or_else(|| reads.trouble());
            trouble.unwrap_or(ConnectError::TimedOut)
        })
    }
}

/// Which of the two links.
#[derive(Clone, Copy)]
enum Way {
    Appends,
    Reads,
}

/// The way to whoever has a slot. What the calls do and promise stands at [`Link`].
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    nodes: &'a Nodes,
    #[expect(dead_code, reason = "there is one server so far, which has all slots")]
    slot: Slot,
    way: Way,
}

impl Route<'_> {
    pub(crate) fn connection(&self) -> Option<u64> {
        self.link().connection()
    }

    pub(crate) async fn call(&self, command: &Cmd, size: usize) -> Result<Answer<Value>, Failure> {
        self.link().call(command, size).await
    }

    pub(crate) fn call_later(
        &self,
        connection: u64,
        command: Cmd,
        size: usize,
    ) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        self.link().call_later(connection, command, size)
    }

    pub(crate) async fn call_on(
        &self,
        connection: u64,
        commands: &Pipeline,
        size: usize,
    ) -> Result<Vec<Result<Value, Code>>, Failure> {
        self.link().call_on(connection, commands, size).await
    }

    pub(crate) async fn call_all(
        &self,
        commands: &Pipeline,
        size: usize,
    ) -> Result<Answer<Vec<Result<Value, Code>>>, Failure> {
        self.link().call_all(commands, size).await
    }

    pub(crate) async fn confirm(&self, connection: u64, level: Level) -> Confirmed {
        self.link().confirm(connection, level).await
    }

    fn link(&self) -> &Link {
        match self.way {
            Way::Appends => &self.nodes.node.appends,
            Way::Reads => &self.nodes.node.reads,
        }
    }
}
