//! One memory journal that two replicas share, as one beyond both of them would be.
//!
//! Each replica has a [`Linked`] of its own. Generations that the other one writes are not read from its window, but
//! from a copy that is brought up to date entry by entry, and orders go through a queue. [`Link`] lets a story come
//! between: let an order get lost, hold the copies back, take the journal or a writer away. What a writer that is away has
//! left is never ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, BodyDigest, Call, Claim, Closed, Follow, Found, Journal, Kept, Key, Memory,
    MemoryConfig, Mirrored, Notice, Open, OpenRefusal, Order, Ordered, Outcome, Reader, Refusal,
    Replica, Seq, Step, StreamId, Tail, Unreachable, Usage, View, Window, WindowConfig,
};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// What both replicas share.
pub struct Link {
    memory: Memory,
    writers: Mutex<HashMap<StreamId, usize>>,
    inboxes: [mpsc::Sender<(StreamId, Order)>; 2],
    away: [AtomicBool; 2],
    lost: [AtomicBool; 2],
    deaf: AtomicBool,
    still: watch::Sender<bool>,
    followed: Mutex<HashMap<(usize, StreamId), Following>>,
}

/// A copy of a window, and how many hold it.
struct Following {
    window: Arc<Window>,
    holds: usize,
    task: AbortHandle,
}

/// The journal of one of the two.
pub struct Linked {
    link: Arc<Link>,
    me: usize,
    orders: tokio::sync::Mutex<mpsc::Receiver<(StreamId, Order)>>,
}

impl Link {
    /// Two journals that are one.
    #[must_use]
    pub fn pair(config: MemoryConfig) -> (Arc<Self>, [Linked; 2]) {
        // Far more than any story has orders.
        let (one, at_one) = mpsc::channel(1024);
        let (other, at_other) = mpsc::channel(1024);
        let link = Arc::new(Self {
            memory: Memory::new(config),
            writers: Mutex::default(),
            inboxes: [one, other],
            away: [const { AtomicBool::new(false) }; 2],
            lost: [const { AtomicBool::new(false) }; 2],
            deaf: AtomicBool::new(false),
            still: watch::Sender::new(false),
            followed: Mutex::default(),
        });
        let linked = |me, orders| Linked {
            link: Arc::clone(&link),
            me,
            orders: tokio::sync::Mutex::new(orders),
        };
        let both = [linked(0, at_one), linked(1, at_other)];
        (link, both)
    }

    /// Whether the journal answers no question of this replica. What it appends still gets through.
    pub fn out_of_reach(&self, replica: usize, is: bool) {
        self.away[replica].store(is, Ordering::Release);
    }

    /// Orders are passed on and heard by nobody.
    pub fn lose_orders(&self) {
        self.deaf.store(true, Ordering::Release);
    }

    /// Whether copies stay as they are.
    pub fn hold_copies(&self, hold: bool) {
        self.still.send_replace(hold);
    }

    /// A replica is gone, as far as the other one sees.
    pub fn lose(&self, replica: usize) {
        self.lost[replica].store(true, Ordering::Release);
        for following in lock(&self.followed).values() {
            if !self.has_writer(following.window.id()) {
                following.window.close(Closed::Failed);
            }
        }
    }

    fn has_writer(&self, id: StreamId) -> bool {
        let writer = lock(&self.writers).get(&id).copied();
        writer.is_some_and(|writer| !self.lost[writer].load(Ordering::Acquire))
    }

    fn give(&self, id: StreamId, order: Order) -> Ordered {
        let writer = lock(&self.writers).get(&id).copied();
        match writer {
            Some(writer) if !self.lost[writer].load(Ordering::Acquire) => {
                if !self.deaf.load(Ordering::Acquire) {
                    let sent = self.inboxes[writer].try_send((id, order));
                    assert!(
                        !matches!(sent, Err(mpsc::error::TrySendError::Full(_))),
                        "an inbox is full"
                    );
                }
                Ordered::Passed
            }
            Some(_) | None => Ordered::NoWriter,
        }
    }
}

impl Linked {
    /// The memory behind both, while it can be asked.
    fn reach(&self) -> Result<&Memory, Unreachable> {
        if self.link.away[self.me].load(Ordering::Acquire) {
            return Err(Unreachable);
        }
        Ok(&self.link.memory)
    }

    fn wrote(&self, id: StreamId) -> bool {
        lock(&self.link.writers)
            .get(&id)
            .is_none_or(|writer| *writer == self.me)
    }

    /// A copy of what the other replica writes, and a hold on whatever keeps it up to date.
    fn follow(&self, from: &Arc<Window>) -> (Arc<Window>, Follow) {
        let id = from.id();
        let place = (self.me, id);
        let mut followed = lock(&self.link.followed);
        let following = followed.entry(place).or_insert_with(|| {
            // Times of entries are counted from here, and none may lie before.
            let begun = from.time_of(from.earliest());
            let to = Window::new(
                id,
                from.epoch(),
                begun.unwrap_or(SystemTime::UNIX_EPOCH),
                WindowConfig::default(),
            );
            copy(from, &to);
            if !self.link.has_writer(id) {
                to.close(Closed::Failed);
            }
            let still = self.link.still.subscribe();
            let task = tokio::spawn(keep_up(Arc::clone(from), Arc::clone(&to), still));
            self.tell(id, true);
            Following {
                window: to,
                holds: 0,
                task: task.abort_handle(),
            }
        });
        following.holds += 1;
        let hold = Hold {
            link: Arc::clone(&self.link),
            place,
        };
        (Arc::clone(&following.window), Follow::new(Arc::new(hold)))
    }

    fn tell(&self, id: StreamId, any: bool) {
        let replica = Replica(self.me as u128);
        self.link.give(id, Order::Readers { replica, any });
    }
}

struct Hold {
    link: Arc<Link>,
    place: (usize, StreamId),
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut followed = lock(&self.link.followed);
        let following = followed.get_mut(&self.place).expect("it is held");
        following.holds -= 1;
        if following.holds == 0 {
            following.task.abort();
            followed.remove(&self.place);
            let (me, id) = self.place;
            // Under the lock, so that it cannot overtake what a new one says.
            let replica = Replica(me as u128);
            let any = false;
            self.link.give(id, Order::Readers { replica, any });
        }
    }
}

/// Copies whatever is new, for as long as there is anything to come.
async fn keep_up(from: Arc<Window>, to: Arc<Window>, mut still: watch::Receiver<bool>) {
    let view = View {
        ids: true,
        control: true,
    };
    let mut reader = Reader::new(Arc::clone(&from), to.committed(), view);
    loop {
        let step = reader.next(1).await;
        let moves = still.wait_for(|still| !still).await.is_ok();
        if !moves || copy(&from, &to) {
            return;
        }
        match step {
            Step::Run { .. } => {}
            Step::Overtaken { .. } => reader = Reader::new(Arc::clone(&from), to.committed(), view),
            // It is not committed yet.
            Step::End { .. } => sleep(Duration::from_millis(1)).await,
            Step::Closed(why) => return to.close(why),
        }
    }
}

/// Copies what is committed. Says whether that was all.
fn copy(from: &Window, to: &Window) -> bool {
    to.set_label(from.label());
    let batch = from.staged_through(to.committed(), from.committed());
    let bytes = batch.runs.concat();
    let mirrored = to.mirror(&Mirrored {
        epoch: from.epoch(),
        entries: &batch.entries,
        bytes: &bytes,
        terminal: batch.terminal.as_deref(),
    });
    mirrored.expect("a copy takes what its original holds");
    to.terminal().is_some()
}

impl Journal for Linked {
    fn name(&self) -> &'static str {
        "linked"
    }

    fn keep(&self, bytes: usize) -> Option<Kept> {
        self.link.memory.keep(bytes)
    }

    fn open<'a>(
        &'a self,
        window: &'a Arc<Window>,
        owner: &'a Open,
        now: SystemTime,
    ) -> Call<'a, Outcome<OpenRefusal>> {
        lock(&self.link.writers).insert(window.id(), self.me);
        self.link.memory.open(window, owner, now)
    }

    fn append<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Call<'a, Outcome<Refusal>> {
        self.link.memory.append(window, expected, through)
    }

    fn finish<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        now: SystemTime,
    ) -> Call<'a, Outcome<Refusal>> {
        self.link.memory.finish(window, expected, now)
    }

    fn tail(&self, id: StreamId) -> Call<'_, Result<Tail, Unreachable>> {
        Call::under_way(async move { self.reach()?.tail(id).await })
    }

    fn find(&self, id: StreamId, now: SystemTime) -> Call<'_, Result<Found, Unreachable>> {
        Call::under_way(async move {
            match self.reach()?.find(id, now).await? {
                Found::Here {
                    window,
                    access,
                    follow: _,
                } if window.terminal().is_none() && !self.wrote(id) => {
                    let (window, follow) = self.follow(&window);
                    Ok(Found::Here {
                        window,
                        access,
                        follow: Some(follow),
                    })
                }
                found => Ok(found),
            }
        })
    }

    fn finished(&self, now: SystemTime) -> Call<'_, Result<Vec<Arc<Window>>, Unreachable>> {
        self.link.memory.finished(now)
    }

    fn adopt(
        &self,
        id: StreamId,
        adoption: Adoption,
        now: SystemTime,
    ) -> Call<'_, Outcome<Refusal>> {
        if !self.wrote(id) {
            // A third one is always quicker, and its end does not come through.
            return Call::answered(Outcome::No(Refusal::Fenced {
                epoch: adoption.epoch().above(0),
            }));
        }
        self.link.memory.adopt(id, adoption, now)
    }

    fn claim(
        &self,
        key: Key,
        id: StreamId,
        now: SystemTime,
    ) -> Call<'_, Result<Claim, Unreachable>> {
        Call::under_way(async move { self.reach()?.claim(key, id, now).await })
    }

    fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
        now: SystemTime,
    ) -> Call<'_, Result<bool, Unreachable>> {
        Call::under_way(async move { self.reach()?.claim_body(key, id, body, now).await })
    }

    fn release(&self, key: Key, id: StreamId) -> Call<'_, Result<(), Unreachable>> {
        Call::under_way(async move { self.reach()?.release(key, id).await })
    }

    fn remove(&self, id: StreamId) -> Call<'_, ()> {
        lock(&self.link.writers).remove(&id);
        self.link.memory.remove(id)
    }

    fn order(&self, id: StreamId, order: Order) -> Call<'_, Result<Ordered, Unreachable>> {
        Call::under_way(async move {
            let tail = self.reach()?.tail(id).await?;
            Ok(match tail {
                Tail::Last {
                    terminal: false, ..
                } => self.link.give(id, order),
                Tail::Last { .. } | Tail::None => Ordered::NoWriter,
            })
        })
    }

    fn next_notice(&self) -> Call<'_, (StreamId, Notice)> {
        Call::under_way(async move {
            let next = self.orders.lock().await.recv().await;
            let (id, order) = next.expect("the link, which this holds, has the other end");
            (id, Notice::Order(order))
        })
    }

    fn sweep(&self, now: SystemTime) {
        self.link.memory.sweep(now);
    }

    fn usage(&self) -> Usage {
        self.link.memory.usage()
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
