//! What a process uses, as the kernel tells it.

use std::fs;

/// What a process has used until now.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    nanos: u64,
    kib: u64,
}

impl Usage {
    /// What the process of this number has used.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let nanos = threads.filter_map(|thread| {
            // The first figure is the time on a CPU, in nanoseconds.
            let used = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            used.split_whitespace().next()?.parse::<u64>().ok()
        });
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Self {
            nanos: nanos.sum(),
            kib: kib.expect("the kernel tells"),
        }
    }

    /// Microseconds on a CPU.
    #[must_use]
    pub fn cpu_since(&self, before: &Self) -> f64 {
        (self.nanos - before.nanos) as f64 / 1e3
    }

    /// By how much its resident memory has grown, in KiB.
    #[must_use]
    pub fn kib_since(&self, before: &Self) -> f64 {
        self.kib as f64 - before.kib as f64
    }
}
