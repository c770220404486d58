//! The journal: the append-only log of one streamed answer, and how it is read.
//!
//! An entry is encoded once, in the form it has on the wire, into a [`Window`]; a [`Reader`] is a
//! position in it. There is no queue, no channel and no task per reader, so a slow one holds back
//! nobody. A backend ([`Journal`]) makes entries durable; [`Memory`] is the one in this crate.
//!
//! ```text
//!                 committed     received
//!                     |             |
//!   open e e e e e e e e  e e e e e e           one window
//!        ^             ^
//!      reader        reader                      positions; they see up to `committed`
//! ```
//!
//! The writer stages entries, a backend appends them, the writer commits: only then are they shown
//! under their sequence. While no backend answers, a window may be exposed: readers then see what
//! was received as well, without ids.
//!
//! A window is bounded and may begin anywhere. What a journal still has before it a reader is given in
//! pages ([`Earlier`]); where there is nothing before it, a reader that it has passed by is told.
//!
//! This crate does no I/O, spawns nothing, reads no clock (time is an argument) and never looks
//! inside a payload.

mod contract;
mod cursor;
mod earlier;
mod id;
mod idline;
mod kept;
mod level;
mod memory;
mod reader;
pub mod rules;
mod segment;
mod types;
mod until;
mod window;

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "testing")]
pub mod faulty;

pub use contract::{
    Access, Admits, Adoption, BodyDigest, CLAIM_TIME, Call, Check, Claim, Follow, Found, Journal,
    Key, Notice, Open, OpenRefusal, Order, Ordered, Outcome, Ownerless, Refusal, Replica, Tail,
    Unreachable, Usage, Word,
};
pub use cursor::{Cursor, CursorError, Left, parse_seq};
pub use earlier::{Earlier, Page};
pub use id::{IdText, ParseIdError, StreamId};
pub use kept::{Keeping, Kept};
pub use level::{Level, LevelError};
pub use memory::{Memory, MemoryConfig};
pub use reader::{Gone, Reader, Step};
pub use types::{Closed, Epoch, Kind, Seq, Terminal, TerminalParts, UnknownKind, View};
pub use until::window_until;
pub use window::{
    Batch, Digest, Entry, EntryBytes, Listed, Listing, Marks, Meter, MirrorError, Mirrored,
    Staging, Window, WindowConfig,
};
