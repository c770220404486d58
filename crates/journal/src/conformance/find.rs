//! Finding a log, and removing one that never was.

use std::sync::Arc;

use super::fixture::{ACCESS, Writer, fresh_id, now};
use crate::contract::{Found, Journal, Outcome, Tail};
use crate::reader::{Reader, Step};
use crate::types::{Seq, View};
use crate::window::{Window, WindowConfig};

/// Nobody is told of an id that was never opened.
pub async fn an_id_that_never_was_is_unknown(journal: &dyn Journal) {
    let found = journal.find(fresh_id(), now()).await;
    assert!(matches!(found, Ok(Found::Unknown)), "{found:?}");
}

/// What is found is what was written, with what its caller must match.
pub async fn a_log_is_found_with_its_access(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    let Ok(Found::Here { window, access, .. }) = journal.find(writer.id(), now()).await else {
        panic!("it is here")
    };
    assert_eq!(access, ACCESS);
    assert_eq!(window.id(), writer.id());
    let (found, written) = (
        window.entries(Seq::ZERO, 10),
        writer.window.entries(Seq::ZERO, 10),
    );
    assert_eq!(found, written);
    assert_eq!(found.len(), 3);
}

/// Who may not have a log is told that it never was, whatever it has come to; asking changes nothing for who may.
pub async fn a_log_is_unknown_to_whom_it_is_not_for(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    for ended in [false, true] {
        if ended {
            writer.stage_terminal();
            assert_eq!(writer.finish(3).await, Outcome::Yes);
            writer.window.commit(Seq::new(4));
        }
        for (admits, expected) in [(false, false), (true, true), (false, false)] {
            let asked = move |access: &[u8; 32]| admits && *access == ACCESS;
            let found = journal
                .find_for(writer.id(), Seq::ZERO, &asked, now())
                .await;
            let found = found.expect("it is within reach");
            assert_eq!(matches!(found, Found::Here { .. }), expected, "{found:?}");
            assert_eq!(matches!(found, Found::Unknown), !expected, "{found:?}");
        }
    }
}

/// A generation can be read after its end.
pub async fn a_finished_log_is_found(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, Outcome::Yes);
    writer.window.commit(Seq::new(3));
    let Ok(Found::Here { window, .. }) = journal.find(writer.id(), now()).await else {
        panic!("it is here")
    };
    assert_eq!(window.terminal(), writer.window.terminal());
    assert!(window.terminal().is_some());
}

/// Wherever a reader stands, it is given what comes after, and what is found for it has come as far as the log. A place
/// that is none is no trouble.
pub async fn a_log_is_found_for_a_reader_anywhere_in_it(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 20).await;
    for after in [0, 1, 7, 19, 20, 21, u64::MAX] {
        let Ok(Found::Here { window, access, .. }) = journal
            .find_after(writer.id(), Seq::new(after), now())
            .await
        else {
            panic!("it is here")
        };
        assert_eq!(access, ACCESS);
        assert_eq!(window.committed(), Seq::new(20), "for a reader at {after}");
        if after < 20 {
            let expected = writer.window.staged(Seq::new(after)).runs.concat();
            let given = read(&window, after).await;
            let given = given.unwrap_or_else(|step| panic!("after {after}: {step:?}"));
            assert_eq!(given, expected, "after {after}");
        }
    }
}

/// What a window could not keep is read from the journal, or told to be gone before anything is shown.
pub async fn what_the_ring_let_go_is_read_in_order_or_refused(journal: &dyn Journal) {
    let ring = WindowConfig {
        max_bytes: 16 << 10,
    };
    let writer = Writer::with_ring(journal, fresh_id(), ring);
    writer.open().await;
    let mut all = writer.window.staged(Seq::ZERO).runs.concat();
    let text = "x".repeat(500);
    for last in 1..=100 {
        writer.stage(&text);
        all.extend(writer.window.staged(Seq::new(last)).runs.concat());
        assert_eq!(writer.append(last, last + 1).await, Outcome::Yes);
        writer.window.commit(Seq::new(last + 1));
    }
    let earliest = writer.window.earliest();
    assert!(earliest > Seq::new(50), "the ring has turned");
    for after in [0, 1, 30] {
        let given = match read(&writer.window, after).await {
            Ok(given) => given,
            Err(Step::Overtaken { earliest: told }) => {
                assert_eq!(told, earliest);
                continue;
            }
            Err(step) => panic!("{step:?}"),
        };
        assert!(all.ends_with(&given), "after {after}");
        let first = format!("id: {}:{}\n\n", writer.id(), after + 1);
        assert!(
            given
                .windows(first.len())
                .any(|part| part == first.as_bytes())
        );
        assert!(after > 0 || given.len() == all.len());
    }
}

/// Everything that is committed behind `after`, or why there is nothing.
pub(super) async fn read(window: &Arc<Window>, after: u64) -> Result<Vec<u8>, Step> {
    let view = View {
        ids: true,
        control: true,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::new(after), view);
    let mut given = Vec::new();
    while reader.cursor() < window.committed() {
        match reader.next(4 << 10).await {
            Step::Run { bytes, .. } => given.extend_from_slice(&bytes),
            step => {
                assert!(given.is_empty(), "it was told before it was shown anything");
                return Err(step);
            }
        }
    }
    Ok(given)
}

/// A candidate that became no generation is as if it had never been; its id may even be opened.
pub async fn removed_log_leaves_no_trace(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    journal.remove(writer.id()).await;
    assert_eq!(journal.tail(writer.id()).await, Ok(Tail::None));
    let found = journal.find(writer.id(), now()).await;
    assert!(matches!(found, Ok(Found::Unknown)), "{found:?}");
    Writer::unopened(journal, writer.id()).open().await;
}

/// Removing what is not there does nothing.
pub async fn removing_nothing_is_fine(journal: &dyn Journal) {
    let other = Writer::opened(journal).await;
    journal.remove(fresh_id()).await;
    other.stands(1, false).await;
}
