//! A Redis that is not there: the commands that the journal uses, over the protocol of Redis, in simulated time.
//!
//! [`Store`] is the data and what each command does to it; [`Server`] adds scripts, subscribers and connections, and
//! remembers the last writes apart, so that a failover can lose any end of them. `tests/it/differential.rs` holds it to a
//! real server.

mod broken;
mod lua;
mod reply;
mod request;
mod server;
mod store;
mod stream;

pub use broken::Broken;
pub use reply::{Protocol, Reply};
pub use request::{Malformed, parse};
pub use server::{Client, Lost, Server};
pub use store::Store;
