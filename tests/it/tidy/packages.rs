//! What is built in: from where, and under which licences. Advisories are looked for by `scripts/check-advisories.sh`.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::check;
use super::tree::{read, root};

const LICENCES: &str = "tests/tidy/licences.txt";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_package_is_from_the_one_registry_or_ours() {
    let mut findings = Vec::new();
    for lock in ["Cargo.lock", "fuzz/Cargo.lock", "advisories/Cargo.lock"] {
        let text = read(lock);
        let packages = text.split("[[package]]").skip(1);
        let mut foreign = 0;
        for package in packages {
            let value = |key: &str| {
                let rest = package.split_once(&format!("\n{key} = \""))?.1;
                rest.split('"').next()
            };
            let name = value("name").expect("a name");
            match value("source") {
                Some(REGISTRY) if value("checksum").is_some() => foreign += 1,
                Some(REGISTRY) => findings.push(format!("{lock}: {name} has no checksum")),
                Some(other) => findings.push(format!("{lock}: {name} is from {other}")),
                None if name.starts_with("streamweld") => {}
                None => findings.push(format!("{lock}: {name} is from a folder")),
            }
        }
        assert!(foreign > 0, "{lock}: this test looks in the wrong way");
    }
    check("every package is from the one registry, or ours", findings);
}

/// Of what is built here: of packages for other systems nothing is there to be read.
#[test]
fn every_licence_is_one_that_was_looked_at() {
    let list = read(LICENCES);
    let known: BTreeSet<&str> = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut findings = Vec::new();
    for package in packages() {
        let word = |key: &str| package[key].as_str().unwrap_or("none").to_owned();
        let licence = word("license");
        if !known.contains(licence.as_str()) {
            findings.push(format!(
                "{} is under {licence}, which is not in {LICENCES}",
                word("name")
            ));
        }
    }
    check("every licence is one that was looked at", findings);
}

fn packages() -> Vec<Value> {
    let run = |program: &str, arguments: &[&str]| {
        let program = std::env::var_os(program.to_uppercase()).unwrap_or_else(|| program.into());
        let output = Command::new(program)
            .args(arguments)
            .current_dir(root())
            .output()
            .expect("it runs this test, so it is there");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).expect("text")
    };
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let metadata = run(
        "cargo",
        &[
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            host.expect("it says so"),
        ],
    );
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    assert!(packages.len() > 100, "this test looks in the wrong way");
    packages.clone()
}
