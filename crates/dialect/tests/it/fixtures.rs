//! Every fixture is read at several splits and must give what its expectation says.
//!
//! `fixtures/<dialect>/<case>.sse` holds the bytes of an upstream body as they came, and
//! `<case>.json` beside it what must be concluded. Cases named `b<n>_…` are reported bugs of other
//! software, `measured_…` are recordings of real engines, the rest are traps.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use streamweld_dialect::{
    BodyEnd, Dialect, Judge, Mark, ToolCall, Transcript, Usage, Verdict, stopped_ending,
};
use streamweld_sse::{Decoder, Limits, Retry, encode_lines};

/// What a fixture's `.json` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    /// What the case is about, for the reader of the file.
    about: String,
    /// How the body ends.
    end: End,
    /// How many choices (MCP: answers) were asked for, where that is told.
    asked: Option<usize>,
    /// The id of the call that is answered, as JSON, where that is told (MCP).
    call: Option<String>,
    /// The verdict; of a failure only the members that are given.
    verdict: Value,
    settled: bool,
    /// How many blocks are committed, salvage included.
    committed: usize,
    salvage: Option<String>,
    text: String,
    #[serde(default)]
    reasoning: String,
    /// Each with the part that it belongs to.
    #[serde(default)]
    tool_calls: Vec<(u32, ToolCall)>,
    usage: Option<Usage>,
    /// The bytes of the stopped ending after what was committed.
    stopped: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Clean,
    Cut,
    Silence,
}

/// What was concluded from a body.
#[derive(Debug, PartialEq)]
struct Outcome {
    verdict: Verdict,
    settled: bool,
    /// Wire lines of what was committed.
    committed: Vec<String>,
    salvage: Option<String>,
    text: String,
    reasoning: String,
    tool_calls: Vec<(u32, ToolCall)>,
    /// What the transcript says of the end.
    finish: Vec<String>,
    usage: Option<Usage>,
    stopped: String,
}

#[test]
fn every_fixture_gives_what_it_should() {
    let names = fixtures();
    assert!(names.len() > 320, "only {} fixtures found", names.len());
    for (dialect, path) in names {
        check(dialect, &path);
    }
}

#[test]
fn no_fixture_lacks_its_other_half() {
    let mut bodies = BTreeSet::new();
    let mut expectations = BTreeSet::new();
    for entry in dialect_dirs().iter().flat_map(|(_, dir)| files(dir)) {
        let stem = entry.with_extension("");
        match entry.extension().and_then(|ending| ending.to_str()) {
            Some("sse") => assert!(bodies.insert(stem)),
            Some("json") => assert!(expectations.insert(stem)),
            _ => panic!("{} is no part of a fixture", entry.display()),
        }
    }
    assert_eq!(bodies, expectations);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_splits_change_nothing(
        fixture in prop::sample::select(fixtures()),
        sizes in prop::collection::vec(1_usize..80, 1..20),
    ) {
        let (dialect, path) = fixture;
        let (body, expected) = load(&path);
        let mut sizes = sizes.iter().cycle();
        let mut rest = body.as_slice();
        let mut reads = Vec::new();
        while !rest.is_empty() {
            let size = rest.len().min(*sizes.next().expect("a cycle has no end"));
            reads.push(&rest[..size]);
            rest = &rest[size..];
        }
        prop_assert_eq!(
            read(dialect, &reads, &expected),
            read(dialect, &[&body], &expected)
        );
    }
}

#[track_caller]
fn check(dialect: Dialect, path: &Path) {
    let (body, expected) = load(path);
    let name = format!("{} ({})", path.display(), expected.about);

    let whole = read(dialect, &[&body], &expected);
    let bytewise: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(whole, read(dialect, &bytewise, &expected), "{name}");

    let verdict = serde_json::to_value(&whole.verdict).unwrap();
    assert!(
        contains(&verdict, &expected.verdict),
        "{name}\n got {verdict}\nwant {}",
        expected.verdict
    );
    assert_eq!(whole.settled, expected.settled, "{name}: settled");
    assert_eq!(
        whole.committed.len(),
        expected.committed,
        "{name}: committed"
    );
    assert_eq!(whole.salvage, expected.salvage, "{name}: salvage");
    assert_eq!(whole.text, expected.text, "{name}: text");
    assert_eq!(whole.reasoning, expected.reasoning, "{name}: reasoning");
    assert_eq!(whole.tool_calls, expected.tool_calls, "{name}: tool calls");
    if let Verdict::Done(done) = &whole.verdict {
        assert_eq!(whole.finish, done.reasons, "{name}: finish");
    }
    assert_eq!(whole.usage, expected.usage, "{name}: usage");
    assert_eq!(whole.stopped, expected.stopped, "{name}: stopped ending");
}

/// Reads a body as a producer does: judge each event, commit, stop at a verdict.
fn read(dialect: Dialect, reads: &[&[u8]], expected: &Expectation) -> Outcome {
    let mut decoder = Decoder::new(Limits::default());
    let mut judge = Judge::new(dialect);
    if let Some(asked) = expected.asked {
        judge.expect(asked);
    }
    if let Some(call) = &expected.call {
        judge.answers(call);
    }
    let mut transcript = Transcript::new(dialect);
    transcript.answers(expected.call.clone());
    let mut committed = Vec::new();
    let mut held = None;
    let mut salvaged = None;
    let mut verdict = None;
    for read in reads {
        let mut input = *read;
        while let Some(event) = decoder.decode(&mut input).unwrap() {
            let mark = judge.event(&event);
            if verdict.is_some() {
                assert_eq!(mark, Mark::Skip, "a verdict stands");
                continue;
            }
            let holds = mark == Mark::Hold;
            match mark {
                Mark::Skip => continue,
                Mark::Failed { failure, salvage } => {
                    verdict = Some(Verdict::Failed(failure));
                    let Some(salvage) = salvage else { continue };
                    push_lines(&mut transcript, &salvage);
                    let salvage = String::from_utf8(salvage).unwrap();
                    committed.push(salvage.clone());
                    salvaged = Some(salvage);
                    continue;
                }
                Mark::End(done) => verdict = Some(Verdict::Done(done)),
                Mark::Event | Mark::Hold => {}
            }
            let mut lines = Vec::new();
            encode_lines(&event, Retry::Drop, &mut lines);
            let (now, later) = if holds {
                (None, Some(lines))
            } else {
                (Some(lines), None)
            };
            for lines in std::mem::replace(&mut held, later).into_iter().chain(now) {
                push_lines(&mut transcript, &lines);
                committed.push(String::from_utf8(lines).unwrap());
            }
        }
    }
    let how = match expected.end {
        End::Clean => BodyEnd::Clean,
        End::Cut => BodyEnd::Cut,
        End::Silence => BodyEnd::Silence,
    };
    let at_end = judge.end(how, decoder.tail_event().as_ref());
    if let Some(verdict) = verdict {
        assert_eq!(at_end, verdict, "a verdict stands");
    }
    if let (Verdict::Done(_), Some(lines)) = (&at_end, held) {
        push_lines(&mut transcript, &lines);
        committed.push(String::from_utf8(lines).unwrap());
    }
    let stopped = stopped_ending(&transcript);
    assert_eq!(
        stopped.id_at,
        stopped.bytes.len().checked_sub(1),
        "the id line goes before the last blank line"
    );
    Outcome {
        verdict: at_end,
        settled: judge.is_settled(),
        committed,
        salvage: salvaged,
        text: transcript.text().to_owned(),
        reasoning: transcript.reasoning().to_owned(),
        tool_calls: transcript
            .tool_calls()
            .map(|(part, call)| (part, call.clone()))
            .collect(),
        finish: transcript
            .reasons()
            .map(|(_, reason)| reason.to_owned())
            .collect(),
        usage: transcript.usage(),
        stopped: String::from_utf8(stopped.bytes).unwrap(),
    }
}

/// Reads committed wire lines back, as one does who has only the journal.
fn push_lines(transcript: &mut Transcript, lines: &[u8]) {
    let block = [lines, b"\n"].concat();
    let mut input = block.as_slice();
    let mut decoder = Decoder::new(Limits::default());
    let event = decoder.decode(&mut input).unwrap().expect("one block");
    transcript.push(&event);
    assert!(input.is_empty(), "committed lines are one block");
}

/// Whether `value` has everything that `wanted` has: objects may have more, all else is equal.
fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| value.get(name).is_some_and(|value| contains(value, wanted))),
        _ => value == wanted,
    }
}

fn load(path: &Path) -> (Vec<u8>, Expectation) {
    let body = fs::read(path).unwrap();
    let expected = fs::read(path.with_extension("json")).unwrap();
    let expected = serde_json::from_slice(&expected)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (body, expected)
}

fn fixtures() -> Vec<(Dialect, PathBuf)> {
    let mut fixtures = Vec::new();
    for (dialect, dir) in dialect_dirs() {
        let bodies = files(&dir)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "sse"));
        fixtures.extend(bodies.map(|path| (dialect, path)));
    }
    fixtures
}

fn dialect_dirs() -> Vec<(Dialect, PathBuf)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"))
        .into_iter()
        .map(|dir| {
            let name = dir.file_name().and_then(|name| name.to_str()).unwrap();
            (name.parse().unwrap(), dir)
        })
        .collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}
