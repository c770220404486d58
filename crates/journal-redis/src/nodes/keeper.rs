//! The task that keeps the map of a cluster.
//!
//! It asks one node which node has which slots: again when a node says that it does not have a slot, and that one
//! before all others, because it knows where the slot went; when a connection is lost; and now and then. A node that
//! has no slots any more loses its connections: if it ever gets some again, what was seen there is not believed, because
//! it may have been somebody's replica meanwhile and have other data.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::map::{self, Map, Served};
use super::node::{Address, Maker, Node};
use crate::link::{self, ConnectError};
use crate::target::Target;

pub(super) struct Keeper {
    /// Whom to ask when no node is known that answers, each with its host.
    pub(super) seeds: Vec<(String, Target)>,
    pub(super) target: Target,
    pub(super) maker: Maker,
    pub(super) map: Arc<watch::Sender<Map>>,
    pub(super) trouble: Arc<Mutex<Option<ConnectError>>>,
}

impl Keeper {
    /// It ends when it is aborted.
    pub(super) async fn keep(self) {
        let mut changes = self.maker.signals.changes.subscribe();
        loop {
            match self.ask().await {
                Ok(told) => self.learn(&told),
                Err(error) => self.complain(error),
            }
            // However many say so, it is asked so often.
            sleep(PAUSE).await;
            let again = Instant::now() + if self.is_whole() { PERIOD } else { SOON };
            tokio::select! {
                () = self.maker.signals.moved.notified() => {}
                () = self.lost(&mut changes) => {}
                () = sleep_until(again) => {}
            }
        }
    }

    /// Waits until a connection is lost that was there.
    async fn lost(&self, changes: &mut watch::Receiver<u64>) {
        let mut was_whole = self.is_whole();
        loop {
            // The sender is in the signals.
            _ = changes.changed().await;
            let is_whole = self.is_whole();
            if was_whole && !is_whole {
                return;
            }
            was_whole = is_whole;
        }
    }

    fn is_whole(&self) -> bool {
        self.map.borrow().is_connected()
    }

    /// Who has which slots, as the first says that knows.
    async fn ask(&self) -> Result<Vec<Served>, ConnectError> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let first = self.maker.signals.moved_by();
        for (node, address) in self.known(first.as_ref()) {
            if let Ok(answer) = node.appends.call(&command, 0).await {
                if let Some(told) = told(answer.value, &address.host) {
                    return Ok(told);
                }
            }
        }
        let mut trouble = ConnectError::Unusable;
        for (host, seed) in &self.seeds {
            match link::ask(seed, &self.maker.timing, &command).await {
                Ok(answer) => match told(answer, host) {
                    Some(told) => return Ok(told),
                    None => trouble = ConnectError::Unusable,
                },
                Err(error) => trouble = error,
            }
        }
        Err(trouble)
    }

    /// The nodes that can be asked, and `first` before all others.
    fn known(&self, first: Option<&Address>) -> Vec<(Arc<Node>, Address)> {
        let map = self.map.borrow();
        let nodes = map.nodes().iter();
        let mut known: Vec<_> = nodes
            .filter(|node| node.appends.connection().is_some())
            .filter_map(|node| Some((Arc::clone(node), node.address.clone()?)))
            .collect();
        known.sort_by_key(|(_, address)| first != Some(address));
        known
    }

    fn learn(&self, told: &[Served]) {
        *lock(&self.trouble) = None;
        let make = |address: &Address| {
            let target = self.target.at(&address.host, address.port);
            self.maker.node(Some(address.clone()), target)
        };
        let next = self.map.borrow().next(told, make);
        let is_news = self.map.send_if_modified(|map| {
            let is_news = *map != next;
            *map = next;
            is_news
        });
        if is_news {
            tracing::debug!("the slots of the Redis cluster are known anew");
            self.maker.signals.changes.send_modify(|_| {});
        }
    }

    fn complain(&self, error: ConnectError) {
        let mut trouble = lock(&self.trouble);
        if trouble.as_ref() != Some(&error) {
            tracing::warn!(%error, "no node of the Redis cluster says who has its slots");
            *trouble = Some(error);
        }
    }
}

/// One that has forgotten all others, or is new, tells of no slots; somebody else may know more.
fn told(answer: Value, asked: &str) -> Option<Vec<Served>> {
    map::read(answer, asked).filter(|told| !told.is_empty())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Replaced in one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long an answer is believed when nothing speaks against it.
const PERIOD: Duration = Duration::from_secs(10);
/// While a node is away: another may take its place.
const SOON: Duration = Duration::from_millis(500);
/// Between two questions: a reshard moves thousands of slots, one after the other.
const PAUSE: Duration = Duration::from_millis(50);
