//! The recorded bodies of `crates/dialect/tests/fixtures`, for the mock to play byte for byte.

use std::fs;
use std::path::Path;

use serde_json::Value;
use streamweld_mock::{Dialect, Raw, Script};

/// A body and what it means.
pub(super) struct Fixture {
    pub(super) name: String,
    body: Vec<u8>,
    cut: bool,
    /// How many choices were asked for.
    pub(super) asked: usize,
    pub(super) failed: bool,
}

/// Bodies that go on behind their end, or have blocks without data (protocol.md 5 and 7.2).
const NOT_PASSED_ON: [&str; 5] = [
    "after_the_sentinel",
    "after_the_terminal",
    "blocks_without_data",
    "sentinel_after_the_terminal",
    "sentinel_after_finish",
];

impl Fixture {
    /// All of a dialect that come to an end. Silence ends nothing while an answer is not settled (protocol.md 7.2), and
    /// a client could only wait.
    pub(super) fn of(dialect: Dialect) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../crates/dialect/tests/fixtures")
            .join(dialect.to_string());
        let entries = fs::read_dir(&folder).expect("the dialect has fixtures");
        let mut fixtures: Vec<Self> = entries
            .map(|entry| entry.expect("the folder can be read").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .filter_map(|path| Self::read(&path))
            .collect();
        fixtures.sort_by(|one, other| one.name.cmp(&other.name));
        fixtures
    }

    fn read(path: &Path) -> Option<Self> {
        let json = fs::read(path).expect("it can be read");
        let says: Value = serde_json::from_slice(&json).expect("JSON");
        let failed = says["verdict"].get("failed").is_some();
        if says["end"] == "silence" && failed {
            return None;
        }
        let name = path.file_stem().expect("it has a name").to_string_lossy();
        Some(Self {
            name: name.into_owned(),
            body: fs::read(path.with_extension("sse")).expect("its other half"),
            cut: says["end"] == "cut",
            asked: says["asked"].as_u64().unwrap_or(1) as usize,
            failed,
        })
    }

    /// It ends as a body should, and there is nothing in it that is not passed on.
    pub(super) fn is_whole(&self) -> bool {
        !self.failed && !self.cut && !NOT_PASSED_ON.contains(&self.name.as_str())
    }

    pub(super) fn script(&self) -> Script {
        let mut raw = Raw::new().stream_head();
        if !self.body.is_empty() {
            let size = format!("{:x}\r\n", self.body.len());
            raw = raw.bytes([size.as_bytes(), &self.body, b"\r\n"].concat());
        }
        Script::raw(match self.cut {
            true => raw.fin(),
            false => raw.last_chunk(),
        })
    }
}
