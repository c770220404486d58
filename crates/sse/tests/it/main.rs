//! What the codec promises, tested from outside: bytes in, events out.
//!
//! `naive` is the oracle, `check` holds the decoder against it and is also the body of the fuzz
//! target. The other modules bring the inputs.

#![expect(
    clippy::unwrap_used,
    reason = "clippy allows it in test functions, not in what they call"
)]

mod check;
mod corpus;
mod encoder;
mod limits;
mod naive;
mod random;
mod spec;
mod splits;
