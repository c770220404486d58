//! A replica that goes leaves its answers to others (protocol.md 8.9): real processes, each with an engine of its own, and
//! a real Redis.

mod clocks;
mod credentials;
mod cursors;
mod cut_off;
mod elsewhere;
mod hand_over;
mod points;
mod races;
mod rolling;
mod scene;
mod sessions;
mod takeover;
mod traced;
