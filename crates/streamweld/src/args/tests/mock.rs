//! The command line of the mock.

use super::*;

/// This script is refused, and the reason is given once.
#[track_caller]
fn check_mock(line: &[&str], flag: &str, reason: &str) {
    let error = read(&[&["mock"], line].concat()).expect_err("refused");
    assert!(error.contains(flag), "{error}");
    assert_eq!(error.matches(reason).count(), 1, "{error}");
}

#[test]
fn a_bad_script_is_told_once_and_where() {
    check_mock(&["--set=tokenz=50"], "--set", "unknown field");
    check_mock(&["--set=end=foo"], "end=foo", "unknown end");
    check_mock(&["--set=tokens"], "--set", "write it as NAME=VALUE");
    check_mock(&["--set=text=5"], "text=5", "a string in quotes");
    check_mock(&["--script={"], "--script", "EOF while parsing");
    check_mock(&["--script={\"x\":1}"], "--script", "unknown field");
    check_mock(&["--script-file=/nowhere"], "/nowhere", "No such file");
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check_mock(&["--script-file", here], "Cargo.toml", "at line 1");
}

#[test]
fn the_members_that_the_help_names_work_as_they_stand() {
    let examples: Vec<&str> = MEMBERS
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    assert!(examples.len() > 5, "{examples:?}");
    for example in examples {
        let line = ["streamweld", "mock", "--set", example];
        assert!(Args::read(line).is_ok(), "{example}");
    }
}
