//! Many seeds hold, each is the same run every time, and a rule that is left out is found.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use streamweld_sim::runner::{Report, each_of, report};

/// The program. It is begun anew for each seed.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_streamweld-sim"))
}

/// Runs so many, or the one that `SEED` names.
#[test]
fn whatever_goes_wrong_readers_are_shown_one_answer() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..COUNT,
    };
    let count = seeds.end - seeds.start;
    let found = Mutex::new((Vec::new(), 0));
    each_of(program(), seeds, 2, None, |report: Report| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_whole = |end: &&str| *end == "reader:done";
        found.1 += report.ends().filter(is_whole).count();
        if !report.passed {
            found.0.push(report.text);
        }
    });
    let (failed, whole) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        failed.is_empty(),
        "{} of {count} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    // Faults that end every answer would find nothing wrong either.
    assert!(
        whole as u64 >= count,
        "{whole} readers of {count} runs had a whole answer"
    );
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for seed in [0, 6, 17, 153, 256] {
        let [one, other] = [(); 2].map(|()| report(program(), seed, None).text);
        assert!(one.contains("  digest "), "{one}");
        assert_eq!(one, other);
    }
}

/// Runs seeds without a rule until one fails.
#[track_caller]
fn is_found(rule: &str) {
    for seed in 0..MOST {
        let report = report(program(), seed, Some(rule));
        if report.violations().next().is_some() {
            return;
        }
    }
    panic!("{MOST} seeds hold without {rule}");
}

#[test]
fn that_appends_are_ordered_is_missed() {
    is_found("appends-are-ordered");
}

#[test]
fn that_an_adoption_is_written_is_missed() {
    is_found("adoptions-are-written");
}

#[test]
fn that_what_was_answered_stands_is_missed() {
    is_found("answers-are-true");
}

/// How many a test run takes time for; `make sim` takes more.
const COUNT: u64 = 200;
/// Where a rule that is left out has to show.
const MOST: u64 = 400;
