//! What the stories are told with: a server in front of a mock, and a client that sees every byte.
//!
//! Nothing here waits for a time to pass: waits are for conditions, and every wait has a deadline.

mod client;
mod harness;
mod sse;

pub use self::client::{Body, CHAT, Client, End, Response, patience};
pub use self::harness::{Harness, Setup};
pub use self::sse::{Block, blocks, events, texts};
