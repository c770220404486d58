//! Rules about the code base itself, so that they hold without a reviewer.
//!
//! Each test lists everything that is wrong, with its place and what to do, and not only the first. They read
//! files and `cargo metadata`; they build nothing and need no network.

mod attacks;
mod dependencies;
mod documents;
mod faults;
mod packages;
mod promises;
mod sources;
mod tree;

/// Fails with every finding on a line of its own.
#[track_caller]
fn check(rule: &str, mut findings: Vec<String>) {
    findings.sort();
    assert!(findings.is_empty(), "{rule}\n  {}", findings.join("\n  "));
}
