//! What a journal keeps for whoever takes a generation over. One that is of this process alone may keep nothing.

use std::sync::Arc;

use bytes::Bytes;

use super::find::read;
use super::fixture::{Writer, epoch, fenced, fresh_id, now};
use crate::contract::{Journal, Outcome, Replica, Word};
use crate::types::Seq;
use crate::window::{Window, WindowConfig};

/// What was kept last is given back, until the end or the removal of its log.
pub async fn a_request_is_kept_until_the_end(journal: &dyn Journal) {
    for ended in [true, false] {
        let writer = Writer::opened(journal).await;
        assert_eq!(journal.kept_request(writer.id()).await, Ok(None));
        let mut kept = None;
        for request in [&b"first"[..], b"second"] {
            let request = Bytes::from_static(request);
            let answer = journal.keep_request(writer.id(), request.clone()).await;
            assert_eq!(answer, Ok(()));
            kept = journal.kept_request(writer.id()).await.expect("in reach");
            assert!(kept.is_none() || kept == Some(request), "{kept:?}");
        }
        if ended {
            writer.stage_terminal();
            assert_eq!(writer.finish(1).await, Outcome::Yes);
        } else {
            journal.remove(writer.id()).await;
        }
        assert_eq!(journal.kept_request(writer.id()).await, Ok(None));
        if kept.is_some() && ended {
            // Nor from then on.
            let late = journal.keep_request(writer.id(), Bytes::from_static(b"late"));
            assert_eq!(late.await, Ok(()));
            assert_eq!(journal.kept_request(writer.id()).await, Ok(None));
        }
    }
}

/// No request was kept for an id that never was.
pub async fn no_request_of_no_log(journal: &dyn Journal) {
    assert_eq!(journal.kept_request(fresh_id()).await, Ok(None));
}

/// What was staged beside entries is given in their order, as far as it is asked for.
pub async fn what_is_beside_entries_is_given_in_order(journal: &dyn Journal) {
    let writer = Writer::opened(journal).await;
    assert_eq!(journal.beside(writer.id(), Seq::FIRST).await, Ok(vec![]));
    let mut all = Vec::new();
    for round in 0..100_u8 {
        let last = writer.window.received().get();
        for part in 0..round % 3 {
            writer.stage_beside("text", &[round, part]);
            all.extend([round, part]);
        }
        writer.stage("without");
        let through = writer.window.received();
        assert_eq!(writer.append(last, through.get()).await, Outcome::Yes);
        writer.window.commit(through);
        if round % 40 == 0 || round == 99 {
            let given = given(journal, &writer, through).await;
            assert!(given.is_empty() || given == all, "{round}: {given:?}");
        }
    }
    let last = writer.window.committed();
    let whole = given(journal, &writer, last).await;
    let part = given(journal, &writer, Seq::new(6)).await;
    // The first three appends: 2, 3 and 4, 5 to 7. The third ends behind what is asked for.
    assert!(whole.is_empty() || part == [1, 0], "{part:?}");
}

async fn given(journal: &dyn Journal, writer: &Writer<'_>, through: Seq) -> Vec<u8> {
    let given = journal.beside(writer.id(), through).await;
    given.expect("in reach").concat()
}

/// Nothing is beside an id that never was.
pub async fn nothing_is_beside_no_log(journal: &dyn Journal) {
    assert_eq!(journal.beside(fresh_id(), Seq::new(9)).await, Ok(vec![]));
}

/// Where what stands before a window can be read, the new writer's window begins behind it, and is read from 1.
pub async fn an_adopted_log_goes_on_in_a_window_of_its_own(journal: &dyn Journal) {
    let old = Writer::with_entries(journal, 40).await;
    let Some(earlier) = journal.earlier(old.id()) else {
        return;
    };
    assert_eq!(old.adopt(1, 40, 2).await, Outcome::Yes);
    let window = Window::new(old.id(), epoch(2), now(), WindowConfig::default());
    window.begin_after(Seq::new(40));
    window.set_earlier(earlier);
    let new = Writer::with_window(journal, Arc::clone(&window));
    let mut all = old.window.staged(Seq::ZERO).runs.concat();
    for round in 0..30_u64 {
        let last = 40 + 3 * round;
        for _ in 0..3 {
            new.stage("of the new writer");
        }
        assert_eq!(new.append(last, last + 3).await, Outcome::Yes);
        window.commit(Seq::new(last + 3));
    }
    all.extend(window.staged(Seq::ZERO).runs.concat());
    let shown = read(&window, 0).await;
    assert!(
        shown.is_ok_and(|shown| shown == all),
        "from the first entry"
    );
    // The old one is fenced as ever.
    old.stage("too late");
    assert_eq!(old.append(40, 41).await, fenced(2));
    new.stage_terminal();
    assert_eq!(new.finish(130).await, Outcome::Yes);
    new.stands_under(2, 131, true).await;
}

/// Who has a name is not among the others, and who has none has no others.
pub async fn replicas_are_the_others(journal: &dyn Journal) {
    let others = journal.replicas().await.expect("in reach");
    match journal.replica() {
        Some(replica) => assert!(!others.contains(&replica)),
        None => assert_eq!(others, []),
    }
}

/// Whether or not anybody hears it.
pub async fn a_word_is_said_to_nobody(journal: &dyn Journal) {
    let word = Word::Offer {
        epoch: epoch(1),
        last: Seq::FIRST,
    };
    assert_eq!(journal.say(Replica(7), fresh_id(), word).await, Ok(()));
}
