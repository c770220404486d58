//! Each gate, once closed and once open.

use std::collections::BTreeSet;
use std::time::Duration;

use streamweld_dialect::{Engine, Unreadable};

use super::*;
use crate::migration::{Answer, Budget, NoCount};

/// Everything as it has to be: an answer by a greedy model, in front of its twin.
fn good(asked: &Asked) -> Snapshot<'_> {
    Snapshot {
        trigger: Trigger::Failed {
            class: FailureClass::Truncated,
            permanent: false,
        },
        policy: Policy::Prefill,
        dialect: Dialect::OpenAiChat,
        stop_requested: false,
        journal: JournalState::Complete,
        duration: Budget {
            used: Duration::from_secs(5),
            of: Duration::from_secs(3600),
        },
        migrations: Budget { used: 0, of: 3 },
        request: Kept::Whole,
        asked: Ok(asked),
        answer: Answer {
            text: "The tide comes in",
            choices: 1,
            finished: false,
            others: false,
            tool_calls: false,
            reasoning: false,
            tokens: Count::Exact(4),
            kept: Some(3),
            uncounted: None,
            prompt_tokens: Some(10),
            ids: true,
        },
        target: Some(Target {
            name: "twin",
            engine: Some(Engine::Vllm),
            group: Some("g"),
            same_model: Probed::Yes,
            keeps_prefix: Probed::Yes,
            cut_alike: Probed::Unknown,
            methods: &[Method::TokenIds, Method::Prefill],
            context: Some(4096),
            has_credential: true,
        }),
        group: Some("g"),
    }
}

/// The gates that are closed.
fn closed(snapshot: &Snapshot<'_>) -> Vec<Gate> {
    let verdicts = evaluate(snapshot);
    verdicts
        .iter()
        .filter(|verdict| !verdict.is_open())
        .map(|verdict| verdict.gate)
        .collect()
}

#[track_caller]
fn refuses(gate: Gate, change: impl FnOnce(&mut Snapshot<'_>)) {
    let asked = greedy();
    let mut snapshot = good(&asked);
    change(&mut snapshot);
    assert_eq!(closed(&snapshot), [gate]);
}

#[track_caller]
fn allows(change: impl FnOnce(&mut Snapshot<'_>)) {
    let asked = greedy();
    let mut snapshot = good(&asked);
    change(&mut snapshot);
    assert_eq!(closed(&snapshot), []);
}

#[track_caller]
fn asking(asked: Asked, expected: &[Gate]) {
    assert_eq!(closed(&good(&asked)), expected, "{asked:?}");
}

fn greedy() -> Asked {
    Asked {
        greedy: true,
        ..Asked::default()
    }
}

fn hazard(hazard: Hazard) -> Asked {
    Asked {
        hazards: BTreeSet::from([hazard]),
        ..Asked::default()
    }
}

fn target<'a, 'b>(snapshot: &'b mut Snapshot<'a>) -> &'b mut Target<'a> {
    snapshot.target.as_mut().expect("there is one")
}

#[test]
fn every_gate_is_told_once_by_its_name() {
    let asked = Asked::default();
    let gates: Vec<Gate> = evaluate(&good(&asked))
        .iter()
        .map(|verdict| verdict.gate)
        .collect();
    assert_eq!(gates, Gate::ALL);
    let names: BTreeSet<&str> = gates.iter().map(|gate| gate.as_str()).collect();
    assert_eq!(names.len(), Gate::ALL.len());
}

#[test]
fn all_of_them_are_open_where_everything_is_as_it_has_to_be() {
    allows(|_| {});
}

/// Over sockets only an operator sees this, whose move meets a stop (`meanwhile::a_stop_beside_moves_is_a_stop`): a producer hears a
/// stop before it looks for anybody, and where one comes while it looks, the answer is stopped and not refused
/// (`stopping::a_stop_while_the_gates_are_asked_is_a_stop`).
#[test]
fn whoever_stopped_it_meant_it() {
    refuses(Gate::StopRequested, |it| it.stop_requested = true);
}

#[test]
fn the_policy_is_the_operators() {
    refuses(Gate::Policy, |it| it.policy = Policy::Off);
    allows(|it| it.policy = Policy::Exact);
}

#[test]
fn only_what_can_be_mended_is_tried_elsewhere() {
    let failed = |class, permanent| Trigger::Failed { class, permanent };
    for class in [
        FailureClass::Aborted,
        FailureClass::UpstreamError,
        FailureClass::Truncated,
        FailureClass::Stalled,
    ] {
        allows(|it| it.trigger = failed(class, false));
        refuses(Gate::FailureClass, |it| it.trigger = failed(class, true));
    }
    for class in [
        FailureClass::InvalidUtf8,
        FailureClass::EventTooLarge,
        FailureClass::EncodingError,
    ] {
        refuses(Gate::FailureClass, |it| it.trigger = failed(class, false));
    }
    for trigger in [Trigger::Unhealthy, Trigger::Drain, Trigger::Operator] {
        allows(|it| it.trigger = trigger);
        refuses(Gate::FailureClass, |it| {
            it.trigger = trigger;
            it.answer.finished = true;
        });
    }
}

/// Over sockets the time is not seen: a producer ends its answer as `max_duration` at the very moment
/// (`gates::duration_ends_what_waits_for_a_backend_for_too_long`).
#[test]
fn budgets_are_kept() {
    allows(|it| it.migrations = Budget { used: 2, of: 3 });
    refuses(Gate::Attempts, |it| {
        it.migrations = Budget { used: 3, of: 3 }
    });
    refuses(Gate::Duration, |it| it.duration.used = it.duration.of);
}

#[test]
fn what_was_shown_must_be_in_the_journal() {
    refuses(Gate::JournalComplete, |it| {
        it.journal = JournalState::Behind;
    });
    refuses(Gate::JournalComplete, |it| {
        it.journal = JournalState::Incomplete;
    });
}

#[test]
fn the_request_must_be_there() {
    refuses(Gate::RequestTooLarge, |it| it.request = Kept::TooLarge);
}

#[test]
fn only_dialects_that_have_a_continuation_are_continued() {
    allows(|it| it.dialect = Dialect::OpenAiCompletions);
    allows(|it| it.dialect = Dialect::AnthropicMessages);
    for dialect in [Dialect::OpenAiResponses, Dialect::Gemini, Dialect::Generic] {
        refuses(Gate::Dialect, |it| it.dialect = dialect);
    }
}

#[test]
fn each_hazard_of_a_request_has_its_gate() {
    for (of, gate) in [
        (Hazard::Choices, Gate::RequestShape),
        (Hazard::Penalties, Gate::RequestShape),
        (Hazard::Seed, Gate::RequestShape),
        (Hazard::Logprobs, Gate::RequestShape),
        (Hazard::Echo, Gate::RequestShape),
        (Hazard::Media, Gate::RequestShape),
        (Hazard::Truncation, Gate::RequestShape),
        (Hazard::Prefilled, Gate::RequestShape),
        (Hazard::EngineState, Gate::RequestShape),
        (Hazard::Tools, Gate::ToolCall),
        (Hazard::ServerTools, Gate::ToolCall),
        (Hazard::StructuredOutput, Gate::StructuredOutput),
        (Hazard::StopSequence, Gate::StopSequence),
        (Hazard::Reasoning, Gate::Reasoning),
    ] {
        asking(hazard(of), &[gate]);
    }
    let greedy = Asked {
        greedy: true,
        ..hazard(Hazard::Seed)
    };
    asking(greedy, &[]);
}

#[test]
fn what_nobody_knows_is_refused_by_its_name() {
    let asked = Asked {
        unknown: BTreeSet::from(["my_sampler".to_owned()]),
        ..Asked::default()
    };
    let verdicts = evaluate(&good(&asked));
    let shape = verdicts
        .iter()
        .find(|verdict| verdict.gate == Gate::RequestShape)
        .unwrap();
    assert!(shape.refusal.as_deref().unwrap().contains("my_sampler"));
    let unreadable = Asked::default();
    let mut snapshot = good(&unreadable);
    snapshot.asked = Err(Unreadable::NoObject);
    assert_eq!(closed(&snapshot), [Gate::RequestShape, Gate::Tokens]);
}

#[test]
fn an_answer_that_shows_more_than_text_of_one_choice_stays() {
    refuses(Gate::RequestShape, |it| it.answer.choices = 2);
    refuses(Gate::RequestShape, |it| it.answer.others = true);
    refuses(Gate::ToolCall, |it| it.answer.tool_calls = true);
    refuses(Gate::Reasoning, |it| it.answer.reasoning = true);
}

#[test]
fn tokens_are_counted_exactly_where_they_are_limited() {
    let limited = |max, min| Asked {
        max_tokens: max,
        min_tokens: min,
        ..Asked::default()
    };
    let check = |asked: &Asked, tokens, expected: &[Gate]| {
        let mut snapshot = good(asked);
        snapshot.answer.tokens = tokens;
        assert_eq!(closed(&snapshot), expected, "{asked:?} {tokens:?}");
    };
    check(&limited(Some(5), None), Count::Exact(4), &[]);
    check(&limited(Some(4), None), Count::Exact(4), &[Gate::Tokens]);
    check(&limited(Some(5), None), Count::AtLeast(1), &[Gate::Tokens]);
    check(&limited(None, Some(2)), Count::AtLeast(4), &[Gate::Tokens]);
    check(&limited(None, None), Count::AtLeast(4), &[]);
    // With the ten of the prompt.
    refuses(Gate::Tokens, |it| target(it).context = Some(14));
    allows(|it| target(it).context = Some(15));
    allows(|it| target(it).context = None);
}

#[test]
fn somebody_must_be_there() {
    refuses(Gate::BackendAvailable, |it| it.target = None);
}

#[test]
fn whoever_goes_on_is_known_to_be_the_same() {
    refuses(Gate::Compatibility, |it| target(it).engine = None);
    refuses(Gate::Compatibility, |it| target(it).group = Some("h"));
    refuses(Gate::Compatibility, |it| {
        it.group = None;
        target(it).group = None;
    });
    for probed in [Probed::No, Probed::Unknown] {
        refuses(Gate::Compatibility, |it| target(it).same_model = probed);
    }
    refuses(Gate::Credential, |it| target(it).has_credential = false);
}

#[test]
fn a_template_matters_where_text_is_given() {
    for probed in [Probed::No, Probed::Unknown] {
        allows(|it| target(it).keeps_prefix = probed);
        refuses(Gate::Template, |it| {
            it.answer.ids = false;
            target(it).keeps_prefix = probed;
        });
    }
}

#[test]
fn the_most_exact_method_is_taken_and_without_one_there_is_no_seam() {
    let asked = greedy();
    let mut snapshot = good(&asked);
    assert_eq!(method(&snapshot), Some(Method::TokenIds));
    snapshot.answer.ids = false;
    assert_eq!(method(&snapshot), Some(Method::Prefill));
    snapshot.answer.text = "";
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    snapshot.policy = Policy::Exact;
    assert_eq!(method(&snapshot), None);
    // Without a method the template is not known not to matter.
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    refuses(Gate::Seam, |it| target(it).methods = &[]);
    refuses(Gate::Seam, |it| {
        it.policy = Policy::Exact;
        target(it).methods = &[Method::Prefill];
    });
}

#[test]
fn what_is_drawn_at_random_does_not_come_again() {
    let asked = Asked::default();
    let mut snapshot = good(&asked);
    assert_eq!(closed(&snapshot), []);
    snapshot.answer.ids = false;
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    target(&mut snapshot).cut_alike = Probed::No;
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    // Then nothing has to come again, whatever the template does elsewhere.
    target(&mut snapshot).cut_alike = Probed::Yes;
    target(&mut snapshot).keeps_prefix = Probed::Unknown;
    assert_eq!(closed(&snapshot), []);
}

#[test]
fn what_has_to_come_again_by_prefill_is_counted_again() {
    let asked = Asked {
        max_tokens: Some(4),
        ..greedy()
    };
    let mut snapshot = good(&asked);
    // All four were shown; a backend that is given three writes the last one again, and then ends.
    assert_eq!(closed(&snapshot), [Gate::Tokens]);
    snapshot.answer.ids = false;
    assert_eq!(closed(&snapshot), []);
    snapshot.answer.kept = None;
    assert_eq!(closed(&snapshot), [Gate::Tokens]);
    // Without a place for the seam there is nothing to count.
    let word = "a".repeat(100);
    snapshot.answer.text = &word;
    assert_eq!(closed(&snapshot), [Gate::Seam]);
}

#[test]
fn a_message_is_counted_by_whoever_goes_on() {
    let asked = Asked {
        max_tokens: Some(4),
        ..greedy()
    };
    let mut snapshot = good(&asked);
    snapshot.dialect = Dialect::AnthropicMessages;
    snapshot.answer.ids = false;
    snapshot.answer.tokens = Count::AtLeast(4);
    assert_eq!(closed(&snapshot), []);
    snapshot.answer.kept = None;
    for why in [
        NoCount::NoPrompt,
        NoCount::Untold,
        NoCount::Unheard,
        NoCount::Otherwise,
    ] {
        snapshot.answer.uncounted = Some(why);
        let verdicts = evaluate(&snapshot);
        let mut refusing = verdicts.iter().filter(|verdict| !verdict.is_open());
        let tokens = refusing.next().unwrap();
        assert_eq!((tokens.gate, refusing.next()), (Gate::Tokens, None));
        let saw = tokens.refusal.as_ref().unwrap();
        assert!(saw.ends_with(&format!("exactly: {why}")), "{saw}");
    }
    // Where nobody is, or nobody could join it, there is nothing to count for.
    snapshot.answer.text = "";
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    snapshot.policy = Policy::Exact;
    assert_eq!(closed(&snapshot), [Gate::Seam]);
    snapshot.target = None;
    assert_eq!(closed(&snapshot), [Gate::BackendAvailable]);
}

#[test]
fn a_request_that_was_not_kept_is_told_once() {
    let asked = greedy();
    let mut snapshot = good(&asked);
    snapshot.request = Kept::TooLarge;
    snapshot.asked = Err(Unreadable::NoObject);
    assert_eq!(closed(&snapshot), [Gate::RequestTooLarge]);
}
