//! Windows of generations that other replicas write: one follower for each, however many read it here.
//!
//! The order of things makes that nothing is missed: it subscribes to the log's channel, registers with the writer,
//! who publishes from then on, and reads what stands. What is published is spliced in by
//! sequence; a gap, or a subscription that was renewed, sends it back to what stands, from where it is. Every few
//! seconds it registers again and looks as well, so a lost word costs seconds and never an entry.
//!
//! Only a reader registers. For those who just look (states, keys that are compared) what stands is read again, each time
//! that somebody asks, so that nobody who reads nothing keeps a generation from its orphan policy.
//!
//! While Redis is away a follower stays, and its readers wait; it goes on when Redis is back. When the log is gone,
//! or does not continue what was shown, its readers are told that the rest is missing. A follower ends with its log,
//! or a short while after its last reader left.
//!
//! The window begins with the cursor of the first who asks; whoever stands before it reads pages up to there (see
//! [`pages`](crate::pages)).
//!
//! With a [relay](crate::relay) a follower that is read asks the owner while Redis is away, and shows what the owner's own
//! readers see. It keeps the line until Redis has what was shown. Where other entries stand in the place of such as were
//! shown without ids, its window is closed like that of an owner that was replaced: who saw them comes back, the others
//! read on in a new window.
//!
//! A log that has ended is read in the same way, without the channel: however many ask for it at once, it is read once.

mod foreseen;
mod line;
mod told;

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use streamweld_journal::{
    Access, Admits, Closed, Follow, Found, Replica, Seq, StreamId, Unreachable, Window,
};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use crate::feed::Heard;
use crate::find::{Meta, Place, Shown};
use crate::journal::Inner;
use crate::keys::Keys;
use crate::nodes::Listener;
use crate::orders::Registered;
use crate::readers::RENEW;
use crate::relay::{Telling, Touch};

use self::foreseen::{Foreseen, Total};
use self::line::{Line, News};

/// All followers of this process.
#[derive(Default)]
pub(crate) struct Followers {
    inside: Mutex<Inside>,
    foreseen: Total,
}

#[derive(Default)]
struct Inside {
    each: HashMap<StreamId, Entry>,
    tasks: JoinSet<()>,
}

struct Entry {
    window: Arc<Window>,
    access: Access,
    hold: Weak<Hold>,
    wanted: Arc<Wanted>,
    state: watch::Receiver<State>,
}

/// What a follower is wanted for.
#[derive(Default)]
struct Wanted {
    readers: AtomicUsize,
    /// How often somebody has asked for what stands now.
    looks: AtomicU64,
    /// Any of this is otherwise, or the last who held it has let go.
    changed: Notify,
}

/// What everybody holds; its follower is told when the last of them lets go.
struct Hold(Arc<Wanted>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.changed.notify_one();
    }
}

/// What a reader holds.
struct Reads(Arc<Hold>);

impl Reads {
    fn new(hold: &Arc<Hold>) -> Self {
        hold.0.readers.fetch_add(1, Ordering::AcqRel);
        hold.0.changed.notify_one();
        Self(Arc::clone(hold))
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let Hold(wanted) = &*self.0;
        if wanted.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            wanted.changed.notify_one();
        }
    }
}

/// Starting -> Caught, or Starting -> Failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// What stood when it was asked for is not all here.
    Starting,
    /// It is, for whoever has asked up to this look.
    Caught(u64),
    /// Redis did not answer; the follower has ended.
    Failed,
}

impl State {
    fn is_starting(self) -> bool {
        self == Self::Starting
    }
}

/// The look of whoever is told what is written: it is as good as any that comes.
const LIVE: u64 = u64::MAX;

/// Somebody's part in a follower.
pub(crate) struct Part {
    window: Arc<Window>,
    access: Access,
    hold: Arc<Hold>,
    state: watch::Receiver<State>,
    look: u64,
}

impl Followers {
    /// A part in the follower that there is, for whom it may be.
    pub(crate) fn join(&self, id: StreamId, admits: &Admits<'_>) -> Option<Part> {
        let mut inside = self.lock();
        let entry = inside.each.get_mut(&id);
        Some(entry.filter(|entry| admits(&entry.access))?.join())
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // A table and a set of tasks, changed in single steps.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a follower out, unless somebody holds it again.
    fn take_out(&self, id: StreamId, only_if_free: bool) -> bool {
        let mut inside = self.lock();
        let is_held = |entry: &Entry| entry.hold.strong_count() > 0;
        if only_if_free && inside.each.get(&id).is_some_and(is_held) {
            return false;
        }
        inside.each.remove(&id);
        true
    }
}

impl Entry {
    /// A part for one more. Who is not told what is written looks again for him.
    fn join(&mut self) -> Part {
        let is_old = matches!(*self.state.borrow(), State::Caught(look) if look != LIVE);
        let look = if is_old {
            self.wanted.looks.fetch_add(1, Ordering::AcqRel) + 1
        } else {
            0
        };
        let part = self.part(look);
        if is_old {
            self.wanted.changed.notify_one();
        }
        part
    }

    fn part(&mut self, look: u64) -> Part {
        let hold = self.hold.upgrade().unwrap_or_else(|| {
            let hold = Arc::new(Hold(Arc::clone(&self.wanted)));
            self.hold = Arc::downgrade(&hold);
            hold
        });
        Part {
            window: Arc::clone(&self.window),
            access: self.access,
            hold,
            state: self.state.clone(),
            look,
        }
    }
}

impl Part {
    /// Waits until what stood is here.
    pub(crate) async fn found(mut self) -> Result<Found, Unreachable> {
        let caught = self.state.wait_for(|state| match state {
            State::Starting => false,
            State::Caught(look) => *look >= self.look,
            State::Failed => true,
        });
        match timeout(START, caught).await {
            Ok(Ok(state)) if *state != State::Failed => {}
            _ => return Err(Unreachable),
        }
        let is_whole = self.window.terminal().is_some();
        Ok(Found::Here {
            window: self.window,
            access: self.access,
            follow: (!is_whole).then(|| {
                let hold = Arc::clone(&self.hold);
                Follow::looking(self.hold, move || Arc::new(Reads::new(&hold)))
            }),
        })
    }
}

impl Inner {
    /// A part in the follower of a log, which is started at `after` if there is none; by its owner's `telling`, if that was
    /// asked.
    pub(crate) fn follow(
        self: &Arc<Self>,
        id: StreamId,
        keys: Keys,
        meta: Meta,
        after: Seq,
        telling: Option<Box<dyn Telling>>,
    ) -> Part {
        let mut inside = self.followers.lock();
        while inside.tasks.try_join_next().is_some() {}
        let inside = &mut *inside;
        let entry = inside.each.entry(id).or_insert_with(|| {
            let (told, state) = watch::channel(State::Starting);
            let wanted = Arc::new(Wanted::default());
            let access = meta.access;
            let channel = (!meta.ended).then(|| keys.feed.clone());
            let place = Place::at(after, meta.sure);
            let owner = meta.owner;
            let window = meta.window(id, self.config.window);
            window.charge_to(Some(self.table().meter()));
            window.set_earlier(self.earlier(id));
            let follower = Follower {
                id,
                window: Arc::clone(&window),
                access,
                place,
                subscription: channel.map(|channel| self.nodes.subscribe(id, channel)),
                keys,
                wanted: Arc::clone(&wanted),
                registered: false,
                told,
                owner,
                touch: self.touch(),
                line: Line::new(telling),
                foreseen: self.followers.foreseen.part(),
            };
            inside.tasks.spawn(follower.run(Arc::downgrade(self)));
            Entry {
                window,
                access,
                hold: Weak::new(),
                wanted,
                state,
            }
        });
        entry.join()
    }
}

struct Follower {
    id: StreamId,
    keys: Keys,
    window: Arc<Window>,
    access: Access,
    place: Place,
    /// `None` when the log had its end before.
    subscription: Option<Listener>,
    wanted: Arc<Wanted>,
    /// The writer may know of readers here, and publish for them.
    registered: bool,
    told: watch::Sender<State>,
    /// Who wrote it when that was last heard.
    owner: Option<Replica>,
    /// Tells when Redis may be away; `None` where nobody else could be asked then.
    touch: Option<Touch>,
    line: Line,
    foreseen: Foreseen,
}

enum Event {
    Heard(Heard),
    Look,
    /// Redis may have gone away, or come back.
    Touch,
    Line(News),
    Changed,
    /// It has gone without a reader for long enough.
    Unread,
    /// Nobody holds it, and nobody has come back.
    Leave,
}

/// Whether a follower goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    /// Redis did not answer.
    Again,
    /// There is no more to come, or the rest is missing.
    Over,
    /// What was shown without ids does not stand.
    Replaced,
}

impl Follower {
    /// Ends with the log, with the last reader, or with the journal.
    async fn run(mut self, inner: Weak<Inner>) {
        match self.subscription.take() {
            Some(subscription) => self.follow(inner, subscription).await,
            None => self.replay(inner).await,
        }
    }

    async fn replay(mut self, inner: Weak<Inner>) {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let next = match self.read(&inner, LIVE).await {
            // It expired while it was read.
            Next::GoOn => self.broken(),
            next => next,
        };
        match next {
            Next::GoOn | Next::Over | Next::Replaced => self.over(&inner),
            Next::Again => self.failed(&inner),
        }
    }

    async fn follow(mut self, inner: Weak<Inner>, mut subscription: Listener) {
        let mut looks = interval(RENEW);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first look comes with the subscription.
        looks.reset();
        let (mut unread, mut leave) = (None::<Instant>, None::<Instant>);
        loop {
            let touch = async {
                match &mut self.touch {
                    Some(touch) => touch.changed().await,
                    None => pending().await,
                }
            };
            let event = tokio::select! {
                heard = subscription.next() => match heard {
                    Some(heard) => Event::Heard(heard),
                    None => return self.window.close(Closed::Shutdown),
                },
                _ = looks.tick() => Event::Look,
                () = self.wanted.changed.notified() => Event::Changed,
                () = touch => Event::Touch,
                news = self.line.next() => Event::Line(news),
                () = sleep_until(unread.unwrap_or_else(Instant::now)), if unread.is_some() => Event::Unread,
                () = sleep_until(leave.unwrap_or_else(Instant::now)), if leave.is_some() => Event::Leave,
            };
            let Some(inner) = inner.upgrade() else {
                return self.window.close(Closed::Shutdown);
            };
            // Whether anything but what is written is otherwise now.
            let is_news = !matches!(event, Event::Heard(Heard::Message(_)));
            let next = match event {
                Event::Heard(Heard::Message(record)) => self.hear(&inner, &record).await,
                // A Redis that is away is not waited for while somebody else tells.
                Event::Look if self.line.is_open() && inner.is_away(self.id) => Next::GoOn,
                Event::Heard(Heard::Renewed) | Event::Look => self.look(&inner).await,
                Event::Touch if self.line.is_wanted() && !inner.is_away(self.id) => {
                    self.look(&inner).await
                }
                Event::Touch => Next::GoOn,
                Event::Line(news) => self.told(&inner, news),
                Event::Changed => {
                    let soon = Some(Instant::now() + GRACE);
                    leave = soon;
                    // Who looks meanwhile puts nothing off.
                    unread = match self.is_read() {
                        false if self.registered => unread.or(soon),
                        _ => None,
                    };
                    if self.is_behind() {
                        self.look(&inner).await
                    } else {
                        Next::GoOn
                    }
                }
                Event::Unread => {
                    unread = None;
                    if !self.is_read() {
                        self.unregister(&inner).await;
                    }
                    continue;
                }
                Event::Leave => {
                    leave = None;
                    if !inner.followers.take_out(self.id, true) {
                        continue;
                    }
                    return self.unregister(&inner).await;
                }
            };
            if is_news || self.line.is_wanted() {
                self.mind_line(&inner);
            }
            match next {
                Next::GoOn => {}
                Next::Again if self.told.borrow().is_starting() && !self.line.is_open() => {
                    return self.failed(&inner);
                }
                Next::Again => looks.reset_after(AGAIN),
                Next::Over => {
                    self.over(&inner);
                    return self.unregister(&inner).await;
                }
                Next::Replaced => return self.replaced(&inner),
            }
        }
    }

    fn failed(&self, inner: &Inner) {
        inner.followers.take_out(self.id, false);
        self.told.send_replace(State::Failed);
    }

    fn over(&self, inner: &Inner) {
        if self.window.terminal().is_some() {
            let window = Arc::clone(&self.window);
            let mut table = inner.table();
            table.cache(window, self.access, &inner.config);
        }
        inner.followers.take_out(self.id, false);
        self.told.send_replace(State::Caught(LIVE));
    }

    fn is_read(&self) -> bool {
        self.wanted.readers.load(Ordering::Acquire) > 0
    }

    /// There is a reader of whom the writer knows nothing, or somebody asks how it stands.
    fn is_behind(&self) -> bool {
        let is_starting = self.told.borrow().is_starting();
        (!is_starting && self.is_waited_for()) || (self.is_read() && !self.registered)
    }

    /// Somebody waits to be shown what stands now.
    fn is_waited_for(&self) -> bool {
        let looks = self.wanted.looks.load(Ordering::Acquire);
        match *self.told.borrow() {
            State::Starting => true,
            State::Caught(look) => look < looks,
            State::Failed => false,
        }
    }

    async fn unregister(&mut self, inner: &Inner) {
        if std::mem::take(&mut self.registered) {
            self.live_no_more();
            inner.unregister(self.id, inner.replica()).await;
        }
    }

    /// From here on others have to ask again. The last look is not older than any that was asked for.
    fn live_no_more(&self) {
        let looks = self.wanted.looks.load(Ordering::Acquire);
        self.told.send_if_modified(|state| {
            let was_live = *state == State::Caught(LIVE);
            if was_live && self.window.terminal().is_none() {
                *state = State::Caught(looks);
            }
            was_live
        });
    }

    /// A record was published.
    async fn hear(&mut self, inner: &Arc<Inner>, record: &[u8]) -> Next {
        if self.told.borrow().is_starting() {
            // It is among what is read at the start, or comes again as a gap.
            return Next::GoOn;
        }
        match self.place.show(&self.window, record) {
            Shown::Yes => self.next(),
            Shown::Gap => {
                let told = *self.told.borrow();
                let look = match told {
                    State::Caught(LIVE) => LIVE,
                    _ => self.wanted.looks.load(Ordering::Acquire),
                };
                match self.read(inner, look).await {
                    Next::GoOn if self.place.has_passed(&self.window, record) => self.broken(),
                    next => next,
                }
            }
            Shown::Replaced => Next::Replaced,
            Shown::Broken => self.broken(),
        }
    }

    /// Registers if it is read, and reads what stands.
    async fn look(&mut self, inner: &Arc<Inner>) -> Next {
        let looks = self.wanted.looks.load(Ordering::Acquire);
        if !self.is_read() && !self.registered {
            // At the start it was seen a moment ago.
            let is_starting = self.told.borrow().is_starting();
            let stands = match is_starting {
                true => Ok(true),
                false => inner.stands(self.id, &self.keys).await,
            };
            return match stands {
                Err(Unreachable) => Next::Again,
                Ok(true) => self.read(inner, looks).await,
                Ok(false) => self.broken(),
            };
        }
        // Without an answer it may be known all the same.
        self.registered = true;
        match inner.register(self.id, inner.replica()).await {
            Err(Unreachable) => Next::Again,
            Ok(Registered::Yes | Registered::Ended) => self.read(inner, LIVE).await,
            // Its owner shows it to the end all the same.
            Ok(Registered::Vanished) if self.line.is_open() => Next::GoOn,
            Ok(Registered::Vanished) => self.broken(),
        }
    }

    /// Reads what stands, for who has asked up to `look`.
    async fn read(&mut self, inner: &Arc<Inner>, look: u64) -> Next {
        let read = inner.fill(&self.window, &self.keys, &mut self.place).await;
        match read {
            Err(Unreachable) => Next::Again,
            Ok(Shown::Yes) => {
                let next = self.next();
                if next == Next::GoOn {
                    self.told.send_replace(State::Caught(look));
                }
                next
            }
            Ok(Shown::Replaced) => Next::Replaced,
            Ok(Shown::Gap | Shown::Broken) => self.broken(),
        }
    }

    fn next(&self) -> Next {
        if self.window.terminal().is_some() {
            Next::Over
        } else {
            Next::GoOn
        }
    }

    fn broken(&self) -> Next {
        tracing::warn!(stream_id = %self.id, "the rest of a followed log is missing");
        self.window.close(Closed::Incomplete);
        Next::Over
    }
}

/// How long a reader waits for the first look.
const START: Duration = Duration::from_secs(5);
/// How long a follower stays without a reader: one that reconnects finds it.
const GRACE: Duration = Duration::from_secs(2);
/// When to look again after Redis did not answer.
const AGAIN: Duration = Duration::from_millis(500);
