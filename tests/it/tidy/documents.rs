//! That documents and code say the same.

use std::collections::BTreeSet;

use serde_json::Value;
use streamweld_mock::Script;

use super::check;
use super::tree::{File, files, read, root};

const METRICS: &str = "docs/metrics.md";
const MOCK: &str = "docs/mock.md";

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
fn script_members_are_documented_with_their_defaults() {
    let Ok(Value::Object(defaults)) = serde_json::to_value(Script::default()) else {
        panic!("a script is an object");
    };
    let text = read(MOCK);
    // | member | type | default | effect |
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells.len() == 4)
        .collect();
    let mut findings = Vec::new();
    for (member, default) in &defaults {
        let (member, default) = (format!("`{member}`"), format!("`{default}`"));
        match &rows
            .iter()
            .filter(|row| row[0] == member)
            .collect::<Vec<_>>()[..]
        {
            [row] if row[2] == default => {}
            [row] => findings.push(format!(
                "{member}: its default is {default}, {MOCK} says {}",
                row[2]
            )),
            [] => findings.push(format!("{member} is not in {MOCK}")),
            _ => findings.push(format!("{member} is in {MOCK} more than once")),
        }
    }
    for row in &rows {
        if !defaults.contains_key(row[0].trim_matches('`')) {
            findings.push(format!("{} is in {MOCK}, but not in the code", row[0]));
        }
    }
    check("script members are documented", findings);
}

#[test]
fn what_script_members_can_be_is_documented() {
    let text = read(MOCK);
    let words: BTreeSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let mut findings = Vec::new();
    // Each is refused with a list of what would have been right.
    for probe in [
        r#"{"dialect":"?"}"#,
        r#"{"engine":"?"}"#,
        r#"{"faults":{"?":1}}"#,
        r#"{"usage":"?"}"#,
        r#"{"writes":"?"}"#,
        r#"{"line_end":"?"}"#,
        r#"{"framing":"?"}"#,
        r#"{"encoding":"?"}"#,
        r#"{"marks":[{"?":1}]}"#,
        r#"{"marks":[{"after":1,"do":"?"}]}"#,
        r#"{"end":{"?":1}}"#,
        r#"{"end":{"rst_after":{"?":1}}}"#,
        r#"{"end":{"error_after":{"?":1}}}"#,
        r#"{"end":{"abort_after":{"?":1}}}"#,
        r#"{"raw":["?"]}"#,
    ] {
        let error: serde_json::Error = serde_json::from_str::<Script>(probe).expect_err("refused");
        let error = error.to_string();
        let names: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(!names.is_empty(), "{probe}: {error}");
        findings.extend(
            names
                .into_iter()
                .filter(|name| !words.contains(name))
                .map(|name| format!("{name} is not in {MOCK}; it can stand in {probe}")),
        );
    }
    check("what script members can be is documented", findings);
}

#[test]
fn the_example_of_a_script_is_one() {
    let text = read(MOCK);
    let example = text
        .split("```json")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    Script::from_json(example.expect("an example")).expect("a script");
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
