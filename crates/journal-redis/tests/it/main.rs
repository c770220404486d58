//! The Redis journal against a real server. Skipping is not an option: without `redis-server` these tests fail.
#![allow(clippy::unwrap_used, reason = "tests")]

mod appends;
mod commands;
mod conformance;
mod connect;
mod elsewhere;
mod feed;
mod follow;
mod outages;
mod servers;
mod tls;
mod writer;
