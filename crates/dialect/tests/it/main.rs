//! The crate at its border: bytes of a stream in, facts out.

#![expect(
    clippy::unwrap_used,
    reason = "clippy allows it in test functions, not in what they call"
)]

mod endings;
mod fixtures;
mod ordinary;
mod request;
