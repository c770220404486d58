//! The event-stream decoder against its oracle, whole and cut, and the round trip through the
//! encoder. The checks are those of the crate's own tests, which also replay the corpus.
//!
//! `cargo +nightly fuzz run sse_decode`

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sse/tests/it/check.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod check;
#[path = "../../crates/sse/tests/it/naive.rs"]
mod naive;

fuzz_target!(|file: &[u8]| check::fuzz(file));
