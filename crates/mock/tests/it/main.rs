//! The mock and the relay over real sockets, seen by a client that speaks bytes.

#![expect(
    clippy::unwrap_used,
    reason = "clippy's own exemption covers tests, not what they call"
)]

mod answers;
mod calls;
mod client;
mod connection;
mod engine;
mod faults;
mod framing;
mod gates;
mod h2;
mod raw;
mod relay;
mod routes;
