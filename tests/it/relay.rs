//! While Redis is away, a reader elsewhere sees what a reader at the owner sees (protocol.md 8.10): real processes with real
//! certificates, a real Redis that is stopped or killed.

mod away;
mod cut;
mod found;
mod live;
mod scene;
mod secret;
