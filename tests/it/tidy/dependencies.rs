//! Which crate may depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::check;
use super::tree::{read, root};

const LIST: &str = "tests/tidy/dependencies.txt";

#[test]
fn crates_depend_on_what_they_may() {
    let allowed = allowed();
    let mut findings = Vec::new();
    for (package, dependencies) in metadata() {
        let Some(allowed) = allowed.get(&package) else {
            // The tests stand on top and may use everything.
            if package != env!("CARGO_PKG_NAME") {
                findings.push(format!("{package} has no line in {LIST}"));
            }
            continue;
        };
        for dependency in dependencies.difference(allowed) {
            findings.push(format!(
                "{package} must not depend on {dependency}; or allow it in {LIST}, with a reason"
            ));
        }
        for unused in allowed.difference(&dependencies) {
            findings.push(format!(
                "{package} no longer depends on {unused}: take it out of {LIST}"
            ));
        }
    }
    check("crates depend on what they may", findings);
}

/// The list, crate by crate.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    read(LIST)
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            line.split_once(": ")
                .unwrap_or_else(|| panic!("{LIST}: {line:?} is no `crate: dependencies`"))
        })
        .map(|(package, dependencies)| (package.to_owned(), words(dependencies)))
        .collect()
}

/// The packages of the workspace, each with its normal dependencies.
fn metadata() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs this test, so it is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let dependencies = list(&package["dependencies"]);
            // A kind that is null is a normal dependency.
            (
                name(package),
                dependencies
                    .iter()
                    .filter(|one| one["kind"].is_null())
                    .map(name)
                    .collect(),
            )
        })
        .collect()
}
