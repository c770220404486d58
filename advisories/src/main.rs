//! Looks for known advisories about what is built in: `streamweld-advisories DATABASE PASSED-OVER LOCK...`.
//!
//! The database is a folder of advisories as RustSec writes them, of the packages that `packages.txt` in it names. A
//! package that is not named there has never been looked for, so that is a finding too, as is one that was yanked or
//! is not looked after any more, if its advisory says so. Advisories whose ids begin a line of the file PASSED-OVER are none,
//! but each of them has to be found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use rustsec::report::Settings;
use rustsec::{Database, Lockfile, Report};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [database, passed_over, locks @ ..] = &arguments[..] else {
        eprintln!("usage: streamweld-advisories DATABASE PASSED-OVER LOCK...");
        return ExitCode::from(2);
    };
    match look_at_all(database, passed_over, locks) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in findings {
                eprintln!("{finding}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

type Error = Box<dyn std::error::Error>;

/// Something about a package.
struct Finding {
    /// The id of its advisory, if it is about one.
    advisory: Option<String>,
    text: String,
}

/// What is found in any of the lock files and is not passed over, and what is passed over and is not found.
fn look_at_all(
    database: &Path,
    passed_over: &Path,
    locks: &[PathBuf],
) -> Result<Vec<String>, Error> {
    let text = fs::read_to_string(passed_over)?;
    let mut unused: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.starts_with("RUSTSEC-"))
        .collect();
    let passed_over_ids = unused.clone();
    let mut findings = Vec::new();
    for lock in locks {
        for finding in look(database, lock)? {
            let id = finding.advisory.as_deref().unwrap_or_default();
            unused.remove(id);
            if !passed_over_ids.contains(id) {
                findings.push(finding.text);
            }
        }
    }
    findings.extend(
        unused
            .into_iter()
            .map(|id| format!("{}: nothing is found for {id}", passed_over.display())),
    );
    Ok(findings)
}

/// Everything about one lock file.
fn look(folder: &Path, lock: &Path) -> Result<Vec<Finding>, Error> {
    let known = fs::read_to_string(folder.join("packages.txt"))?;
    let known: BTreeSet<&str> = known.lines().collect();
    let database = Database::open(folder)?;
    let lockfile = Lockfile::load(lock)?;
    let place = lock.display();
    let mut findings = Vec::new();
    for package in &lockfile.packages {
        let is_ours = package.source.is_none();
        if !is_ours && !known.contains(package.name.as_str()) {
            findings.push(Finding {
                advisory: None,
                text: format!(
                    "{place}: {} was never looked for; see advisories/README.md",
                    package.name
                ),
            });
        }
    }
    let report = Report::generate(&database, &lockfile, &Settings::default());
    let vulnerable = report
        .vulnerabilities
        .list
        .into_iter()
        .map(|found| (found.package, Some(found.advisory), "vulnerable".to_owned()));
    let warnings = report.warnings.into_values().flatten().map(|warning| {
        let kind = warning.kind.as_str().to_owned();
        (warning.package, warning.advisory, kind)
    });
    for (package, advisory, kind) in vulnerable.chain(warnings) {
        let told = advisory.as_ref().map_or_else(String::new, |advisory| {
            format!(": {}: {}", advisory.id, advisory.title)
        });
        findings.push(Finding {
            advisory: advisory.map(|it| it.id.to_string()),
            text: format!(
                "{place}: {} {} is {kind}{told}",
                package.name, package.version
            ),
        });
    }
    println!(
        "{place}: {} packages, {} advisories of {} packages",
        lockfile.packages.len(),
        database.iter().count(),
        known.len()
    );
    Ok(findings)
}
