//! What runs on the hosts.

mod engine;
mod redis;
mod replica;

pub use engine::{Engine, TEXT};
pub use redis::Redis;
pub use replica::Replica;

/// Where clients reach a replica.
pub const DATA: u16 = 8080;
const ADMIN: u16 = 9090;
const ENGINE: u16 = 8000;
const REDIS: u16 = 6379;
