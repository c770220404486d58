//! The contract that every backend keeps.
//!
//! The writer's copy of a generation is its [`Window`]. A backend is told of ranges of it and
//! answers whether they stand; only after a [`Outcome::Yes`] does the owner call
//! [`Window::commit`], which is what readers see. A backend never commits by itself, so an answer
//! that was lost on the way leaves readers where they were.
//!
//! What holds for every backend:
//! - A log begins with `open` at sequence 1 and grows by exactly one.
//! - An append names its predecessor. If another one stands, nothing is changed and the answer says
//!   what does stand.
//! - After a terminal nothing is appended, ever, by anybody.
//! - A writer under another epoch than the log's changes nothing.
//! - [`Outcome::Unknown`] means exactly that: the owner reads [`Journal::tail`] before it goes on.
//!
//! # Cancel safety
//! A future that is dropped before it is ready leaves an unknown outcome.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;

use crate::earlier::Earlier;
use crate::id::StreamId;
use crate::kept::Kept;
use crate::level::Level;
use crate::types::{Epoch, Seq};
use crate::window::{Digest, Window};

/// A call to a backend: answered already, or under way.
///
/// A backend that knows at once says so without a future of its own. An append is made for every batch of every
/// generation, so in memory the box would cost more than the answer.
pub enum Call<'a, T> {
    /// The answer, until it is taken.
    Answered(Option<T>),
    /// The call has to be waited for.
    UnderWay(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Call<'a, T> {
    /// A call that has its answer.
    pub fn answered(answer: T) -> Self {
        Self::Answered(Some(answer))
    }

    /// A call that is answered when `call` is done.
    pub fn under_way(call: impl Future<Output = T> + Send + 'a) -> Self {
        Self::UnderWay(Box::pin(call))
    }
}

impl<T: Unpin> Future for Call<'_, T> {
    type Output = T;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Answered(answer) => Poll::Ready(answer.take().expect("polled after the answer")),
            Self::UnderWay(call) => call.as_mut().poll(cx),
        }
    }
}

/// A place where generations are kept. See the module for what every implementation promises.
pub trait Journal: Send + Sync + 'static {
    /// A word for logs and metrics.
    fn name(&self) -> &'static str;

    /// What a yes means now, where entries are kept outside of this process; `None` where they end with it.
    fn level(&self) -> Option<Level> {
        None
    }

    /// Everything about what it is kept in that is looked after, and whether that is as it should be.
    fn checks(&self) -> Vec<Check> {
        Vec::new()
    }

    /// Counts bytes that are kept elsewhere on behalf of a generation against the caps, after letting go what may go.
    /// `None`: there is no room for them, and they had better not be kept.
    fn keep(&self, bytes: usize) -> Option<Kept>;

    /// Creates the log of `window.id()` from its entry 1, of kind `open`, which is already staged.
    /// Entries staged behind it are left for [`append`](Self::append).
    fn open<'a>(
        &'a self,
        window: &'a Arc<Window>,
        owner: &'a Open,
        now: SystemTime,
    ) -> Call<'a, Outcome<OpenRefusal>>;

    /// Appends what is staged after `expected` up to and with `through`.
    ///
    /// One call in flight per generation is the caller's duty.
    ///
    /// # Panics
    /// When the range is empty, is not staged, or holds a terminal.
    fn append<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Call<'a, Outcome<Refusal>>;

    /// Appends everything staged after `expected`, the last of which is the terminal.
    ///
    /// # Panics
    /// When no terminal is staged, or it is not behind `expected`.
    fn finish<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        now: SystemTime,
    ) -> Call<'a, Outcome<Refusal>>;

    /// What really stands; asked after an unknown outcome.
    fn tail(&self, id: StreamId) -> Call<'_, Result<Tail, Unreachable>>;

    /// Looks a generation up for a reader.
    fn find(&self, id: StreamId, now: SystemTime) -> Call<'_, Result<Found, Unreachable>>;

    /// The same for a reader that stands at `after`. What lies before need not be in the window, where the backend can
    /// give it later ([`Window::earlier`]); nor need there be such a place.
    fn find_after(
        &self,
        id: StreamId,
        after: Seq,
        now: SystemTime,
    ) -> Call<'_, Result<Found, Unreachable>> {
        let _ = after;
        self.find(id, now)
    }

    /// The same for a caller that may be a stranger: what `admits` refuses is [`Found::Unknown`]. That takes as long as it
    /// does of what never was, so that the time does not tell that it is there.
    fn find_for<'a>(
        &'a self,
        id: StreamId,
        after: Seq,
        admits: &'a Admits<'a>,
        now: SystemTime,
    ) -> Call<'a, Result<Found, Unreachable>> {
        Call::under_way(async move {
            Ok(match self.find_after(id, after, now).await? {
                Found::Here { access, .. } | Found::Expired { access } if !admits(&access) => {
                    Found::Unknown
                }
                found => found,
            })
        })
    }

    /// A log whose window is held here, written here or read to its end, and what a caller must match. Nobody is asked.
    fn held(&self, id: StreamId) -> Option<(Arc<Window>, Access)> {
        let _ = id;
        None
    }

    /// The finished logs that can still be found, for those who operate them. Looking is not reading.
    fn finished(&self, now: SystemTime) -> Call<'_, Result<Vec<Arc<Window>>, Unreachable>>;

    /// Changes the writer: only from exactly the writer and the last entry that `adoption` names. Every other epoch is
    /// fenced from then on.
    ///
    /// An adoption that stands already is a yes again, for as long as nothing was written under it: so after an unknown
    /// outcome the same is asked again. Its epoch has to be [fresh](Epoch::fresh), or another replica's may be taken for it.
    fn adopt(
        &self,
        id: StreamId,
        adoption: Adoption,
        now: SystemTime,
    ) -> Call<'_, Outcome<Refusal>>;

    /// Claims an idempotency key for a generation that is about to be opened.
    ///
    /// The claim of an id that is never opened lapses after [`CLAIM_TIME`], or what the backend is
    /// configured to; of one that is opened, it lives as long as the log. Claiming again with the same
    /// id is `Won` again, and the time counts from then: whoever dispatches for longer renews so.
    fn claim(
        &self,
        key: Key,
        id: StreamId,
        now: SystemTime,
    ) -> Call<'_, Result<Claim, Unreachable>>;

    /// Adds the digest of the request body, which is known later than the claim. Answers whether
    /// `id` (still) holds the key.
    fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
        now: SystemTime,
    ) -> Call<'_, Result<bool, Unreachable>>;

    /// Frees a key, if `id` still holds it.
    fn release(&self, key: Key, id: StreamId) -> Call<'_, Result<(), Unreachable>>;

    /// Keeps what it takes to make a generation's request again, for whoever takes it over: apart from its log, until its
    /// end and for no longer than the log could be read. What was kept before is replaced; after the end nothing is kept.
    fn keep_request(&self, id: StreamId, request: Bytes) -> Call<'_, Result<(), Unreachable>> {
        let _ = (id, request);
        Call::answered(Ok(()))
    }

    /// What [`keep_request`](Self::keep_request) keeps. `None`: nothing was kept, or no longer.
    fn kept_request(&self, id: StreamId) -> Call<'_, Result<Option<Bytes>, Unreachable>> {
        let _ = id;
        Call::answered(Ok(None))
    }

    /// What was staged beside the entries up to and with `through`, the last entry of some append, in their order; see
    /// [`Staging::beside`]. Of a log with a gap, what stands before that. Nothing, where there is no log.
    ///
    /// [`Staging::beside`]: crate::Staging::beside
    fn beside(&self, id: StreamId, through: Seq) -> Call<'_, Result<Vec<Bytes>, Unreachable>> {
        let _ = (id, through);
        Call::answered(Ok(Vec::new()))
    }

    /// What stands before a window that begins behind what others wrote, see [`Window::set_earlier`].
    fn earlier(&self, id: StreamId) -> Option<Arc<dyn Earlier>> {
        let _ = id;
        None
    }

    /// The name of this process among its replicas. `None` where there are no others.
    fn replica(&self) -> Option<Replica> {
        None
    }

    /// The other replicas that give signs of life now.
    fn replicas(&self) -> Call<'_, Result<Vec<Replica>, Unreachable>> {
        Call::answered(Ok(Vec::new()))
    }

    /// Says something to one replica, which is given it as [`Notice::Said`]. Nothing tells whether it was heard.
    fn say(&self, to: Replica, id: StreamId, word: Word) -> Call<'_, Result<(), Unreachable>> {
        let _ = (to, id, word);
        Call::answered(Ok(()))
    }

    /// Removes a log whose generation never was or never ended: no trace is left, nor a tombstone,
    /// nor its claim.
    fn remove(&self, id: StreamId) -> Call<'_, ()>;

    /// Passes an order on to the replica that writes `id`. Orders for generations of this process are the caller's
    /// business, not the journal's.
    fn order(&self, id: StreamId, order: Order) -> Call<'_, Result<Ordered, Unreachable>>;

    /// The next thing that has to be done here about a generation. One caller at a time. Each may be given more than
    /// once, also after a restart of the connection it comes by.
    fn next_notice(&self) -> Call<'_, (StreamId, Notice)>;

    /// Gives the orders that wait for a generation of this process, again if they were given already. Whoever has adopted
    /// one asks when it can be found: what came with the adoption has come too early.
    fn look(&self, id: StreamId) {
        let _ = id;
    }

    /// Says that this process writes nothing any more, so that nobody waits to find it dead. What it has left without an
    /// end is found by the others as if it had died.
    fn depart(&self) -> Call<'_, ()> {
        Call::answered(())
    }

    /// Lets go of what has expired, in backends that have to do it themselves.
    fn sweep(&self, now: SystemTime);

    /// What is held right now.
    fn usage(&self) -> Usage;
}

/// A digest over an idempotency key and the caller's credential.
pub type Key = [u8; 32];
/// A digest over the credential that a later caller must match.
pub type Access = [u8; 32];
/// A digest over a request body.
pub type BodyDigest = [u8; 32];

/// How long a claim waits for its log to be opened, or to be renewed: long enough for some renewals
/// to fail, short enough that a key is usable again soon after its owner died.
pub const CLAIM_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// A change of the writer: what it is to follow, and who writes from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Adoption {
    replaces: Epoch,
    last: Seq,
    epoch: Epoch,
}

impl Adoption {
    /// Of a log that ends with the entry `last` and was written under the epoch `replaces` until then.
    ///
    /// # Panics
    /// When `epoch` is not the higher one: journals would take what the one before has under way.
    pub fn new(replaces: Epoch, last: Seq, epoch: Epoch) -> Self {
        assert!(epoch > replaces, "a new writer has the higher epoch");
        Self {
            replaces,
            last,
            epoch,
        }
    }

    /// The epoch of the writer before.
    pub const fn replaces(self) -> Epoch {
        self.replaces
    }

    /// The last entry of those before.
    pub const fn last(self) -> Seq {
        self.last
    }

    /// The epoch of the new writer.
    pub const fn epoch(self) -> Epoch {
        self.epoch
    }
}

/// How a change of the log went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "only after a yes may the window commit"]
pub enum Outcome<R> {
    /// It stands.
    Yes,
    /// Nothing was changed, and why.
    No(R),
    /// No answer came: it may or may not stand.
    Unknown,
}

/// Why a log was not created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefusal {
    /// The caps, or those of the journal's server, are reached and nothing may be let go.
    #[error("the journal is full")]
    Full,
    /// There is a log of this id, or there was one.
    #[error("a log of this id exists")]
    Exists,
}

/// Why a log was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another writer has it than the caller, or than an adoption names.
    #[error("fenced off by epoch {epoch}")]
    Fenced {
        /// The epoch of the log.
        epoch: Epoch,
    },
    /// Another entry than the expected one is the last.
    #[error("the last entry is {last}")]
    Unexpected {
        /// The one that is.
        last: Seq,
    },
    /// A terminal stands.
    #[error("a terminal stands")]
    Ended,
    /// There is no such log (any more).
    #[error("no such log")]
    Vanished,
    /// The caps, or those of the journal's server, are reached and nothing may be let go.
    #[error("the journal is full")]
    Full,
    /// It takes no writes at the moment.
    #[error("the journal takes no writes")]
    Unready,
}

/// The journal could not be asked. Nothing is known; asking again is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("journal is out of reach")]
pub struct Unreachable;

/// What a log keeps about its creation, beside its entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// What a later caller must match.
    pub access: Access,
}

impl fmt::Debug for Open {
    /// Leaves the digest out: it is made from a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").finish_non_exhaustive()
    }
}

/// The end of a log as it stands in the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// There is no such log.
    None,
    /// There is.
    Last {
        /// Its writer.
        epoch: Epoch,
        /// Its last entry.
        last: Seq,
        /// Whether that is a terminal.
        terminal: bool,
        /// Over that entry's bytes, to compare with [`Window::digest`].
        digest: Digest,
    },
}

/// Whether a caller may have what carries this access digest.
pub type Admits<'a> = dyn Fn(&Access) -> bool + Send + Sync + 'a;

/// What a backend knows of an id.
#[derive(Clone, Debug)]
pub enum Found {
    /// It is here, to be read.
    Here {
        /// Its window.
        window: Arc<Window>,
        /// What the caller must match.
        access: Access,
        /// Another replica writes it; the window follows for as long as somebody holds this, see [`Follow::reading`].
        follow: Option<Follow>,
    },
    /// It was here; its retention ended.
    Expired {
        /// What the caller must match to be told so.
        access: Access,
    },
    /// It never was, or nobody remembers.
    Unknown,
}

/// Keeps the window of a generation that another replica writes up to date. Whoever looks at it holds one; what is left
/// when the last is dropped is let go.
#[derive(Clone)]
pub struct Follow {
    held: Held,
    read: Option<Read>,
}

type Held = Arc<dyn Any + Send + Sync>;
type Read = Arc<dyn Fn() -> Held + Send + Sync>;

impl Follow {
    /// A hold on whatever does the following, which is dropped with the last of them. Each of them is a reader.
    pub fn new(held: Held) -> Self {
        Self { held, read: None }
    }

    /// The same for one who only looks, until he [reads](Self::reading): `read` gives what a reader holds.
    pub fn looking(held: Held, read: impl Fn() -> Held + Send + Sync + 'static) -> Self {
        let read = Some(Arc::new(read) as Read);
        Self { held, read }
    }

    /// A hold that is a reader: the writer is told that there is one here, and shows what it writes as it stands. For who
    /// only looks, the window may be as old as the look.
    #[must_use]
    pub fn reading(&self) -> Self {
        match &self.read {
            Some(read) => Self::new(read()),
            None => self.clone(),
        }
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Follow")
            .field(&Arc::strong_count(&self.held))
            .finish()
    }
}

/// What one replica asks of the one that writes a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Its client, or an operator, has called stop on another replica.
    Stop {
        /// It was an operator.
        admin: bool,
    },
    /// Readers came to another replica, or the last of them left it.
    Readers {
        /// Which replica.
        replica: Replica,
        /// Whether it has any now.
        any: bool,
    },
}

/// Something to do about a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An order for one that this process writes.
    Order(Order),
    /// Another replica has adopted one that this process wrote: nothing of it can be appended here any more.
    Taken,
    /// One whose writer is gone, and that has no end. Others are told as well: the log decides who ends it.
    Ownerless(Ownerless),
    /// One that this process wrote and has done with, and whose end the journal has lost.
    EndLost(Ownerless),
    /// Another replica has said something about it.
    Said {
        /// Which one.
        from: Replica,
        /// What.
        word: Word,
    },
}

/// What replicas say to each other while one hands a generation over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Its writer would like to leave it: it writes under this epoch, nothing is under way, and this is the last entry.
    Offer {
        /// The writer's epoch.
        epoch: Epoch,
        /// The last entry.
        last: Seq,
    },
    /// The offer is being looked into: whoever takes it adopts the log from exactly that entry.
    Considers {
        /// The epoch of the offer.
        epoch: Epoch,
    },
    /// The offer is not taken.
    Declines {
        /// The epoch of the offer.
        epoch: Epoch,
        /// Why, in words of lowercase letters and `_`, with commas between them: the gates that refuse. Of more than 200
        /// characters the last words are left out.
        why: String,
    },
}

/// What is known of a log that nobody writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownerless {
    /// The epoch that it wrote under.
    pub epoch: Epoch,
    /// What it kept beside the log, see [`Window::set_label`].
    pub label: Bytes,
}

/// One running process, for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica(pub u128);

/// Whether an order was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Its writer has it, or will find it when it is back in touch.
    Passed,
    /// Nobody writes it any more: its writer is gone, or it has ended, or it never was.
    NoWriter,
}

/// Who has an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The caller.
    Won,
    /// Another generation.
    Taken {
        /// Which one.
        id: StreamId,
        /// The digest of its request body, once known.
        body: Option<BodyDigest>,
    },
}

/// One thing that is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// A word for metrics, from a closed set.
    pub name: &'static str,
    /// Whether something is wrong there. What nobody could look at is not.
    pub is_wrong: bool,
}

/// What a backend holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes really held, with what is [kept elsewhere](Journal::keep).
    pub bytes: u64,
    /// Logs without a terminal.
    pub live: usize,
    /// Logs with one.
    pub finished: usize,
    /// Ids remembered after their log was let go.
    pub tombstones: usize,
    /// Finished logs let go before their retention ended, ever.
    pub evicted_early: u64,
}
