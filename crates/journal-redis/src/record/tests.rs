//! Records read back, and whatever else comes does no harm.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use streamweld_journal::TerminalParts;

use super::*;
use crate::record;

mod check;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

fn window() -> Arc<Window> {
    check::window_with(0)
}

/// A log of these events between its opening and its end.
fn written(events: &[Vec<u8>], end: Option<TerminalParts>) -> Arc<Window> {
    let window = window();
    let mut staging = window.stage(at(1));
    staging.push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
    for event in events {
        staging.push(Kind::Event, |out| {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(event);
            out.push(b'\n');
        });
    }
    drop(staging);
    if let Some(end) = end {
        window.stage_terminal(at(2), end);
    }
    window
}

fn end(code: Option<&str>, id_at: Option<usize>) -> TerminalParts {
    TerminalParts {
        kind: Kind::Error,
        code: code.map(str::to_owned),
        lines: b"event: streamweld.error\ndata: {}\n".to_vec(),
        ending: b"data: [DONE]\n\n".to_vec(),
        id_at,
    }
}

#[track_caller]
fn check_round(window: &Window, after: u64, through: u64) {
    let batch = window.staged_through(Seq::new(after), Seq::new(through));
    let bytes = encode(&batch, Epoch::FIRST);
    let record = decode(&bytes).unwrap();
    assert_eq!(record.entries, batch.entries);
    assert_eq!(record.bytes, batch.runs.concat());
    assert_eq!(record.terminal.as_ref(), batch.terminal.as_deref());
    let last = batch.through();
    assert_eq!(record.last(), Some((last, window.digest(last).unwrap())));
}

#[test]
fn a_batch_reads_back() {
    for (code, id_at) in [
        (None, None),
        (Some("upstream_cut"), Some(0)),
        (Some(""), Some(14)),
    ] {
        let window = written(
            &[b"a".to_vec(), vec![b'x'; 70_000], b"".to_vec()],
            Some(end(code, id_at)),
        );
        for (after, through) in [(0, 1), (0, 5), (1, 3), (4, 5)] {
            check_round(&window, after, through);
        }
    }
}

#[test]
fn a_follower_reads_what_was_written() {
    let writer = written(&[b"a".to_vec(), b"b".to_vec()], Some(end(None, None)));
    let follower = window();
    for (after, through) in [(0, 2), (1, 3), (2, 4)] {
        let bytes = encode(
            &writer.staged_through(Seq::new(after), Seq::new(through)),
            Epoch::FIRST,
        );
        assert_eq!(
            decode(&bytes).unwrap().show(&follower),
            Ok(Seq::new(through))
        );
    }
    writer.commit(Seq::new(4));
    assert_eq!(follower.terminal(), writer.terminal());
    assert_eq!(follower.entries(Seq::ZERO, 9), writer.entries(Seq::ZERO, 9));
}

#[test]
fn a_mark_has_no_entries_and_shows_nothing() {
    let (before, by) = (Epoch::new(5).unwrap(), Epoch::new(7 << 32).unwrap());
    for (bytes, follows) in [
        (change(Adoption::new(before, Seq::new(3), by)), Some(before)),
        (stand(by, Seq::new(3)), Some(by)),
        (
            old(&["00000007", "0000000000000004", "00000000", "00"]),
            None,
        ),
    ] {
        let record = decode(&bytes).unwrap();
        assert_eq!(record.brings(), Brings::Mark { follows });
        assert_eq!(record.first.get(), 4);
        assert_eq!(record.last(), None);
        let follower = written(&[b"a".to_vec(), b"b".to_vec()], None);
        follower.commit(Seq::new(3));
        assert_eq!(record.show(&follower), Ok(Seq::new(3)));
    }
}

#[track_caller]
fn check_bad(change: impl FnOnce(&mut Vec<u8>)) {
    let window = written(&[b"a".to_vec()], Some(end(Some("x"), Some(3))));
    let mut bytes = encode(&window.staged(Seq::ZERO), Epoch::FIRST);
    change(&mut bytes);
    assert_eq!(decode(&bytes), Err(BadRecord));
}

#[test]
fn other_bytes_are_no_record() {
    check_bad(Vec::clear);
    check_bad(|bytes| bytes[0] = 1);
    check_bad(|bytes| bytes[0] = 3);
    // Epoch 0, one above all there are, sequence 0, a sequence at the end of all, a count beyond what there is.
    check_bad(|bytes| bytes[1..9].fill(0));
    check_bad(|bytes| bytes[1..9].fill(0xff));
    check_bad(|bytes| bytes[9..17].fill(0));
    check_bad(|bytes| bytes[9..17].fill(0xff));
    check_bad(|bytes| bytes[17..21].fill(0xff));
    // A kind there is not, a length beyond what there is, no terminal and no other byte for it.
    check_bad(|bytes| bytes[HEAD] = 7);
    check_bad(|bytes| bytes[HEAD + 1..HEAD + 5].fill(0xff));
    check_bad(|bytes| bytes[HEAD + 3 * ENTRY] = 0);
    check_bad(|bytes| bytes[HEAD + 3 * ENTRY] = 2);
    // The terminal is no end, or its place for an id is behind its ending.
    check_bad(|bytes| bytes[HEAD + 3 * ENTRY + 1] = 1);
    check_bad(|bytes| bytes[HEAD + 3 * ENTRY + 10] = 1);
    check_bad(|bytes| bytes.push(0));
    check_bad(|bytes| _ = bytes.pop());
}

/// A record of version 1, from the number of its epoch on.
fn old(hex: &[&str]) -> Vec<u8> {
    let hex = format!("01{}", hex.concat());
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn what_version_1_wrote_is_read() {
    let window = written(&[b"a".to_vec()], Some(end(Some("x"), Some(3))));
    let bytes = encode(&window.staged(Seq::ZERO), Epoch::FIRST);
    let mut old = vec![1, 0, 0, 0, 1];
    old.extend_from_slice(&bytes[9..]);
    assert_eq!(decode(&old), decode(&bytes));
    let names = ["opening", "events", "whole", "change_of_writer"];
    for name in names {
        let file = fs::read(corpus().join(format!("version_1_{name}"))).unwrap();
        assert_eq!(file[0], 1);
        assert!(decode(&file).is_ok(), "{name}");
    }
}

/// Records of every form.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let events = [b"{\"n\":1}".to_vec(), b"".to_vec(), "語".into()];
    let batch = |end, after, through| {
        let window = written(&events, end);
        let batch = window.staged_through(Seq::new(after), Seq::new(through));
        encode(&batch, Epoch::FIRST)
    };
    let later = Epoch::new(7 << 32).unwrap();
    let adopted = |last| change(Adoption::new(Epoch::FIRST, Seq::new(last), later));
    vec![
        ("opening", batch(None, 0, 1)),
        ("events", batch(None, 1, 4)),
        ("one_event", batch(None, 2, 3)),
        ("change_of_writer", adopted(1)),
        ("change_at_the_end", adopted(u64::MAX - 1)),
        ("stand", stand(later, Seq::new(3))),
        ("end_alone", batch(Some(end(None, None)), 4, 5)),
        (
            "whole",
            batch(Some(end(Some("upstream_cut"), Some(14))), 0, 5),
        ),
        ("no_code", batch(Some(end(Some(""), Some(0))), 0, 5)),
    ]
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/redis_record")
}

/// Not a test: writes what is committed.
#[test]
#[ignore = "it writes the corpus"]
fn write_the_corpus() {
    fs::create_dir_all(corpus()).unwrap();
    for (name, record) in seeds() {
        fs::write(corpus().join(name), record).unwrap();
    }
}

/// What was found once stays found without a fuzzer, and what was written once can be read.
#[test]
fn the_corpus_is_read_without_a_surprise() {
    for (name, record) in seeds() {
        assert_eq!(fs::read(corpus().join(name)).unwrap(), record, "{name}");
        assert!(decode(&record).is_ok(), "{name}");
    }
    for entry in fs::read_dir(corpus()).expect("the corpus is part of the repository") {
        check::fuzz(&fs::read(entry.unwrap().path()).unwrap());
    }
}

proptest! {
    #[test]
    fn any_batch_reads_back(
        events in prop::collection::vec(prop::collection::vec(b' '..b'~', 0..40), 0..20),
        ends in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let window = written(&events, ends.then(|| end(Some("code"), None)));
        let last = window.received().get();
        let after = cut.index(last as usize) as u64;
        check_round(&window, after, last);
    }

    #[test]
    fn whatever_comes_is_refused_or_harmless(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<bool>(),
    ) {
        let writer = written(&[b"a".to_vec(), b"b".to_vec()], Some(end(Some("x"), Some(14))));
        let mut bytes = encode(&writer.staged(Seq::ZERO), Epoch::FIRST);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if cut {
            bytes.truncate(at.index(bytes.len()));
        }
        check::fuzz(&bytes);
    }

    #[test]
    fn noise_is_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check::fuzz(&bytes);
    }
}
