//! What the tests find out about clients, held against `docs/clients.md`.

use std::fs;
use std::path::Path;

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
        let row = format!("| {client} | {story} | {saw} | `{}` |", self.test);
        self.rows.push(row);
    }

    /// Fails unless the rows of this test in the document are these.
    #[track_caller]
    pub(super) fn check(self) {
        let end = format!("| `{}` |", self.test);
        let document = document();
        let written: Vec<&str> = document
            .lines()
            .filter(|line| line.ends_with(&end))
            .collect();
        assert!(
            written == self.rows,
            "docs/clients.md says\n{}\nbut the clients saw\n{}\n",
            written.join("\n"),
            self.rows.join("\n")
        );
    }
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients.md");
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn every_row_names_a_test_that_checks_it() {
    let sources = [
        include_str!("browser.rs"),
        include_str!("curl.rs"),
        include_str!("event_source.rs"),
        include_str!("event_source_client.rs"),
        include_str!("fetch_event_source.rs"),
        include_str!("pages.rs"),
        include_str!("sdks.rs"),
    ];
    let document = document();
    let names = document
        .lines()
        .filter_map(|line| line.strip_suffix("` |")?.rsplit_once("| `"))
        .map(|(_, name)| name);
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
