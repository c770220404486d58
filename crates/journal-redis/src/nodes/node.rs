//! One server: its connections, and what they tell.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::durability::Standing;
use crate::feed::{self, Feed, Kind};
use crate::link::{Link, News, Timing, Voice};
use crate::target::Target;

/// Where a node of a cluster is.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

pub(super) struct Node {
    /// `None` for a server that is no node of a cluster.
    pub(super) address: Option<Address>,
    /// For everything that is small and must not wait: appends, transitions, tails, claims.
    pub(super) appends: Arc<Link>,
    /// For what may be large.
    pub(super) reads: Arc<Link>,
    /// What others publish.
    pub(super) feed: Feed,
    /// How it does with the level of what is written there.
    pub(super) standing: Standing,
}

impl Node {
    pub(super) fn is_connected(&self) -> bool {
        let links = [&self.appends, &self.reads];
        links.iter().all(|link| link.connection().is_some())
    }

    /// Why nothing is heard of it, when that has been so for [`DEAF`] while there was a connection.
    pub(super) fn deaf(&self) -> Option<String> {
        if self.appends.age()? < DEAF {
            return None;
        }
        let (since, why) = self.feed.fault()?;
        (since.elapsed() >= DEAF).then_some(why)
    }
}

/// What the connections of all nodes have to tell.
#[derive(Default)]
pub(super) struct Signals {
    /// How often one was made or lost. It is sent anew as well when a slot has moved.
    pub(super) changes: watch::Sender<u64>,
    /// A node has said that a slot is elsewhere. It knows where, so it is the one to ask.
    pub(super) moved: Notify,
    by: Mutex<Option<Address>>,
}

impl Signals {
    fn moved(&self, by: Option<&Address>) {
        // Replaced in one step.
        *self.by.lock().unwrap_or_else(PoisonError::into_inner) = by.cloned();
        self.moved.notify_one();
    }

    /// Who has said so last, since this was asked.
    pub(super) fn moved_by(&self) -> Option<Address> {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        by.take()
    }
}

/// What all nodes have in common.
pub(super) struct Maker {
    pub(super) timing: Timing,
    pub(super) signals: Arc<Signals>,
    pub(super) kind: Kind,
}

impl Maker {
    /// Begins to connect to a node.
    pub(super) fn node(&self, address: Option<Address>, target: Target) -> Arc<Node> {
        let tell = || {
            let (signals, address) = (Arc::clone(&self.signals), address.clone());
            move |news| match news {
                News::Connection => signals.changes.send_modify(|count| *count += 1),
                News::Moved => signals.moved(address.as_ref()),
            }
        };
        let voice = Arc::new(Voice::default());
        let link = |name| {
            let (target, voice) = (target.clone(), Arc::clone(&voice));
            Link::start(name, target, self.timing, Box::new(tell()), voice)
        };
        let (appends, reads) = (Arc::new(link("appends")), Arc::new(link("reads")));
        let options = feed::Options {
            kind: self.kind,
            // The links tell of the server, and the checks when it is only this that does not work.
            is_told: false,
            connect: self.timing.connect,
            idle: self.timing.ping,
            ..feed::Options::default()
        };
        let moved = tell();
        let feed = Feed::telling(
            options,
            move || {
                let target = target.clone();
                async move { target.dial_feed().await }
            },
            move || moved(News::Moved),
        );
        Arc::new(Node {
            address,
            appends,
            reads,
            feed,
            standing: Standing::default(),
        })
    }
}

/// Longer than it takes to make a connection anew, twice.
pub(super) const DEAF: Duration = Duration::from_secs(5);
