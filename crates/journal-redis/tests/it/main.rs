//! The Redis journal against a real server. Skipping is not an option: without `redis-server` these tests fail.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopted;
mod appends;
mod beside;
mod checks;
mod cluster;
mod commands;
mod conformance;
mod connect;
mod differential;
mod elsewhere;
mod feed;
mod follow;
mod levels;
mod logs;
mod outages;
mod pages;
mod presence;
mod refused;
mod relay;
mod replaced;
mod request;
mod sentinel;
mod servers;
mod tls;
mod words;
mod writer;
