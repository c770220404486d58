//! What happened, in its order: a digest of it always, and the words on demand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Moment;

/// A handle; clones write to the same one.
#[derive(Clone)]
pub struct Trace(Arc<Mutex<Written>>);

struct Written {
    digest: u64,
    shows: Shows,
}

/// A line of a screen or two: the rest of an entry says little.
fn short(line: &str) -> &str {
    let end = line
        .char_indices()
        .nth(200)
        .map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// Who reads the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Nobody.
    Nothing,
    /// Whoever runs it.
    Everything,
}

impl Trace {
    /// One without a word.
    pub fn new(shows: Shows) -> Self {
        // The offset basis of FNV-1a.
        let digest = 0xcbf2_9ce4_8422_2325;
        Self(Arc::new(Mutex::new(Written { digest, shows })))
    }

    /// Notes what happened.
    pub fn note(&self, at: Moment, who: &str, what: fmt::Arguments<'_>) {
        let line = format!("{:>9.3} {who:<10} {what}", at.as_secs_f64());
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in line.bytes() {
            written.digest = (written.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if written.shows == Shows::Everything {
            #[expect(clippy::print_stdout, reason = "it was asked for")]
            {
                println!("{}", short(&line));
            }
        }
    }

    /// Of everything so far: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).digest
    }
}
