//! The backend itself: the contract in terms of the other modules.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Access, Admits, Adoption, BodyDigest, Call, Check, Claim, Earlier, Found, Journal, Kept, Key,
    Level, Notice, Open, OpenRefusal, Order, Ordered, Outcome, Refusal, Replica, Seq, StreamId,
    Tail, Unreachable, Usage, Window, Word,
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::checks::{self, Checks, Finding};
use crate::config::Config;
use crate::follow::Followers;
use crate::keys::Keys;
use crate::link::{ConnectError, Failure};
use crate::nodes::Nodes;
use crate::orders::{self, Orders};
use crate::presence::{self, Presence};
use crate::publish::Publishes;
use crate::relay::Peers;
use crate::seldom::Seldom;
use crate::slot::Slot;
use crate::table::Table;
use crate::target::Target;

/// The Redis backend. See the crate.
///
/// It belongs to the Tokio runtime that it was started in: its connections are tasks there, which end with it.
pub struct RedisJournal {
    inner: Arc<Inner>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    replica: Replica,
    pub(crate) nodes: Nodes,
    table: Mutex<Table>,
    pub(crate) followers: Followers,
    pub(crate) orders: Orders,
    pub(crate) publishes: Publishes,
    pub(crate) checks: Checks,
    pub(crate) presence: tokio::sync::Mutex<Presence>,
    pub(crate) peers: Peers,
    /// The last look at the others came to nothing. Kept where there is somebody else to ask.
    pub(crate) away: watch::Sender<bool>,
    /// Whether it is news that others take what is written here.
    fenced: Seldom,
    /// Whether it is news that nothing more may be held here.
    full: Seldom,
}

impl RedisJournal {
    /// Begins to connect; calls are answered as out of reach until that is done. See [`connected`](Self::connected).
    ///
    /// # Panics
    /// Outside of a Tokio runtime, and when the operating system has no random bits to give.
    pub fn start(target: Target, config: Config) -> Self {
        let mut name = [0; 16];
        getrandom::fill(&mut name).expect("the operating system gives random bits");
        let replica = Replica(u128::from_be_bytes(name));
        let nodes = Nodes::start(target, config.timing);
        let channel = config.prefix.orders(replica);
        let subscription = nodes.subscribe(Slot::of(&channel), channel);
        let (orders, looks) = Orders::new();
        let look = config.look;
        let inner = Arc::new(Inner {
            config,
            replica,
            nodes,
            table: Mutex::default(),
            followers: Followers::default(),
            orders,
            publishes: Publishes::default(),
            checks: Checks::default(),
            presence: tokio::sync::Mutex::default(),
            peers: Peers::default(),
            away: watch::Sender::new(false),
            fenced: Seldom::default(),
            full: Seldom::default(),
        });
        let weak = || Arc::downgrade(&inner);
        let changes = || inner.nodes.changes();
        let listener = orders::listen(weak(), subscription, looks, changes());
        let presence = presence::keep(weak(), inner.config.lease, changes());
        let checker = checks::watch(weak(), changes(), look);
        let tasks = [
            tokio::spawn(listener),
            tokio::spawn(presence),
            tokio::spawn(checker),
        ];
        Self {
            inner,
            _tasks: tasks.map(AbortOnDropHandle::new),
        }
    }

    /// Waits until there are connections, at most `patience`.
    ///
    /// # Errors
    /// Why there are none. It goes on connecting.
    pub async fn connected(&self, patience: Duration) -> Result<(), ConnectError> {
        self.inner.nodes.connected(patience).await
    }

    /// What is wrong with the server, or any node of the cluster, when they were looked at for the first time; waits
    /// for that for so long at most. One that is not there, or does not let itself be looked at, is among the findings.
    pub async fn examined(&self, patience: Duration) -> Vec<Finding> {
        self.inner.examined(patience).await.into_iter().collect()
    }

    /// The name of this process in Redis.
    pub fn replica(&self) -> Replica {
        self.inner.replica
    }

    /// The same as it stands in keys and in the log of each replica.
    pub fn name_of_replica(&self) -> String {
        self.inner.owner()
    }
}

impl fmt::Debug for RedisJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisJournal")
            .field("replica", &self.inner.replica)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl Journal for RedisJournal {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn level(&self) -> Option<Level> {
        Some(self.inner.level())
    }

    fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    fn keep(&self, bytes: usize) -> Option<Kept> {
        let total = self.inner.config.total;
        self.inner.table().keep_elsewhere(bytes, total)
    }

    fn open<'a>(
        &'a self,
        window: &'a Arc<Window>,
        owner: &'a Open,
        now: SystemTime,
    ) -> Call<'a, Outcome<OpenRefusal>> {
        Call::under_way(async move {
            let outcome = self.inner.open(window, owner, now).await;
            if outcome == Outcome::Yes {
                window.set_earlier(self.inner.earlier(window.id()));
            }
            outcome
        })
    }

    fn append<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Call<'a, Outcome<Refusal>> {
        let marks = window.marks();
        assert!(
            expected < through && through <= marks.received.max(expected),
            "what is appended is staged"
        );
        assert!(
            marks.terminal.is_none_or(|terminal| through < terminal),
            "a terminal goes through `finish`"
        );
        if window.earlier().is_none() {
            // It begins behind what others wrote, and whoever reads here is given this one.
            window.set_earlier(self.inner.earlier(window.id()));
        }
        Call::under_way(self.inner.append(window, expected, through))
    }

    fn finish<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        _now: SystemTime,
    ) -> Call<'a, Outcome<Refusal>> {
        Call::under_way(self.inner.finish(window, expected))
    }

    fn tail(&self, id: StreamId) -> Call<'_, Result<Tail, Unreachable>> {
        Call::under_way(self.inner.tail(id))
    }

    fn find(&self, id: StreamId, _now: SystemTime) -> Call<'_, Result<Found, Unreachable>> {
        Call::under_way(self.inner.find(id, Seq::ZERO, &|_| true))
    }

    fn find_after(
        &self,
        id: StreamId,
        after: Seq,
        _now: SystemTime,
    ) -> Call<'_, Result<Found, Unreachable>> {
        Call::under_way(self.inner.find(id, after, &|_| true))
    }

    fn find_for<'a>(
        &'a self,
        id: StreamId,
        after: Seq,
        admits: &'a Admits<'a>,
        _now: SystemTime,
    ) -> Call<'a, Result<Found, Unreachable>> {
        Call::under_way(self.inner.find(id, after, admits))
    }

    fn held(&self, id: StreamId) -> Option<(Arc<Window>, Access)> {
        self.inner.table().window(id)
    }

    /// Those that this process holds at the moment; Redis is not searched.
    fn finished(&self, _now: SystemTime) -> Call<'_, Result<Vec<Arc<Window>>, Unreachable>> {
        Call::answered(Ok(self.inner.table().finished()))
    }

    fn adopt(
        &self,
        id: StreamId,
        adoption: Adoption,
        _now: SystemTime,
    ) -> Call<'_, Outcome<Refusal>> {
        Call::under_way(self.inner.adopt(id, adoption))
    }

    fn claim(
        &self,
        key: Key,
        id: StreamId,
        _now: SystemTime,
    ) -> Call<'_, Result<Claim, Unreachable>> {
        Call::under_way(self.inner.claim(key, id))
    }

    fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
        _now: SystemTime,
    ) -> Call<'_, Result<bool, Unreachable>> {
        Call::under_way(self.inner.claim_body(key, id, body))
    }

    fn release(&self, key: Key, id: StreamId) -> Call<'_, Result<(), Unreachable>> {
        Call::under_way(self.inner.release(key, id))
    }

    fn keep_request(&self, id: StreamId, request: Bytes) -> Call<'_, Result<(), Unreachable>> {
        Call::under_way(async move { self.inner.keep_request(id, &request).await })
    }

    fn kept_request(&self, id: StreamId) -> Call<'_, Result<Option<Bytes>, Unreachable>> {
        Call::under_way(self.inner.kept_request(id))
    }

    fn beside(&self, id: StreamId, through: Seq) -> Call<'_, Result<Vec<Bytes>, Unreachable>> {
        Call::under_way(self.inner.beside(id, through))
    }

    fn earlier(&self, id: StreamId) -> Option<Arc<dyn Earlier>> {
        Some(self.inner.earlier(id))
    }

    fn replica(&self) -> Option<Replica> {
        Some(self.inner.replica)
    }

    fn replicas(&self) -> Call<'_, Result<Vec<Replica>, Unreachable>> {
        Call::under_way(self.inner.others())
    }

    fn say(&self, to: Replica, id: StreamId, word: Word) -> Call<'_, Result<(), Unreachable>> {
        Call::under_way(async move { self.inner.say(to, id, &word).await })
    }

    fn remove(&self, id: StreamId) -> Call<'_, ()> {
        Call::under_way(self.inner.remove(id))
    }

    fn order(&self, id: StreamId, order: Order) -> Call<'_, Result<Ordered, Unreachable>> {
        Call::under_way(self.inner.order(id, order))
    }

    fn look(&self, id: StreamId) {
        self.inner.orders.look(id);
    }

    fn next_notice(&self) -> Call<'_, (StreamId, Notice)> {
        Call::under_way(self.inner.orders.next())
    }

    fn depart(&self) -> Call<'_, ()> {
        Call::under_way(self.inner.depart())
    }

    fn sweep(&self, _now: SystemTime) {
        let config = &self.inner.config;
        self.inner.table().sweep(config.claim, config.live);
    }

    fn usage(&self) -> Usage {
        self.inner.table().usage()
    }
}

impl Inner {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing in there panics between two changes that belong together.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn replica(&self) -> Replica {
        self.replica
    }

    pub(crate) fn owner(&self) -> String {
        format!("{:032x}", self.replica.0)
    }

    /// Another replica has adopted what was written here.
    pub(crate) fn is_fenced(&self) {
        if self.fenced.is_news() {
            let replica = self.owner();
            tracing::warn!(replica, "another replica has taken what this one wrote");
        }
    }

    /// What all generations may take is taken by those that run.
    pub(crate) fn is_full(&self) {
        if self.full.is_news() {
            let total = self.config.total;
            tracing::warn!(
                total,
                "this replica holds as many bytes of live generations as it may; new ones are degraded"
            );
        }
    }

    async fn remove(&self, id: StreamId) {
        let keys = self.config.prefix.keys(id);
        let claims = {
            let mut table = self.table();
            table.forget(id);
            table.uncache(id);
            table.claims(id)
        };
        let removed = self.remove_behind(id, &keys, &claims).await;
        self.table().unclaim_all(id);
        if let Err(error) = removed {
            // Redis is away, and this comes with each generation that is degraded for it.
            tracing::debug!(stream_id = %id, %error, "a log without a generation stays until it expires");
        }
    }

    /// Its keys first: one that outlives its log leads nowhere for as long as a log lives, also where a failover loses the
    /// second of two changes alone. A log that has lost its keys is found by whoever reads it, and on the list of this process.
    async fn remove_behind(
        &self,
        id: StreamId,
        keys: &Keys,
        claims: &[Key],
    ) -> Result<(), Failure> {
        for key in claims {
            self.free(*key, id).await?;
        }
        let mut command = redis::cmd("DEL");
        for key in [
            &keys.log,
            &keys.meta,
            &keys.gone,
            &keys.readers,
            &keys.request,
        ] {
            command.arg(key);
        }
        self.nodes.appends(id).call(&command, 0).await?;
        self.table().listed.there(id);
        Ok(())
    }
}
