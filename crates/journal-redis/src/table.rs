//! What this process knows of its own logs, without asking Redis.
//!
//! For each log that it writes: where that stands, and on which connection it was last seen to stand there. Redis
//! refuses an entry that is not greater than the last; that the last is the expected one is known only here, and
//! only for as long as nothing can have happened in between. So an append is sent on that very connection or not at
//! all. Beside it: windows of finished logs for a short while, and who holds which idempotency keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_journal::rules::Standing;
use streamweld_journal::{
    Access, Epoch, Keeping, Kept, Key, Meter, Refusal, Replica, Seq, StreamId, Usage, Window,
};
use tokio::time::Instant;

use crate::config::Config;
use crate::keys::Keys;
use crate::presence::Listed;
use crate::readers::Readers;

pub(crate) struct Table {
    pub(crate) live: HashMap<StreamId, Live>,
    /// What others would find to be this process'.
    pub(crate) listed: Listed,
    finished: HashMap<StreamId, Finished>,
    claims: HashMap<StreamId, Claimed>,
    /// Who followed logs that are not written here any more, until the generation is told.
    left: Vec<(StreamId, Replica)>,
    meter: Arc<Meter>,
    keeping: Keeping,
}

/// What a log costs apart from its window.
pub(crate) const BESIDES: usize = size_of::<Live>();

impl Default for Table {
    fn default() -> Self {
        let meter = Arc::<Meter>::default();
        Self {
            live: HashMap::default(),
            listed: Listed::default(),
            finished: HashMap::default(),
            claims: HashMap::default(),
            left: Vec::new(),
            keeping: Keeping::new(Arc::clone(&meter)),
            meter,
        }
    }
}

/// A log that this process writes.
pub(crate) struct Live {
    /// `None` when this process has adopted it and not written yet.
    pub(crate) window: Option<Arc<Window>>,
    pub(crate) access: Access,
    pub(crate) keys: Arc<Keys>,
    pub(crate) epoch: Epoch,
    pub(crate) last: Seq,
    /// The connection on which it was last seen to end with `last`. `None` from the moment something is sent until
    /// its answer is here.
    pub(crate) seen: Option<u64>,
    /// The window's label as it stands in Redis.
    pub(crate) label: Bytes,
    /// When the expiry was last put off.
    pub(crate) renewed: Instant,
    /// Who follows it elsewhere.
    pub(crate) readers: Readers,
}

struct Finished {
    window: Arc<Window>,
    access: Access,
    until: Instant,
    end: End,
}

/// What is known of an end in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It was read there: somebody else looks after it.
    Read,
    /// It was written by this process.
    Written,
    /// It was, and Redis may have lost it since.
    Doubted,
}

struct Claimed {
    keys: Vec<Key>,
    since: Instant,
}

/// What an append is to do.
pub(crate) enum Leave {
    /// Send it, on this connection only.
    Send(Send),
    /// Nothing is changed.
    Refuse(Refusal),
    /// Not before the tail was read.
    ReadBack,
    /// This process does not know the log as its own.
    Stranger,
}

pub(crate) struct Send {
    pub(crate) connection: u64,
    pub(crate) keys: Arc<Keys>,
    /// The label that Redis does not have yet.
    pub(crate) label: Option<Bytes>,
    /// The expiry is to be put off.
    pub(crate) renew: bool,
}

impl Live {
    /// Readers at this process are given the window that its writer writes. After an adoption that is another one than
    /// before, which goes no further. One that only adds an end to what others wrote is nothing to read from.
    fn read_from(&mut self, window: &Arc<Window>, meter: &Arc<Meter>) {
        let is_same = |old: &Arc<Window>| Arc::ptr_eq(old, window);
        if self.window.as_ref().is_some_and(is_same) {
            return;
        }
        let can_be_read = window.is_whole() || window.earlier().is_some();
        let window = can_be_read.then(|| Arc::clone(window));
        if let Some(window) = &window {
            window.charge_to(Some(Arc::clone(meter)));
        }
        if let Some(old) = std::mem::replace(&mut self.window, window) {
            old.charge_to(None);
        }
    }
}

impl Table {
    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Whether `window` may append behind `expected`. If so, nothing is known of the log until
    /// [`stands`](Self::stands).
    pub(crate) fn leave(
        &mut self,
        window: &Arc<Window>,
        expected: Seq,
        connection: Option<u64>,
        renew_after: Duration,
    ) -> Leave {
        let Some(live) = self.live.get_mut(&window.id()) else {
            return Leave::Stranger;
        };
        if live.seen.is_none() || live.seen != connection {
            return Leave::ReadBack;
        }
        let standing = Standing {
            epoch: live.epoch,
            last: live.last,
            ended: false,
        };
        if let Err(refusal) = standing.allows(window.epoch(), expected) {
            return Leave::Refuse(refusal);
        }
        live.read_from(window, &self.meter);
        let Some(connection) = live.seen.take() else {
            return Leave::ReadBack;
        };
        let label = window.label();
        Leave::Send(Send {
            connection,
            keys: Arc::clone(&live.keys),
            label: Some(label).filter(|label| *label != live.label),
            renew: live.renewed.elapsed() >= renew_after,
        })
    }

    /// What was sent stands.
    pub(crate) fn stands(&mut self, id: StreamId, epoch: Epoch, last: Seq, connection: u64) {
        if let Some(live) = self.live.get_mut(&id) {
            live.epoch = epoch;
            live.last = last;
            live.seen = Some(connection);
        }
    }

    /// Whether others follow the log.
    pub(crate) fn is_followed(&self, id: StreamId) -> bool {
        self.live.get(&id).is_some_and(|live| live.readers.any())
    }

    /// Something may have changed the log.
    pub(crate) fn doubt(&mut self, id: StreamId) {
        if let Some(live) = self.live.get_mut(&id) {
            live.seen = None;
        }
    }

    /// The end is about to be sent. False: not before the tail was read. The script looks for the last record only, which
    /// may have been taken behind a gap.
    pub(crate) fn finishing(&mut self, window: &Arc<Window>, connection: Option<u64>) -> bool {
        if let Some(live) = self.live.get_mut(&window.id()) {
            if live.seen.take().is_none_or(|seen| Some(seen) != connection) {
                return false;
            }
            live.read_from(window, &self.meter);
        }
        true
    }

    /// The expiry was put off, and the label written if there was a new one.
    pub(crate) fn renewed(&mut self, id: StreamId, label: Option<Bytes>) {
        if let Some(live) = self.live.get_mut(&id) {
            live.renewed = Instant::now();
            live.label = label.unwrap_or_else(|| std::mem::take(&mut live.label));
        }
    }

    pub(crate) fn keep(&mut self, id: StreamId, live: Live) {
        self.meter.add(BESIDES);
        if let Some(window) = &live.window {
            window.charge_to(Some(Arc::clone(&self.meter)));
        }
        if self.live.insert(id, live).is_some() {
            self.meter.sub(BESIDES);
        }
        self.listed.there(id);
    }

    /// This process does not write the log any more, nor count it. Nobody will say that its followers have left: with
    /// a log that has vanished it is not known any more to whom.
    pub(crate) fn forget(&mut self, id: StreamId) -> Option<Live> {
        let mut live = self.live.remove(&id)?;
        let readers = std::mem::take(&mut live.readers).into_replicas();
        self.left.extend(readers.map(|replica| (id, replica)));
        self.meter.sub(BESIDES);
        if let Some(window) = &live.window {
            window.charge_to(None);
        }
        Some(live)
    }

    /// Another process writes the log. Says whether this one thought that it did.
    pub(crate) fn fenced(&mut self, id: StreamId) -> bool {
        let was_live = self.forget(id).is_some();
        if was_live {
            self.listed.taken(id);
        }
        was_live
    }

    /// Followers that are none any more.
    pub(crate) fn left(&mut self) -> Vec<(StreamId, Replica)> {
        let each = |(id, live): (&StreamId, &mut Live)| {
            let lapsed = live.readers.lapsed().into_iter();
            lapsed.map(|replica| (*id, replica)).collect::<Vec<_>>()
        };
        let mut left = std::mem::take(&mut self.left);
        left.extend(self.live.iter_mut().flat_map(each));
        left
    }

    /// It has ended, and may be read from here for a while.
    pub(crate) fn finish(&mut self, id: StreamId, config: &Config) {
        if let Some(live) = self.forget(id) {
            if let Some(window) = live.window {
                self.put(window, live.access, config, End::Written);
            }
        }
    }

    /// It has ended, and was read as what somebody else wrote. That may have been this process, which it was taken over
    /// by: then its end is looked after.
    pub(crate) fn cache(&mut self, window: Arc<Window>, access: Access, config: &Config) {
        let end = self.finished.get(&window.id()).map(|finished| finished.end);
        if end.is_none_or(|end| end == End::Read) {
            self.put(window, access, config, End::Read);
        }
    }

    fn put(&mut self, window: Arc<Window>, access: Access, config: &Config, end: End) {
        window.charge_to(Some(Arc::clone(&self.meter)));
        let finished = Finished {
            until: Instant::now() + config.cached_for(&window),
            access,
            window,
            end,
        };
        let id = finished.window.id();
        let held = Arc::clone(&finished.window);
        let old = self.finished.insert(id, finished);
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(&old.window, &held)) {
            old.window.charge_to(None);
        }
    }

    /// Whether this process writes it, is about to, or looks after its end.
    pub(crate) fn is_concerned_with(&self, id: StreamId) -> bool {
        let finished = self.finished.get(&id);
        self.live.contains_key(&id)
            || self.listed.has(id)
            || finished.is_some_and(|finished| finished.end != End::Read)
    }

    /// Redis may have other data than before.
    pub(crate) fn doubt_ends(&mut self) {
        for finished in self.finished.values_mut() {
            if finished.end == End::Written {
                finished.end = End::Doubted;
            }
        }
    }

    pub(crate) fn doubted_ends(&self) -> Vec<Arc<Window>> {
        let finished = self.finished.values();
        let doubted = finished.filter(|finished| finished.end == End::Doubted);
        doubted
            .map(|finished| Arc::clone(&finished.window))
            .collect()
    }

    pub(crate) fn end_stands(&mut self, id: StreamId) {
        if let Some(finished) = self.finished.get_mut(&id) {
            finished.end = End::Written;
        }
    }

    pub(crate) fn uncache(&mut self, id: StreamId) {
        if let Some(finished) = self.finished.remove(&id) {
            finished.window.charge_to(None);
        }
    }

    /// The window of a log that this process writes, or has read a moment ago.
    pub(crate) fn window(&mut self, id: StreamId) -> Option<(Arc<Window>, Access)> {
        if let Some(live) = self.live.get(&id) {
            return Some((Arc::clone(live.window.as_ref()?), live.access));
        }
        let finished = self.finished.get(&id)?;
        (finished.until > Instant::now()).then(|| (Arc::clone(&finished.window), finished.access))
    }

    pub(crate) fn finished(&self) -> Vec<Arc<Window>> {
        let now = Instant::now();
        self.finished
            .values()
            .filter(|finished| finished.until > now)
            .map(|finished| Arc::clone(&finished.window))
            .collect()
    }

    /// Whether another `bytes` are within the cap, after letting go of what Redis has as well.
    pub(crate) fn has_room(&mut self, bytes: usize, total: u64) -> bool {
        let is_over = |meter: &Meter| (meter.bytes() + bytes) as u64 > total;
        if is_over(&self.meter) {
            for (_, finished) in self.finished.drain() {
                finished.window.charge_to(None);
            }
        }
        !is_over(&self.meter)
    }

    /// Counts what is kept elsewhere, where there is room.
    pub(crate) fn keep_elsewhere(&mut self, bytes: usize, total: u64) -> Option<Kept> {
        let has_room = self.has_room(bytes, total);
        self.keeping.add(bytes, total).filter(|_| has_room)
    }

    /// How long a claim of `id` lives that is made now.
    pub(crate) fn life(&self, id: StreamId, config: &Config) -> Duration {
        if self.live.contains_key(&id) {
            config.live
        } else if self.finished.contains_key(&id) {
            config.retention
        } else {
            config.claim
        }
    }

    pub(crate) fn claimed(&mut self, id: StreamId, key: Key) {
        let now = Instant::now();
        let claimed = self.claims.entry(id).or_insert(Claimed {
            keys: Vec::new(),
            since: now,
        });
        claimed.since = now;
        if !claimed.keys.contains(&key) {
            claimed.keys.push(key);
        }
    }

    /// The keys that `id` has claimed here.
    pub(crate) fn claims(&self, id: StreamId) -> Vec<Key> {
        self.claims
            .get(&id)
            .map_or_else(Vec::new, |it| it.keys.clone())
    }

    pub(crate) fn unclaim(&mut self, id: StreamId, key: Key) {
        if let Some(claimed) = self.claims.get_mut(&id) {
            claimed.keys.retain(|it| *it != key);
            if claimed.keys.is_empty() {
                self.claims.remove(&id);
            }
        }
    }

    pub(crate) fn unclaim_all(&mut self, id: StreamId) {
        self.claims.remove(&id);
    }

    /// Lets go of finished windows and of claims that have lapsed, and of logs that nobody else holds any more: their
    /// producer has left without an end.
    pub(crate) fn sweep(&mut self, claim: Duration, abandoned: Duration) {
        let now = Instant::now();
        self.finished.retain(|_, finished| {
            let stays = finished.until > now || finished.end == End::Doubted;
            if !stays {
                finished.window.charge_to(None);
            }
            stays
        });
        let live = &self.live;
        self.claims
            .retain(|id, it| live.contains_key(id) || it.since.elapsed() < claim * 2);
        let is_left = |live: &Live| {
            let held = live.window.as_ref().map_or(1, Arc::strong_count);
            held == 1 && live.renewed.elapsed() > abandoned
        };
        let left: Vec<StreamId> = self
            .live
            .iter()
            .filter(|(_, live)| is_left(live))
            .map(|(id, _)| *id)
            .collect();
        for id in left {
            self.forget(id);
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            bytes: self.meter.bytes() as u64,
            live: self.live.len(),
            finished: self.finished.len(),
            // Redis lets go of them by itself, and counts them for all replicas.
            tombstones: 0,
            evicted_early: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use streamweld_journal::{Kind, WindowConfig};

    use super::*;
    use crate::keys::Prefix;

    fn window(id: StreamId, epoch: u64) -> Arc<Window> {
        let (epoch, now) = (Epoch::new(epoch).unwrap(), SystemTime::now());
        let window = Window::new(id, epoch, now, WindowConfig::default());
        let mut staging = window.stage(now);
        staging.push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
        drop(staging);
        window
    }

    /// A table with one log, which stands at its first entry on connection 1.
    fn table(window: &Arc<Window>) -> Table {
        let live = Live {
            window: Some(Arc::clone(window)),
            access: [7; 32],
            keys: Arc::new(Prefix::default().keys(window.id())),
            epoch: window.epoch(),
            last: Seq::FIRST,
            seen: Some(1),
            label: Bytes::new(),
            renewed: Instant::now(),
            readers: Readers::default(),
        };
        let mut table = Table::default();
        table.keep(window.id(), live);
        table
    }

    fn id() -> StreamId {
        StreamId::generate(SystemTime::now())
    }

    #[tokio::test]
    async fn who_adopts_again_is_read_in_the_window_that_it_writes() {
        let id = id();
        let (old, new) = (window(id, 1), window(id, 3));
        let mut table = table(&old);
        table.stands(id, new.epoch(), Seq::FIRST, 1);
        let leave = table.leave(&new, Seq::FIRST, Some(1), Duration::MAX);
        assert!(matches!(leave, Leave::Send(_)));
        let (read, _) = table.window(id).unwrap();
        assert!(Arc::ptr_eq(&read, &new));
        assert_eq!(table.usage().bytes, (BESIDES + new.held()) as u64);
        // One that only ends it is nothing to read from.
        let end = Window::new(
            id,
            Epoch::new(4).unwrap(),
            SystemTime::now(),
            WindowConfig::default(),
        );
        end.begin_after(Seq::FIRST);
        table.stands(id, end.epoch(), Seq::FIRST, 1);
        assert!(table.finishing(&end, Some(1)));
        assert!(table.window(id).is_none());
        assert_eq!(table.usage().bytes, BESIDES as u64);
    }

    #[tokio::test]
    async fn an_end_of_its_own_stays_so_when_it_is_read_as_well() {
        let id = id();
        let (written, followed) = (window(id, 1), window(id, 1));
        // Whichever comes first.
        for is_read_first in [true, false] {
            let (mut table, config) = (table(&written), Config::default());
            let cache = |table: &mut Table| table.cache(Arc::clone(&followed), [7; 32], &config);
            followed.charge_to(Some(table.meter()));
            if is_read_first {
                cache(&mut table);
            }
            table.finish(id, &config);
            if !is_read_first {
                cache(&mut table);
                followed.charge_to(None);
            }
            table.doubt_ends();
            let doubted = table.doubted_ends();
            assert_eq!(doubted.len(), 1);
            assert!(Arc::ptr_eq(&doubted[0], &written));
            assert_eq!(table.usage().bytes, written.held() as u64);
        }
    }
}
