//! A process for each seed.
//!
//! Chance is made to follow from the seed before a process begins (`system.c`), and what a process has only once, such
//! as counters, begins anew in each. A run that hangs is ended, and fails.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::trace::Shows;

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which.
    pub seed: u64,
    /// Whether everything held.
    pub passed: bool,
    /// What the process said.
    pub text: String,
}

impl Report {
    /// How readers ended, each in a word.
    pub fn ends(&self) -> impl Iterator<Item = &str> {
        let line = self.text.lines().find_map(|line| line.strip_prefix(ENDS));
        line.unwrap_or("no-end-of-the-run").split(' ')
    }

    /// What was violated, each in a line.
    pub fn violations(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .filter_map(|line| line.strip_prefix("  violated: "))
    }
}

/// How the line with the ends begins.
pub const ENDS: &str = "  ends: ";
/// What `system.c` looks for.
const SEED: &str = "STREAMWELD_SIM_SEED";

/// Whether this process was begun for this seed.
pub fn is_seeded(seed: u64) -> bool {
    std::env::var(SEED).is_ok_and(|set| set == seed.to_string())
}

/// Runs a seed in another process, which says what it has to say here.
pub fn again(seed: u64, shows: Shows, without: Option<&str>) -> ExitCode {
    let this = std::env::current_exe().expect("this program has a path");
    let status = command(&this, seed, shows, without).status();
    let is_well = status.is_ok_and(|status| status.success());
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs seeds, so many at once, and gives what came of each.
pub fn each(
    seeds: Range<u64>,
    jobs: usize,
    without: Option<&str>,
    take: impl FnMut(Report) + Send,
) {
    let this = std::env::current_exe().expect("this program has a path");
    each_of(&this, seeds, jobs, without, take);
}

/// The same by the program at a path.
///
/// # Panics
/// When it cannot be run.
pub fn each_of(
    program: &Path,
    seeds: Range<u64>,
    jobs: usize,
    without: Option<&str>,
    take: impl FnMut(Report) + Send,
) {
    let next = AtomicU64::new(seeds.start);
    let take = Mutex::new(take);
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let report = report(program, seed, without);
                    take.lock().unwrap_or_else(PoisonError::into_inner)(report);
                }
            });
        }
    });
}

/// Runs one seed by the program at a path.
///
/// # Panics
/// When it cannot be run.
pub fn report(program: &Path, seed: u64, without: Option<&str>) -> Report {
    let mut command = command(program, seed, Shows::Nothing, without);
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the program can be run");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = output.status.success();
    if !passed && !text.contains("  violated: ") {
        text = format!("seed {seed}: ended with {}\n{text}", output.status);
    }
    if !passed {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    Report { seed, passed, text }
}

fn command(program: &Path, seed: u64, shows: Shows, without: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command
        .arg(seed.to_string())
        .env(SEED, seed.to_string())
        // No backend has TLS, and to read what the machine trusts takes longer than the run.
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR");
    if shows == Shows::Nothing {
        command.arg("--quiet");
    }
    if let Some(rule) = without {
        command.args(["--without", rule]);
    }
    command
}
