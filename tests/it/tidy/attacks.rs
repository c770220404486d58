//! That each attack of the list names its tests, and that the tests are there.

use super::check;
use super::promises::{exists, rows_of};
use super::tree::{File, files, read};

const ATTACKS: &str = "docs/security.md";
/// So many are there.
const LAST: usize = 32;

#[test]
fn every_attack_has_its_test() {
    let list = read(ATTACKS);
    let rows: Vec<_> = rows_of(&list)
        .into_iter()
        .filter(|row| row.first.parse::<usize>().is_ok())
        .collect();
    let numbers: Vec<_> = rows.iter().map(|row| row.first.parse().ok()).collect();
    let expected: Vec<_> = (1..=LAST).map(Some).collect();
    assert_eq!(
        numbers, expected,
        "{ATTACKS} has each attack once, in order"
    );
    let sources: Vec<File> = ["crates", "tests"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .collect();
    let mut findings = Vec::new();
    for row in &rows {
        let tests: Vec<&str> = row.last.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            findings.push(format!("attack {} names no test", row.first));
        }
        for test in tests {
            if !exists(&sources, test) {
                findings.push(format!(
                    "there is no test {test}, named for attack {}",
                    row.first
                ));
            }
        }
    }
    // A test that has the number of an attack in its name is in its row.
    let ours =
        |file: &&File| file.path.contains("/attacks/") || file.path.ends_with("/it/smuggling.rs");
    for source in sources.iter().filter(ours) {
        for name in source.text.split("fn row_").skip(1) {
            let name = name.split('(').next().unwrap_or_default();
            let number = name.split('_').next().and_then(|it| it.parse().ok());
            let row = number.and_then(|it: usize| rows.get(it.checked_sub(1)?));
            if !row.is_some_and(|row| row.last.contains(&format!("::row_{name}`"))) {
                findings.push(format!("row_{name} is not in its row of {ATTACKS}"));
            }
        }
    }
    check("every attack has its test", findings);
}
