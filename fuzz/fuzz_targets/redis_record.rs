//! A journal record as it comes from Redis: refused, or the one way to write what it says, and shown to readers
//! without harm. The checks are those of the crate's own tests, which also replay the corpus.
//!
//! `cargo +nightly fuzz run redis_record`

#![no_main]

use libfuzzer_sys::fuzz_target;

// The format needs nothing of its crate, whose client library and runtime would have to be built here otherwise.
#[path = "../../crates/journal-redis/src/record/check.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod check;
#[path = "../../crates/journal-redis/src/record.rs"]
#[allow(dead_code, reason = "of use to more than the check")]
mod record;

fuzz_target!(|file: &[u8]| check::fuzz(file));
