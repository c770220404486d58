//! That each promise of the protocol names a test, and that the test is there.

use super::check;
use super::tree::{File, files, read};

#[test]
fn every_promise_has_its_test() {
    let protocol = read("protocol.md");
    let (_, checklist) = protocol
        .split_once("\n## 14")
        .expect("protocol.md has its checklist in section 14");
    let checklist = checklist.split("\n## ").next().unwrap_or_default();
    let sources: Vec<File> = ["crates", "tests"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .collect();
    let mut findings = Vec::new();
    let mut rows = 0;
    for row in rows_of(checklist) {
        rows += 1;
        let tests: Vec<&str> = row.last.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            findings.push(format!("no test is named for: {}", row.first));
        }
        for test in tests {
            if !exists(&sources, test) {
                findings.push(format!("there is no test {test}, named for: {}", row.first));
            }
        }
    }
    assert!(rows > 0, "section 14 of protocol.md has no rows");
    check("every promise has its test", findings);
}

pub(super) struct Row<'a> {
    pub(super) first: &'a str,
    pub(super) last: &'a str,
}

/// The rows of all tables in `text`, without heads and rules.
pub(super) fn rows_of(text: &str) -> Vec<Row<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_rule = |line: &str| line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
    lines
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            let head = lines.get(at + 1).is_some_and(|next| is_rule(next));
            line.starts_with('|') && !is_rule(line) && !head
        })
        .filter_map(|(_, line)| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let first = cells.next()?;
            Some(Row {
                first,
                last: cells.next_back()?,
            })
        })
        .collect()
}

/// `resume::second_reader_sees_all` is a `fn second_reader_sees_all(` in some `resume.rs`, or below some `resume/`.
pub(super) fn exists(sources: &[File], test: &str) -> bool {
    let mut names = test.rsplit("::");
    let (Some(function), Some(module)) = (names.next(), names.next()) else {
        return false;
    };
    let (file, folder) = (format!("/{module}.rs"), format!("/{module}/"));
    let function = format!("fn {function}(");
    sources.iter().any(|source| {
        (source.path.ends_with(&file) || source.path.contains(&folder))
            && source.text.contains(&function)
    })
}

#[test]
fn rows_are_those_below_a_rule() {
    let rows = rows_of(
        "text\n\n| promise | test |\n|---|:--|\n| a | `m::t` |\n| b | c | `n::u`, `n::v` |\n",
    );
    let rows: Vec<_> = rows.iter().map(|row| (row.first, row.last)).collect();
    assert_eq!(rows, [("a", "`m::t`"), ("b", "`n::u`, `n::v`")]);
}
