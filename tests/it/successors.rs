//! A replica that goes leaves its answers to others (protocol.md 8.9): real processes, each with an engine of its own, and
//! a real Redis.

mod credentials;
mod hand_over;
mod races;
mod rolling;
mod scene;
mod takeover;
