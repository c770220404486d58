//! What each source file has to hold, and what no file may.

use super::check;
use super::tree::files;

#[test]
fn source_files_say_what_they_are_for() {
    let findings = ["crates", "fuzz", "model", "sim", "tests"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .filter(|file| {
            !file
                .text
                .trim_start_matches("#![no_main]")
                .trim_start()
                .starts_with("//!")
        })
        .map(|file| format!("{}: begin with a `//!` that says what it is for", file.path))
        .collect();
    check("source files say what they are for", findings);
}

#[test]
fn modules_have_names_that_say_something() {
    let bad = [
        "mod.rs",
        "utils.rs",
        "util.rs",
        "common.rs",
        "helpers.rs",
        "misc.rs",
    ];
    let findings = files("crates", ".rs")
        .iter()
        .filter(|file| bad.contains(&file.name()))
        .map(|file| format!("{}: name it after the idea in it, as `idea.rs`", file.path))
        .collect();
    check("modules have names that say something", findings);
}

/// In two halves, so that this file does not hold them.
const FORBIDDEN: [(&str, &str, &str); 8] = [
    ("todo", "!(", "finish it"),
    ("unimplemented", "!(", "finish it"),
    ("dbg", "!(", "take it out"),
    ("FIX", "ME", "fix it, or open an issue"),
    ("/ho", "me/", "a path of one machine"),
    ("/Us", "ers/", "a path of one machine"),
    ("<<<<", "<<<", "a merge that was not finished"),
    (
        "\u{202e}",
        "",
        "text that reads in another direction than it runs",
    ),
];

#[test]
fn no_file_holds_what_does_not_belong() {
    let mut findings = Vec::new();
    for file in files("", "") {
        for (number, line) in file.text.lines().enumerate() {
            for (one, two, remedy) in FORBIDDEN {
                if line.contains(&format!("{one}{two}")) {
                    findings.push(format!(
                        "{}:{}: `{one}{two}`: {remedy}",
                        file.path,
                        number + 1
                    ));
                }
            }
        }
    }
    check("no file holds what does not belong", findings);
}
