//! The Redis journal against a real server. Skipping is not an option: without `redis-server` these tests fail.
#![allow(clippy::unwrap_used, reason = "tests")]

mod appends;
mod checks;
mod commands;
mod conformance;
mod connect;
mod elsewhere;
mod feed;
mod follow;
mod levels;
mod outages;
mod pages;
mod presence;
mod servers;
mod tls;
mod writer;
