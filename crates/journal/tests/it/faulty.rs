//! Faults on demand: what the caller is told and what really stands.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_journal::{
    Claim, Found, Journal, Memory, Open, OpenRefusal, Outcome, Refusal, Seq, Tail, Unreachable,
    WindowConfig,
};

use crate::story::{Story, at, block_on};

const OWNER: Open = Open { access: [0; 32] };

fn opened() -> (Faulty<Memory>, Story) {
    let (journal, story) = (
        Faulty::new(Memory::default()),
        Story::untold(WindowConfig::default()),
    );
    assert_eq!(
        block_on(journal.open(&story.window, &OWNER, at(0))),
        Outcome::Yes
    );
    story.commit(1).events(&["a", "b"]);
    (journal, story)
}

fn append(journal: &Faulty<Memory>, story: &Story) -> Outcome<Refusal> {
    block_on(journal.append(&story.window, Seq::FIRST, Seq::new(3)))
}

/// What stands behind the faults.
fn last(journal: &Faulty<Memory>, story: &Story) -> Option<u64> {
    match block_on(journal.inner().tail(story.window.id())) {
        Ok(Tail::Last { last, .. }) => Some(last.get()),
        _ => None,
    }
}

#[track_caller]
fn check(fault: Fault, told: Outcome<Refusal>, stands: Option<u64>) {
    let (journal, story) = opened();
    journal.faults().script(Op::Append, [fault]);
    assert_eq!(append(&journal, &story), told);
    assert_eq!(last(&journal, &story), stands);
}

#[test]
fn each_fault_tells_and_does_what_it_says() {
    check(Fault::UnknownApplied, Outcome::Unknown, Some(3));
    check(Fault::UnknownLost, Outcome::Unknown, Some(1));
    check(Fault::Unreachable, Outcome::Unknown, Some(1));
    check(
        Fault::Refuse(Refusal::Full),
        Outcome::No(Refusal::Full),
        Some(1),
    );
    check(Fault::Vanish, Outcome::No(Refusal::Vanished), None);
}

#[test]
fn faults_are_used_up_in_order() {
    let (journal, story) = opened();
    let faults = journal.faults();
    faults.script(Op::Append, [Fault::UnknownLost]);
    faults.pass(Op::Append);
    faults.script(Op::Append, [Fault::UnknownLost]);
    assert_eq!(append(&journal, &story), Outcome::Unknown);
    assert_eq!(append(&journal, &story), Outcome::Yes);
    assert_eq!(append(&journal, &story), Outcome::Unknown);
    assert_eq!(
        append(&journal, &story),
        Outcome::No(Refusal::Unexpected { last: Seq::new(3) })
    );
    assert_eq!(faults.calls(Op::Append), 4);
    assert_eq!(faults.calls(Op::Finish), 0);
}

#[test]
fn a_held_call_goes_on_with_the_next_fault() {
    let (journal, story) = opened();
    let faults = journal.faults();
    let held = faults.hold(Op::Append);
    faults.script(Op::Append, [Fault::UnknownApplied]);
    let mut call = pin!(journal.append(&story.window, Seq::FIRST, Seq::new(3)));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(cx).is_pending());
    block_on(held.reached());
    assert_eq!(last(&journal, &story), Some(1));
    held.release();
    assert_eq!(call.as_mut().poll(cx), Poll::Ready(Outcome::Unknown));
    assert_eq!(last(&journal, &story), Some(3));
}

#[test]
fn a_journal_that_is_down_answers_nothing() {
    let (journal, story) = opened();
    let (faults, id) = (journal.faults(), story.window.id());
    faults.set_down(true);
    assert_eq!(append(&journal, &story), Outcome::Unknown);
    assert_eq!(block_on(journal.tail(id)), Err(Unreachable));
    assert!(block_on(journal.find(id, at(0))).is_err());
    assert_eq!(
        block_on(journal.claim([0; 32], id, at(0))),
        Err(Unreachable)
    );
    block_on(journal.remove(id));
    assert_eq!(last(&journal, &story), Some(1));
    faults.set_down(false);
    assert_eq!(append(&journal, &story), Outcome::Yes);
}

#[test]
fn an_opening_can_fail_in_its_own_words() {
    let (journal, story) = (
        Faulty::new(Memory::default()),
        Story::untold(WindowConfig::default()),
    );
    let faults = journal.faults();
    faults.script(
        Op::Open,
        [
            Fault::Refuse(Refusal::Full),
            Fault::Refuse(Refusal::Ended),
            Fault::UnknownApplied,
        ],
    );
    let open = || block_on(journal.open(&story.window, &OWNER, at(0)));
    assert_eq!(open(), Outcome::No(OpenRefusal::Full));
    assert_eq!(open(), Outcome::No(OpenRefusal::Exists));
    assert_eq!(open(), Outcome::Unknown);
    assert_eq!(open(), Outcome::No(OpenRefusal::Exists));
    assert_eq!(last(&journal, &story), Some(1));
}

#[test]
fn a_question_can_lose_its_answer() {
    let (journal, story) = opened();
    let (faults, id) = (journal.faults(), story.window.id());
    faults.script(Op::Claim, [Fault::UnknownApplied]);
    assert_eq!(
        block_on(journal.claim([5; 32], id, at(0))),
        Err(Unreachable)
    );
    assert_eq!(block_on(journal.claim([5; 32], id, at(0))), Ok(Claim::Won));
    faults.script(Op::Find, [Fault::Vanish]);
    assert!(matches!(
        block_on(journal.find(id, at(0))),
        Ok(Found::Unknown)
    ));
}
