//! What the tests find out about clients, held against `docs/clients.md`, or written there.
//!
//! The document belongs to whoever writes it, but for the rows of its tables that name a test: those are what the test
//! saw. With `STREAMWELD_WRITE_CLIENTS=1` (`make clients-table`) a test puts its rows there; otherwise it fails when
//! they are others. Rows of a test that has none yet come last in the table behind `<!-- rows: MODULE -->`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The rows of one test, in their order in the document.
pub(super) struct Seen {
    test: &'static str,
    rows: Vec<String>,
}

/// In this story, this client saw that.
pub(super) struct Row {
    client: String,
    story: String,
    saw: String,
}

impl Row {
    pub(super) fn new(client: &str, story: &str, saw: impl Into<String>) -> Self {
        Self {
            client: client.to_owned(),
            story: story.to_owned(),
            saw: saw.into(),
        }
    }
}

impl Seen {
    /// Begins the rows of this test.
    pub(super) fn by(test: &'static str) -> Self {
        Self {
            test,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, row: &Row) {
        let Row { client, story, saw } = row;
        self.cells(&[client, story, saw].map(Clone::clone));
    }

    /// Adds a row of these cells, and the name of the test.
    pub(super) fn cells(&mut self, cells: &[String]) {
        let row = format!("| {} | `{}` |", cells.join(" | "), self.test);
        self.rows.push(row);
    }

    /// Fails unless the rows of this test in the document are these, or makes them so.
    #[track_caller]
    pub(super) fn check(self) {
        // Tests run beside each other.
        static WRITING: Mutex<()> = Mutex::new(());
        let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let document = document();
        if env::var_os("STREAMWELD_WRITE_CLIENTS").is_some() {
            let written = with_rows(&document, self.test, &self.rows);
            fs::write(path(), written).expect("docs/clients.md can be written");
            return;
        }
        let end = format!("| `{}` |", self.test);
        let written: Vec<&str> = document
            .lines()
            .filter(|line| line.ends_with(&end))
            .collect();
        assert!(
            written == self.rows,
            "docs/clients.md says\n{}\nbut the clients saw\n{}\n`make clients-table` writes that there",
            written.join("\n"),
            self.rows.join("\n")
        );
    }
}

/// The document with these rows in the place of those that a test had.
fn with_rows(document: &str, test: &str, rows: &[String]) -> String {
    let end = format!("| `{test}` |");
    let mut lines: Vec<&str> = document.lines().collect();
    let at = lines.iter().position(|line| line.ends_with(&end));
    lines.retain(|line| !line.ends_with(&end));
    let at = at.unwrap_or_else(|| end_of_table(&lines, test));
    lines.splice(at..at, rows.iter().map(String::as_str));
    lines.join("\n") + "\n"
}

/// Behind the last row of the table for the module of a test.
fn end_of_table(lines: &[&str], test: &str) -> usize {
    let module = test.split("::").next().unwrap_or(test);
    let mark = format!("<!-- rows: {module} -->");
    let behind = lines
        .iter()
        .skip_while(|line| **line != mark)
        .skip_while(|line| !line.starts_with('|'))
        .skip_while(|line| line.starts_with('|'));
    assert!(
        lines.contains(&mark.as_str()),
        "docs/clients.md has no {mark}, behind which the rows of {test} would come"
    );
    lines.len() - behind.count()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients.md")
}

fn document() -> String {
    fs::read_to_string(path()).unwrap_or_default()
}

#[test]
fn every_row_names_a_test_that_checks_it() {
    let sources = [
        include_str!("browser.rs"),
        include_str!("compressed.rs"),
        include_str!("curl.rs"),
        include_str!("event_source.rs"),
        include_str!("event_source_client.rs"),
        include_str!("fetch_event_source.rs"),
        include_str!("pages.rs"),
        include_str!("sdk_resume.rs"),
        include_str!("sdks.rs"),
    ];
    let document = document();
    let names = document
        .lines()
        .filter_map(|line| line.strip_suffix("` |")?.rsplit_once("| `"))
        .map(|(_, name)| name)
        .filter(|name| name.contains("::"));
    let mut count = 0;
    for name in names {
        assert!(
            sources
                .iter()
                .any(|source| source.contains(&format!("\"{name}\""))),
            "docs/clients.md has a row of {name}, which no test checks"
        );
        count += 1;
    }
    assert!(count > 0, "docs/clients.md has no rows");
}

#[test]
fn rows_come_where_those_before_them_were_or_last_in_their_table() {
    let document =
        "# A\n<!-- rows: m -->\n\n| a | test |\n|---|---|\n| 1 | `m::x` |\n| 2 | `m::y` |\n\nend\n";
    let row = |text: &str, test: &str| format!("| {text} | `{test}` |");
    let replaced = with_rows(document, "m::x", &[row("3", "m::x"), row("4", "m::x")]);
    assert_eq!(
        replaced,
        document.replace("| 1 | `m::x` |", "| 3 | `m::x` |\n| 4 | `m::x` |")
    );
    let added = with_rows(document, "m::z", &[row("5", "m::z")]);
    assert_eq!(
        added,
        document.replace("\n\nend", "\n| 5 | `m::z` |\n\nend")
    );
}
