//! The journal in Redis: what a replica has committed outlives it, and every replica can read it.
//!
//! A generation is one Redis stream whose entries are batches; see [`record`] for their form and docs/journal.md for
//! keys, expiry and what each command guarantees. The writer's window is still what local readers read: an append
//! sends the batch that its owner has staged, as one command, and answers what became of it. Other replicas fill a
//! window of their own from what stands. Either window is bounded; a reader that stands before it is given the log in
//! pages. Whoever goes on in the place of a writer finds its request and what it kept beside its entries there as well.
//!
//! What is promised is what Redis promises: an append that has its yes is in the memory of that server, and, at a
//! [level](streamweld_journal::Level) above that, on replicas of it or on its disk. What a failover loses all the same
//! is seen when the tail is read back, which this crate insists on after everything that may have changed it.

mod beside;
mod checks;
mod claims;
mod config;
mod durability;
mod ends;
pub mod feed;
mod find;
mod follow;
mod journal;
mod keys;
mod link;
mod nodes;
mod orders;
mod pages;
mod presence;
mod publish;
mod readers;
pub mod record;
pub mod relay;
mod request;
mod script;
mod seldom;
mod slot;
mod socket;
mod table;
mod tail;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
mod write;

pub use checks::Finding;
pub use config::Config;
pub use journal::RedisJournal;
pub use keys::{BadPrefix, Prefix};
pub use link::{ConnectError, Timing};
pub use socket::{Dialer, Duplex};
pub use target::{RedisUrl, Target, UrlError};
