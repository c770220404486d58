//! The servers that hold the journal, and which of them is asked for which slot.
//!
//! Each has two links and a feed, so connections grow with servers and with nothing else. A single server has all
//! slots. In a cluster a task keeps the [`Map`] of them; see [`keeper`]. Slots may move at any time, and the map may be
//! behind: a node that does not have a slot does nothing and says so.

mod keeper;
mod listener;
mod map;
mod node;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use streamweld_journal::Level;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::feed::Kind;
use crate::link::{Answer, Code, ConnectError, Failure, Link, Timing};
use crate::slot::Slot;
use crate::target::Target;

use keeper::Keeper;
pub(crate) use listener::Listener;
use map::Map;
use node::{Maker, Node, Signals};

/// All of them.
pub(crate) struct Nodes {
    map: Arc<watch::Sender<Map>>,
    signals: Arc<Signals>,
    /// Why the map is not known, as far as that is.
    trouble: Arc<Mutex<Option<ConnectError>>>,
    /// Where slots lead that no node is known to have.
    nowhere: Arc<Link>,
    kind: Kind,
    timing: Timing,
    /// Who keeps the map, if it can change.
    keeper: Option<AbortOnDropHandle<()>>,
    /// Whoever tells where a server is now.
    _watch: Option<AbortOnDropHandle<()>>,
}

impl Nodes {
    /// Begins to connect. Its tasks are those of the runtime this is called in, and end with it.
    pub(crate) fn start(target: Target, timing: Timing) -> Self {
        let watch = target.watch();
        let signals = Arc::new(Signals::default());
        let trouble = Arc::default();
        let maker = Maker {
            timing,
            signals: Arc::clone(&signals),
            kind: if target.seeds().is_some() {
                Kind::Sharded
            } else {
                Kind::Plain
            },
        };
        let kind = maker.kind;
        let (map, keeper) = match target.seeds() {
            None => {
                let node = maker.node(None, target);
                (Arc::new(watch::Sender::new(Map::of_one(node))), None)
            }
            Some(seeds) => {
                let map = Arc::new(watch::Sender::new(Map::default()));
                let keeper = Keeper {
                    seeds,
                    target,
                    maker,
                    map: Arc::clone(&map),
                    trouble: Arc::clone(&trouble),
                };
                let task = tokio::spawn(keeper.keep());
                (map, Some(AbortOnDropHandle::new(task)))
            }
        };
        Self {
            map,
            signals,
            trouble,
            nowhere: Arc::new(Link::nowhere(timing)),
            kind,
            timing,
            keeper,
            _watch: watch,
        }
    }

    /// The way of everything that is small and must not wait, to whoever has this slot.
    pub(crate) fn appends(&self, slot: impl Into<Slot>) -> Route<'_> {
        self.route(slot.into(), Way::Appends)
    }

    /// The way of what may be large.
    pub(crate) fn reads(&self, slot: impl Into<Slot>) -> Route<'_> {
        self.route(slot.into(), Way::Reads)
    }

    fn route(&self, slot: Slot, way: Way) -> Route<'_> {
        let nodes = self;
        Route { nodes, slot, way }
    }

    /// Listens to a channel of this slot, wherever that is.
    pub(crate) fn subscribe(&self, slot: impl Into<Slot>, channel: String) -> Listener {
        Listener::new(self.map.subscribe(), slot.into(), channel.into())
    }

    /// The command by which its listeners are told something. In a cluster it has to go to the slot of the channel.
    pub(crate) fn publish(&self) -> &'static str {
        match self.kind {
            Kind::Plain => "PUBLISH",
            Kind::Sharded => "SPUBLISH",
        }
    }

    /// For each server the way of what is small, by a slot that it has.
    pub(crate) fn each(&self) -> Vec<Route<'_>> {
        let slots = self.map.borrow().homes();
        slots.into_iter().map(|slot| self.appends(slot)).collect()
    }

    /// There is a server for every slot, and a connection to it that appends go by.
    pub(crate) fn is_whole(&self) -> bool {
        self.map.borrow().is_whole()
    }

    /// Why some server is not listened to, when that has been so for a while though there is a connection to it.
    pub(crate) fn deaf(&self) -> Option<String> {
        self.map
            .borrow()
            .nodes()
            .iter()
            .find_map(|node| node.deaf())
    }

    /// All servers are listened to.
    pub(crate) fn hears(&self) -> bool {
        let map = self.map.borrow();
        map.nodes().iter().all(|node| node.feed.fault().is_none())
    }

    /// Waits until all servers that are known now are listened to.
    pub(crate) async fn heard(&self) {
        let nodes = self.map.borrow().nodes().to_vec();
        for node in nodes {
            node.feed.sound().await;
        }
    }

    /// What was written last at some server has not reached its level.
    pub(crate) fn is_missed(&self) -> bool {
        let map = self.map.borrow();
        map.nodes().iter().any(|node| node.standing.is_missed())
    }

    /// Some server cannot say whether it has reached the level.
    pub(crate) fn is_unsupported(&self) -> bool {
        let map = self.map.borrow();
        map.nodes()
            .iter()
            .any(|node| node.standing.is_unsupported())
    }

    /// Changes whenever a connection was made or lost, and counts those; or whenever a slot has moved.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.signals.changes.subscribe()
    }

    /// Waits until there are connections to all nodes, at most `patience`.
    ///
    /// # Errors
    /// Why there are none. It goes on connecting.
    pub(crate) async fn connected(&self, patience: Duration) -> Result<(), ConnectError> {
        let mut changes = self.changes();
        let connected = async {
            while !self.map.borrow().is_connected() {
                // The sender is in `signals`.
                _ = changes.changed().await;
            }
        };
        timeout(patience, connected).await.map_err(|_| {
            let trouble = self.map.borrow().trouble();
            let trouble = trouble.or_else(|| keeper::lock(&self.trouble).clone());
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

impl Way {
    fn of(self, node: &Node) -> &Arc<Link> {
        match self {
            Self::Appends => &node.appends,
            Self::Reads => &node.reads,
        }
    }
}

/// The way to whoever has a slot. What the calls promise stands at [`Link`]; beyond that, a single command that was
/// told that the slot has moved, and so has done nothing, is sent once more, to where it has moved to. One that is
/// bound to a connection is not.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    nodes: &'a Nodes,
    slot: Slot,
    way: Way,
}

impl Route<'_> {
    pub(crate) fn connection(&self) -> Option<u64> {
        self.link().connection()
    }

    pub(crate) async fn call(&self, command: &Cmd, size: usize) -> Result<Answer<Value>, Failure> {
        let link = self.link();
        match link.call(command, size).await {
            Err(Failure::Refused(code)) if code.is("MOVED") && self.nodes.keeper.is_some() => {
                let moved = timeout(self.nodes.timing.answer, self.other_than(&link)).await;
                match moved {
                    Ok(link) => link.call(command, size).await,
                    Err(_) => Err(Failure::Refused(code)),
                }
            }
            answer => answer,
        }
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

    /// Whether everything that was answered on this connection before is at the level, after waiting for that.
    pub(crate) async fn reaches(&self, connection: u64, level: Level) -> bool {
        let Some(node) = self.node() else {
            return false;
        };
        let confirmed = self.way.of(&node).confirm(connection, level).await;
        node.standing.stands(level, confirmed)
    }

    /// Whether both lead to the same connection now, which keeps the order of what is sent.
    pub(crate) fn is_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link(), &other.link())
    }

    fn link(&self) -> Arc<Link> {
        let node = self.node();
        let link = node.as_ref().map(|node| self.way.of(node));
        Arc::clone(link.unwrap_or(&self.nodes.nowhere))
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.nodes.map.borrow().node(self.slot).map(Arc::clone)
    }

    /// Waits until the slot is elsewhere, and that can be asked.
    async fn other_than(&self, known: &Arc<Link>) -> Arc<Link> {
        let mut changes = self.nodes.changes();
        loop {
            let link = self.link();
            if !Arc::ptr_eq(&link, known) && link.connection().is_some() {
                return link;
            }
            // The sender is in `signals`.
            _ = changes.changed().await;
        }
    }
}
