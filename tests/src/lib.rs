//! What the stories are told with: a server in front of a mock, and a client that sees every byte.
//!
//! Nothing here waits for a time to pass: waits are for conditions, and every wait has a deadline.

mod binary;
mod client;
mod coded;
mod collector;
pub mod frames;
mod harness;
mod leave;
mod linked;
mod onlooker;
mod replicas;
mod resume;
mod several;
mod shown;
mod slow;
mod sse;
mod tap;
mod twins;
mod usage;
mod watch;
mod wire;

pub use self::binary::Process;
pub use self::client::{Body, CHAT, Client, End, Response, patience};
pub use self::coded::Decoding;
pub use self::collector::{Collector, Span};
pub use self::harness::{Harness, Replica, Setup};
pub use self::leave::leave;
pub use self::linked::{Link, Linked};
pub use self::onlooker::Onlooker;
pub use self::replicas::{Over, Pair, PairSetup};
pub use self::resume::{Way, ends, get_slowly, numbered};
pub use self::several::Several;
pub use self::shown::{Shown, ask, question, without_ids};
pub use self::slow::reset;
pub use self::sse::{Block, blocks, events, texts};
pub use self::tap::{Halt, Tap, is_command};
pub use self::twins::{GROUP, Twins, TwinsSetup, engine, spec, twins};
pub use self::usage::Usage;
pub use self::watch::{metric, state, wait_end, wait_seq, wait_state};
pub use self::wire::{RawBackend, Wire};
