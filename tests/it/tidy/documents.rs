//! That documents and code say the same.

use std::collections::BTreeSet;

use super::check;
use super::tree::{File, files, read, root};

const METRICS: &str = "docs/metrics.md";

#[test]
fn metrics_are_documented() {
    // The first literal after `.register(` is the name; the call may be broken into lines.
    let registered: BTreeSet<String> = files("crates", ".rs")
        .iter()
        .flat_map(|file| {
            file.text
                .split(".register(")
                .skip(1)
                .map(str::trim_start)
                .collect::<Vec<_>>()
        })
        .filter_map(|call| call.strip_prefix('"')?.split('"').next())
        .map(str::to_owned)
        .collect();
    assert!(
        !registered.is_empty(),
        "no metric was found: this test looks in the wrong way"
    );
    // The first cell of a row. Counters get their suffix when they are written out.
    let documented: BTreeSet<String> = read(METRICS)
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned())
        .collect();
    let mut findings: Vec<_> = registered
        .difference(&documented)
        .map(|name| format!("{name} is not in {METRICS}"))
        .collect();
    findings.extend(
        documented
            .difference(&registered)
            .map(|name| format!("{name} is in {METRICS}, but not in the code")),
    );
    check("metrics are documented", findings);
}

#[test]
fn settings_are_in_the_readme() {
    let readme = read("README.md");
    let mut findings = Vec::new();
    let args = read("crates/streamweld/src/args.rs");
    for arg in args
        .split("#[arg(")
        .skip(1)
        .filter_map(|rest| rest.split(")]").next())
    {
        let Some(variable) = quoted_after(arg, "env = ") else {
            continue;
        };
        let Some(row) = readme
            .lines()
            .find(|row| row.contains(&format!("| `{variable}` |")))
        else {
            findings.push(format!("{variable} has no row in README.md"));
            continue;
        };
        let flag = variable
            .trim_start_matches("STREAMWELD_")
            .to_lowercase()
            .replace('_', "-");
        if !row.starts_with(&format!("| `--{flag}")) {
            findings.push(format!(
                "{variable}: its row in README.md begins with another flag than --{flag}"
            ));
        }
        if let Some(default) = quoted_after(arg, "default_value = ") {
            if !row.contains(&format!("| `{default}` |")) {
                findings.push(format!(
                    "--{flag}: its default is {default}, README.md says otherwise"
                ));
            }
        }
    }
    check("settings are in the README", findings);
}

#[test]
fn links_and_paths_lead_somewhere() {
    let mut findings = Vec::new();
    for file in files("", ".md") {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&file) {
            if !root().join(folder).join(link).exists() {
                findings.push(format!("{}: nothing at the link {link}", file.path));
            }
        }
        for path in file
            .text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|path| path.starts_with("crates/"))
        {
            // `crates/<name>` stands for any of them.
            if !path.contains('<') && !root().join(path).exists() {
                findings.push(format!("{}: there is no {path}", file.path));
            }
        }
    }
    check("links and paths lead somewhere", findings);
}

/// The targets of a document's links to other files, without their anchors.
fn links(file: &File) -> impl Iterator<Item = &str> {
    let targets = file
        .text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .filter_map(|target| target.split('#').next())
        .filter(|path| !path.is_empty())
}

/// The string literal that follows `key`.
fn quoted_after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.strip_prefix('"')?.split('"').next()
}
