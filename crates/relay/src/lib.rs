//! How replicas reach each other while Redis is away: the owner of a generation tells another replica what its own
//! readers see.
//!
//! One request for each generation that is followed, over HTTP/2 and mutual TLS, and one connection for each replica that
//! is asked: none while nobody is. What goes over it is in `wire`: ids, cursors and entries, and for a replica that has never
//! heard of the generation what its log says of it. No prompt, no request, no credential, and no order: a stop goes
//! through the journal.
//!
//! Whoever has a certificate of the relay's CA is a replica, and is told of every generation whose id it knows. So that
//! CA is one for these replicas and for nobody else.

mod connection;
mod counters;
mod identity;
mod listener;
mod relay;
mod seldom;
mod telling;
mod told;
mod wire;

pub use counters::Counters;
pub use identity::{Files, IdentityError};
pub use listener::{Generations, Listener, Owned};
pub use relay::{BindError, Config, Relay};
