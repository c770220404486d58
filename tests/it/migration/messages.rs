//! Anthropic messages go on by prefill (protocol.md 8.8).

mod everywhere;
mod hosted;
mod joined;
mod message;
mod refusals;
