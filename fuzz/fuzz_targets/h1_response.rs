//! An HTTP/1.1 response, head and body: the same however it is cut, and chunks against their oracle.
//! The checks are those of the crate's own tests, which also replay the corpus.
//!
//! `cargo +nightly fuzz run h1_response`

#![no_main]

use libfuzzer_sys::fuzz_target;

// What is fuzzed is private to its crate, and pure: it is compiled here once more.
#[path = "../../crates/upstream/src/h1/check.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod check;
#[path = "../../crates/upstream/src/h1/chunked.rs"]
mod chunked;
#[path = "../../crates/upstream/src/head.rs"]
#[allow(dead_code, reason = "of use to more than the parsers")]
mod head;
#[path = "../../crates/upstream/src/h1/naive.rs"]
mod naive;
#[path = "../../crates/upstream/src/h1/payload.rs"]
#[allow(dead_code, reason = "of use to more than the parsers")]
mod payload;
#[path = "../../crates/upstream/src/h1/receiving.rs"]
mod receiving;
#[path = "../../crates/upstream/src/h1/response.rs"]
mod response;

fuzz_target!(|file: &[u8]| check::fuzz(file));
