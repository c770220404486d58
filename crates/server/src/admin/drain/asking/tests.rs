//! What became of those that were asked.

use streamweld_generation::migration::Judged;
use streamweld_generation::migration::gates::{Gate, Verdict};

use super::*;
use crate::testing::candidate;

/// One that is at this backend.
fn at(backend: &str) -> Arc<Handle> {
    let handle = candidate();
    handle.go_to(backend, Leave::Otherwise);
    handle
}

/// One that was asked to leave `a`, and has said nothing.
fn asked(asking: &Asking) -> Arc<Handle> {
    let handle = at("a");
    let there = Asked::There(Arc::clone(&handle), None);
    asking.lock().insert(handle.spec().id, there);
    handle
}

fn stays() -> Report {
    let verdict = |gate, refusal: Option<&str>| Verdict {
        gate,
        refusal: refusal.map(str::to_owned),
    };
    let verdicts = vec![
        verdict(Gate::Policy, None),
        verdict(Gate::Seam, Some("there is none")),
    ];
    Report::Stays {
        judged: Judged {
            verdicts,
            ..Judged::default()
        },
        reason: "it stays".to_owned(),
    }
}

/// The reason of each that is still there, and how many gates it names.
fn reasons(stands: &Stands) -> Vec<(&str, usize)> {
    let remaining = stands.remaining.iter();
    let mut reasons: Vec<_> = remaining
        .map(|one| (one.reason.as_str(), one.gates.len()))
        .collect();
    // In the order of their ids, which are drawn.
    reasons.sort_unstable();
    reasons
}

#[tokio::test]
async fn nobody_is_asked_twice() {
    let (asking, tasks) = (Arc::new(Asking::default()), TaskTracker::new());
    let handle = at("a");
    for _ in 0..3 {
        asking.ask(&tasks, "a", &handle);
    }
    assert_eq!(tasks.len(), 1);
    let stands = asking.stands("a", &[handle]);
    assert_eq!((stands.moved, reasons(&stands).len()), (0, 1));
    assert!(reasons(&stands)[0].0.contains("not known yet"));
}

#[tokio::test]
async fn who_has_left_by_itself_is_not_asked_and_did_not_move() {
    let (asking, tasks) = (Arc::new(Asking::default()), TaskTracker::new());
    let mut news = asking.news();
    let handle = at("a");
    asking.ask(&tasks, "a", &handle);
    // Its first backend has failed before its turn came.
    handle.go_to("b", Leave::Otherwise);
    news.changed().await.expect("it is kept");
    let stands = asking.stands("a", &[]);
    assert_eq!((stands.moved, stands.left, stands.ended), (0, 1, 0));
    assert!(stands.remaining.is_empty());
}

#[test]
fn each_is_in_one_place_whatever_it_has_said() {
    let asking = Asking::default();
    let [moved, left, _silent, refuses] = [(); 4].map(|()| asked(&asking));
    let stands = asking.stands("a", &[]);
    assert_eq!(reasons(&stands).len(), 4);
    asking.answered(refuses.spec().id, "a", stays());
    moved.go_to("b", Leave::Drained);
    left.go_to("b", Leave::Otherwise);
    let not_asked = at("a");
    for _ in 0..2 {
        let stands = asking.stands("a", &[Arc::clone(&refuses), Arc::clone(&not_asked)]);
        assert_eq!((stands.moved, stands.left, stands.ended), (1, 1, 0));
        let unknown = ("what becomes of it is not known yet; ask again", 0);
        assert_eq!(reasons(&stands), [("it stays", 1), unknown, unknown]);
    }
    // It has refused, and its backend has failed.
    refuses.go_to("b", Leave::Otherwise);
    let stands = asking.stands("a", &[]);
    assert_eq!((stands.moved, stands.left), (1, 2));
    assert_eq!(stands.remaining.len(), 1);
}

#[tokio::test]
async fn who_is_there_again_is_asked_again() {
    let (asking, tasks) = (Arc::new(Asking::default()), TaskTracker::new());
    let handle = asked(&asking);
    handle.go_to("b", Leave::Drained);
    assert_eq!(asking.stands("a", &[]).moved, 1);
    handle.go_to("a", Leave::Otherwise);
    asking.ask(&tasks, "a", &handle);
    let stands = asking.stands("a", &[]);
    assert_eq!((stands.moved, stands.remaining.len()), (0, 1));
    assert_eq!(tasks.len(), 1);
}
