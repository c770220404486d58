//! The Redis journal against a real server. Skipping is not an option: without `redis-server` these tests fail.
#![allow(clippy::unwrap_used, reason = "tests")]

mod appends;
mod conformance;
mod elsewhere;
mod feed;
mod follow;
mod outages;
mod server;
mod servers;
mod writer;
