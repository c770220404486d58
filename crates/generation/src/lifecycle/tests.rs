//! The rules as a table of lives: what happened when, and what came of it.

use streamweld_dialect::End as DoneBy;
use streamweld_sse::{Decoder, Limits};

use super::*;

/// A life on a clock that starts at zero, in seconds.
struct Life {
    life: Lifecycle,
    zero: Instant,
}

impl Life {
    fn new(policy: OrphanPolicy) -> Self {
        let zero = Instant::now();
        Self {
            life: Lifecycle::new(Dialect::OpenAiChat, policy, Times::default(), zero),
            zero,
        }
    }

    fn streaming(policy: OrphanPolicy) -> Self {
        let mut life = Self::new(policy);
        assert_eq!(life.on(0, Signal::Head { durable: true }), None);
        life
    }

    fn at(&self, seconds: u64) -> Instant {
        self.zero + Duration::from_secs(seconds)
    }

    fn on(&mut self, at: u64, signal: Signal) -> Option<End> {
        let now = self.at(at);
        self.life.on(signal, now)
    }

    fn event(&mut self, at: u64, data: &str) -> OnEvent {
        let block = format!("data: {data}\n\n");
        let mut input = block.as_bytes();
        let mut decoder = Decoder::new(Limits::default());
        let event = decoder.decode(&mut input).expect("valid").expect("whole");
        let now = self.at(at);
        self.life.event(&event, now)
    }

    fn deadline(&self) -> Option<u64> {
        self.life.deadline().map(|at| (at - self.zero).as_secs())
    }
}

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const SECOND: &str = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}"#;
const SECOND_FINISH: &str = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#;

fn done(end: &Option<End>) -> DoneBy {
    match end {
        Some(End::Done(done)) => done.end,
        other => panic!("not done: {other:?}"),
    }
}

#[test]
fn a_client_that_leaves_an_unknown_request_cancels_it() {
    let mut life = Life::new(OrphanPolicy::Continue);
    assert_eq!(life.on(1, Signal::Readers(0)), Some(End::OrphanCancelled));
}

#[test]
fn a_client_that_leaves_a_known_stream_before_its_head_leaves_an_orphan() {
    let mut life = Life::new(OrphanPolicy::Continue);
    assert_eq!(life.on(1, Signal::OutlivesClient), None);
    assert_eq!(life.on(2, Signal::Readers(0)), None);
    assert_eq!(life.on(3, Signal::Head { durable: true }), None);
    assert_eq!(life.event(4, TEXT), OnEvent::Stage);
}

#[test]
fn orphan_policy_cancel_ends_at_once() {
    let mut life = Life::streaming(OrphanPolicy::Cancel);
    assert_eq!(life.on(1, Signal::Readers(0)), Some(End::OrphanCancelled));
}

#[test]
fn cancel_after_waits_and_a_reader_that_comes_back_ends_the_wait() {
    let mut life = Life::streaming(OrphanPolicy::CancelAfter(Duration::from_secs(60)));
    assert_eq!(life.on(10, Signal::Readers(0)), None);
    assert_eq!(life.deadline(), Some(70));
    assert_eq!(life.on(69, Signal::Readers(1)), None);
    assert_eq!(life.on(75, Signal::Tick), None);
    assert_eq!(life.on(80, Signal::Readers(0)), None);
    assert_eq!(life.on(139, Signal::Tick), None);
    assert_eq!(life.on(140, Signal::Tick), Some(End::OrphanCancelled));
}

#[test]
fn a_wait_that_no_clock_reaches_never_ends() {
    let mut life = Life::streaming(OrphanPolicy::CancelAfter(Duration::MAX));
    assert_eq!(life.on(10, Signal::Readers(0)), None);
    assert_eq!(life.on(3000, Signal::Tick), None);
}

#[test]
fn being_told_twice_that_nobody_reads_does_not_restart_the_wait() {
    let mut life = Life::streaming(OrphanPolicy::CancelAfter(Duration::from_secs(60)));
    life.on(10, Signal::Readers(0));
    life.on(50, Signal::Readers(0));
    assert_eq!(life.deadline(), Some(70));
}

#[test]
fn policy_continue_never_ends_an_orphan() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    assert_eq!(life.on(1, Signal::Readers(0)), None);
    assert_eq!(life.on(3000, Signal::Tick), None);
}

#[test]
fn a_degraded_generation_goes_with_its_reader() {
    let mut life = Life::new(OrphanPolicy::Continue);
    life.on(0, Signal::OutlivesClient);
    life.on(0, Signal::Head { durable: false });
    assert_eq!(life.on(1, Signal::Readers(0)), Some(End::OrphanCancelled));
}

#[test]
fn age_is_a_deadline_of_its_own() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    assert_eq!(life.deadline(), Some(3600));
    assert_eq!(life.on(3599, Signal::Tick), None);
    assert_eq!(life.on(3600, Signal::Tick), Some(End::TooLong));
}

#[test]
fn a_settled_answer_is_done_after_five_seconds_of_silence() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    assert_eq!(life.event(1, TEXT), OnEvent::Stage);
    assert_eq!(life.deadline(), Some(3600));
    assert_eq!(life.event(2, FINISH), OnEvent::Stage);
    assert_eq!(life.deadline(), Some(7));
    // The usage chunk after the finish starts the wait again.
    assert_eq!(
        life.event(4, r#"{"choices":[],"usage":{"total_tokens":3}}"#),
        OnEvent::Stage
    );
    assert_eq!(life.on(8, Signal::Tick), None);
    assert_eq!(done(&life.on(9, Signal::Tick)), DoneBy::Silence);
}

#[test]
fn an_answer_that_is_not_settled_is_never_ended_by_silence() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    life.event(1, TEXT);
    assert_eq!(life.on(1000, Signal::Tick), None);
}

#[test]
fn another_choice_that_begins_ends_the_wait_and_may_take_its_time() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    life.event(1, FINISH);
    assert_eq!(life.deadline(), Some(6));
    life.event(2, SECOND);
    assert_eq!(life.deadline(), Some(3600));
    assert_eq!(life.on(1000, Signal::Tick), None);
    life.event(1001, SECOND_FINISH);
    assert_eq!(done(&life.on(1006, Signal::Tick)), DoneBy::Silence);
}

#[test]
fn a_choice_that_was_asked_for_and_never_began_is_waited_for() {
    let mut life = Life::new(OrphanPolicy::Continue);
    life.on(0, Signal::Choices(2));
    life.on(0, Signal::Head { durable: true });
    life.event(1, FINISH);
    assert_eq!(life.on(1000, Signal::Tick), None);
    match life.life.body_ended(BodyEnd::Clean, None) {
        Some(End::Failed(failure)) => assert_eq!(failure.class, FailureClass::Truncated),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_seen_late_unsettles_what_was_settled_without_it() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    life.event(1, FINISH);
    // At the very moment when the wait would be over.
    assert_eq!(life.on(6, Signal::Choices(2)), None);
    assert_eq!(life.deadline(), Some(3600));
    life.event(7, SECOND_FINISH);
    assert_eq!(life.deadline(), Some(12));
    // It is told again with everything else that is looked at, and that changes nothing.
    assert_eq!(life.on(8, Signal::Choices(2)), None);
    assert_eq!(life.deadline(), Some(12));
    assert_eq!(done(&life.on(12, Signal::Tick)), DoneBy::Silence);
}

#[test]
fn a_settled_answer_stays_whole_when_its_orphan_deadline_passes_too() {
    let mut life = Life::streaming(OrphanPolicy::CancelAfter(Duration::from_secs(3)));
    life.event(1, FINISH);
    life.on(2, Signal::Readers(0));
    assert_eq!(done(&life.on(6, Signal::Tick)), DoneBy::Silence);
}

#[test]
fn the_first_end_wins() {
    let mut life = Life::streaming(OrphanPolicy::Cancel);
    assert_eq!(
        life.on(1, Signal::Stop(By::Client)),
        Some(End::Stopped(By::Client))
    );
    assert_eq!(life.on(2, Signal::Stop(By::Admin)), None);
    assert_eq!(life.on(2, Signal::Readers(0)), None);
    assert_eq!(life.on(2, Signal::Shutdown), None);
    assert_eq!(life.event(3, TEXT), OnEvent::Skip);
    assert_eq!(life.life.body_ended(BodyEnd::Clean, None), None);
    assert_eq!(life.life.internal(), None);
    assert_eq!(life.deadline(), None);
}

#[test]
fn the_sentinel_ends_a_success_and_is_staged() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    life.event(1, FINISH);
    match life.event(1, "[DONE]") {
        OnEvent::StageAndEnd(End::Done(done)) => assert_eq!(done.end, DoneBy::Sentinel),
        other => panic!("{other:?}"),
    }
    assert_eq!(life.on(2, Signal::Stop(By::Client)), None);
}

#[test]
fn a_sentinel_without_a_reason_is_not_staged() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    life.event(1, TEXT);
    match life.event(1, "[DONE]") {
        OnEvent::End {
            salvage: None,
            end: End::Failed(failure),
        } => {
            assert_eq!(failure.class, FailureClass::Truncated);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_ends_before_its_reasons_is_truncated() {
    for how in [BodyEnd::Clean, BodyEnd::Cut] {
        let mut life = Life::streaming(OrphanPolicy::Continue);
        life.event(1, TEXT);
        match life.life.body_ended(how, None) {
            Some(End::Failed(failure)) => assert_eq!(failure.class, FailureClass::Truncated),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unusable_body_fails_with_its_class() {
    let mut life = Life::streaming(OrphanPolicy::Continue);
    match life
        .life
        .unusable(FailureClass::InvalidUtf8, "not UTF-8".to_owned())
    {
        Some(End::Failed(failure)) => assert_eq!(failure.class, FailureClass::InvalidUtf8),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failure_says_nothing_but_what_is_salvaged_of_it() {
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let error = r#"{"error":{"message":"m","code":500}}"#;
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let last = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"abort"}]}"#;
    for (events, said) in [
        (&[role][..], false),
        (&[error], false),
        (&[role, error], false),
        (&[text, error], true),
        (&[last], true),
    ] {
        let mut life = Life::streaming(OrphanPolicy::Continue);
        for event in events {
            life.event(1, event);
        }
        assert_eq!(life.life.has_said(), said, "{events:?}");
    }
}
