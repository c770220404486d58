//! Relays over real sockets, with real certificates.
#![allow(clippy::unwrap_used, reason = "tests")]

mod pair;
mod refused;
mod told;
