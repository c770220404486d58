//! One generation's life, from dispatch to its terminal.
//!
//! ```text
//!  server ──> Candidate ──dispatch──> Producer ──stage──> Window ──> Reader (many)
//!                 │                      │  ▲
//!              Registry               Lifecycle (pure)      Committer ──> Journal
//! ```
//!
//! What this crate promises:
//!
//! * no reader sees an entry under its sequence before it is committed;
//! * a reader that leaves is never a stop: what follows is the orphan policy's decision;
//! * a generation has exactly one terminal, whichever of end, stop, orphan policy, age and shutdown
//!   comes first;
//! * the journal never holds back a reader that is attached: when it fails, the suffix is shown
//!   without ids until it is healed.
//!
//! What it does not know: status codes, sockets, Redis, files. Upstream bytes come through
//! [`ByteSource`], time comes from tokio's clock, and rules live in [`lifecycle`] without either.

pub mod access;
mod alarm;
mod bell;
mod committer;
mod counters;
mod form;
mod handle;
mod happening;
mod intake;
mod leg;
pub mod lifecycle;
mod log;
pub mod migration;
mod orphan;
mod payload;
mod producer;
mod reader;
mod registry;
mod retry;
mod source;
mod steady;
mod takeover;
mod transcript;
mod whereabouts;
mod window_at;

pub use self::access::{Access, CredentialHeaders};
pub use self::alarm::Alarm;
pub use self::committer::HealBounds;
pub use self::counters::Counters;
pub use self::form::error_form;
pub use self::handle::{Durability, Handle, Head, Spec};
pub use self::happening::{Happening, Onlooker, Onlookers};
pub use self::leg::Leg;
pub use self::orphan::{OrphanPolicy, ParseOrphanPolicyError};
pub use self::payload::{HeadFields, Label, OpenPayload, TerminalPayload, UpstreamSaid, timestamp};
pub use self::producer::{Answer, Estate, Limits, Producer, Shared, Taken, Told};
pub use self::reader::{Attached, Presence};
pub use self::registry::Registry;
pub use self::retry::{RetryKey, RetryWindow};
pub use self::source::{Again, ByteSource, Keep, Onward, Read, Rest};
pub use self::steady::steady_now;
pub use self::takeover::{EndAs, TakenOver, adopt, take_over};
pub use self::transcript::{Moves, Whole, transcript, whole_transcript};
pub use self::whereabouts::Leave;
pub use self::window_at::window_at;
