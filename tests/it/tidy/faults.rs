//! That each fault of the list names its tests, and that the tests are there.

use super::check;
use super::promises::{exists, rows_of};
use super::tree::{File, files, read};

const FAULTS: &str = "docs/faults.md";
/// So many are there.
const LAST: usize = 54;

#[test]
fn every_fault_has_its_test() {
    let list = read(FAULTS);
    let rows = rows_of(&list);
    let numbers: Vec<_> = rows.iter().map(|row| row.first.parse().ok()).collect();
    let expected: Vec<_> = (1..=LAST).map(Some).collect();
    assert_eq!(numbers, expected, "{FAULTS} has each fault once, in order");
    let sources: Vec<File> = ["crates", "tests"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .collect();
    let mut findings = Vec::new();
    for row in &rows {
        let tests: Vec<&str> = row.last.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() && !row.last.starts_with("not built: ") {
            findings.push(format!("fault {} names no test", row.first));
        }
        for test in tests {
            if !exists(&sources, test) {
                findings.push(format!(
                    "there is no test {test}, named for fault {}",
                    row.first
                ));
            }
        }
    }
    // A test that has the number of a fault in its name is in its row. Attacks have numbers of their own.
    let faults =
        |file: &&File| !file.path.contains("/attacks/") && !file.path.ends_with("/it/smuggling.rs");
    for source in sources.iter().filter(faults) {
        for name in source.text.split("fn row_").skip(1) {
            let name = name.split('(').next().unwrap_or_default();
            let number = name.split('_').next().and_then(|it| it.parse().ok());
            let Some(row) = number.and_then(|it: usize| rows.get(it.checked_sub(1)?)) else {
                continue;
            };
            if !row.last.contains(&format!("::row_{name}`")) {
                findings.push(format!("row_{name} is not in {FAULTS}"));
            }
        }
    }
    check("every fault has its test", findings);
}
