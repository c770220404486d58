//! Every rule is needed: without it the search finds a run that goes wrong.

use streamweld_model::{
    Bounds, DONE_IS_WHOLE, END_IS_FINAL, Faults, NO_GAP, NOBODY_WAITS, ONE_ANSWER,
    ONE_ENTRY_A_CURSOR, ONE_WRITER, Protocol, Rule, search_fault,
};

use crate::THREADS;

/// Where a run without a rule goes wrong, and what it breaks.
fn broken_by(rule: Rule) -> (Bounds, &'static str) {
    let none = Faults::NONE;
    let with = |faults| Bounds {
        faults,
        ..Bounds::SMALL
    };
    let read = |faults| Bounds {
        reader: true,
        events: 1,
        ..with(faults)
    };
    // The script of an end sees a gap before the last record.
    let long = |faults| Bounds {
        events: 3,
        ..with(faults)
    };
    let one = |faults| Bounds {
        events: 1,
        ..with(faults)
    };
    let three = |faults| Bounds {
        replicas: 3,
        events: 1,
        ..with(faults)
    };
    let unanswered = Faults {
        unanswered: 1,
        ..none
    };
    let pause = Faults { pauses: 1, ..none };
    let death = Faults { crashes: 1, ..none };
    let offer = Faults {
        unanswered: 1,
        offers: 1,
        ..none
    };
    let lost = Faults {
        failovers: 1,
        ..none
    };
    let lost_and_death = Faults { crashes: 1, ..lost };
    let lost_and_pause = Faults { pauses: 1, ..lost };
    let two_late = Faults {
        fallbacks: 1,
        pauses: 1,
        unanswered: 1,
        ..none
    };
    let older = Faults {
        fallbacks: 1,
        crashes: 1,
        ..none
    };
    match rule {
        Rule::AdoptionNamesTheLast => (with(offer), ONE_ANSWER),
        Rule::AdoptionNamesTheWriter => (three(older), NOBODY_WAITS),
        Rule::EpochIsFresh => (with(lost_and_death), ONE_ENTRY_A_CURSOR),
        Rule::EndNamesTheLast => (with(older), NO_GAP),
        Rule::AppendIsFenced => (with(pause), NO_GAP),
        Rule::EndIsFenced => (with(pause), NO_GAP),
        Rule::EndNamesItsEpoch => (with(older), NO_GAP),
        Rule::EndIsSeen => (one(two_late), NO_GAP),
        Rule::EndHasItsPlace => (one(two_late), NO_GAP),
        Rule::PlaceNamesTheWriter => (with(older), ONE_ANSWER),
        Rule::EndIsFinal => (with(pause), END_IS_FINAL),
        Rule::UnknownIsReadBack => (long(unanswered), NO_GAP),
        Rule::ReadBackIsCompared => (with(lost_and_death), NO_GAP),
        Rule::NewConnectionIsReadBack => (long(lost), NO_GAP),
        Rule::GapIsTakenBack => (with(older), NO_GAP),
        Rule::SeveralHaveNoPlace => (one(two_late), NO_GAP),
        Rule::GapIsAnybodys => (with(older), NOBODY_WAITS),
        Rule::SeamIsTheLast => (with(offer), ONE_ANSWER),
        Rule::DoneIsWhole => (with(pause), DONE_IS_WHOLE),
        Rule::FencedIsOver => (with(pause), ONE_WRITER),
        Rule::SilentIsJudged => (with(death), NOBODY_WAITS),
        Rule::NamedWriterIsAsked => (with(lost_and_pause), NOBODY_WAITS),
        Rule::OfferLapses => (with(offer), NOBODY_WAITS),
        Rule::FollowerCompares => (read(lost_and_death), ONE_ANSWER),
        Rule::MarkNamesWhatItFollows => (read(lost_and_pause), ONE_ANSWER),
        Rule::FollowerKnowsItsEnd => (read(lost_and_pause), NOBODY_WAITS),
        Rule::CursorNamesEpoch => (with(lost), ONE_ENTRY_A_CURSOR),
        Rule::EndIsLookedAfter => (with(lost), NOBODY_WAITS),
    }
}

#[test]
fn without_any_rule_something_goes_wrong() {
    let mut findings = Vec::new();
    for &rule in Rule::ALL {
        let (bounds, expected) = broken_by(rule);
        let bounds = Bounds {
            without: Some(rule),
            ..bounds
        };
        let found = search_fault(Protocol { bounds }, THREADS);
        let broken: Vec<_> = found.broken.keys().copied().collect();
        println!("{rule:?}: {} states, {broken:?}", found.states);
        if !broken.contains(&expected) {
            findings.push(format!(
                "{rule:?}: {expected:?} is not broken, but {broken:?}"
            ));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}
