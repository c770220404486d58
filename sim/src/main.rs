//! Runs seeds: one of them in this process, or many, each in a process of its own.
//!
//! ```text
//! streamweld-sim SEED            runs it, and tells what happened
//! streamweld-sim FROM..TO        runs all of them, and tells which of them fail, and why
//!   --quiet                      tells of one seed only what came of it
//!   --jobs N                     so many at once (as many as there are cores)
//!   --without RULE               leaves out a rule of Redis; see `Broken`
//! ```
//!
//! With `STREAMWELD_SIM_LOG` set to a filter, such as `debug`, the log of all replicas is shown as well.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use streamweld_sim::plan::Plan;
use streamweld_sim::redis::Broken;
use streamweld_sim::runner::{self, Report};
use streamweld_sim::{Shows, run};
use tracing_subscriber::EnvFilter;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]
fn main() -> ExitCode {
    let asked = match Asked::read(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    match asked.seeds.clone() {
        Seeds::One(seed) if runner::is_seeded(seed) => {
            one(seed, asked.shows, asked.without.map(|(_, rule)| rule))
        }
        // Chance has to be made before the process begins.
        Seeds::One(seed) => runner::again(seed, asked.shows, asked.without.map(|(name, _)| name)),
        Seeds::Many(seeds) => {
            let began = Instant::now();
            let count = seeds.end - seeds.start;
            let mut ends: BTreeMap<String, usize> = BTreeMap::new();
            let mut failed = 0;
            let without = asked.without.map(|(name, _)| name);
            runner::each(seeds, asked.jobs, without, |report: Report| {
                for end in report.ends() {
                    *ends.entry(end.to_owned()).or_default() += 1;
                }
                if !report.passed {
                    failed += 1;
                    println!("{}", report.text.trim_end());
                }
            });
            println!("{count} seeds in {:.0?}; ends: {ends:?}", began.elapsed());
            println!("{} passed, {failed} failed", count - failed);
            if failed == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Runs one here.
#[expect(clippy::print_stdout, reason = "it is a command")]
fn one(seed: u64, shows: Shows, without: Option<Broken>) -> ExitCode {
    if let Ok(filter) = std::env::var("STREAMWELD_SIM_LOG") {
        let filter = EnvFilter::new(filter);
        tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_env_filter(filter)
            .init();
    }
    let panics: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&panics);
    // Whoever panics in a task of a server ends that alone, and nobody would hear of it.
    std::panic::set_hook(Box::new(move |info| {
        heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(info.to_string());
    }));
    let plan = Plan::of(seed);
    let told = plan.to_string();
    // On a thread of its own, whose chance nobody else has used.
    let simulated = thread::spawn(move || run(plan, shows, without)).join();
    let panics = std::mem::take(&mut *panics.lock().unwrap_or_else(PoisonError::into_inner));
    let mut outcome = simulated.unwrap_or_default();
    let panicked = |panic: String| format!("somebody panicked: {}", panic.replace('\n', " "));
    outcome.violations.extend(panics.into_iter().map(panicked));
    println!("seed {seed}: {told}");
    println!(
        "  digest {:016x}, {:.1?} simulated",
        outcome.digest, outcome.simulated
    );
    println!("{}{}", runner::ENDS, outcome.ends.join(" "));
    for violation in &outcome.violations {
        println!("  violated: {violation}");
    }
    if outcome.violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("  again: cargo run -p streamweld-sim -- {seed}");
    ExitCode::FAILURE
}

#[derive(Clone)]
enum Seeds {
    One(u64),
    Many(Range<u64>),
}

struct Asked {
    seeds: Seeds,
    shows: Shows,
    jobs: usize,
    without: Option<(&'static str, Broken)>,
}

impl Asked {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut asked = Self {
            seeds: Seeds::Many(0..0),
            shows: Shows::Everything,
            jobs: cores,
            without: None,
        };
        let mut is_told = false;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} takes a value"));
            match &*arg {
                "--quiet" => asked.shows = Shows::Nothing,
                "--jobs" => asked.jobs = value()?.parse().map_err(|_| "--jobs takes a number")?,
                "--without" => {
                    let name = value()?;
                    let found = Broken::ALL.into_iter().find(|(known, _)| *known == name);
                    asked.without = Some(found.ok_or_else(|| {
                        let known: Vec<_> = Broken::ALL.iter().map(|(known, _)| *known).collect();
                        format!("there is no rule {name}; there are {}", known.join(", "))
                    })?);
                }
                seeds => {
                    asked.seeds = read_seeds(seeds)
                        .ok_or_else(|| format!("{seeds} is neither SEED nor FROM..TO"))?;
                    is_told = true;
                }
            }
        }
        if is_told {
            Ok(asked)
        } else {
            Err("say which: SEED, or FROM..TO".to_owned())
        }
    }
}

fn read_seeds(text: &str) -> Option<Seeds> {
    match text.split_once("..") {
        Some((from, to)) => Some(Seeds::Many(from.parse().ok()?..to.parse().ok()?)),
        None => Some(Seeds::One(text.parse().ok()?)),
    }
}
