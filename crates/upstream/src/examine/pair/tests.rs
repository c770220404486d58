//! What two examinations say together.

use streamweld_dialect::{Description, Engine, Served};

use super::super::examination::{Fingerprint, Way};
use super::super::{Finding, Identity, Ways};
use super::*;
use crate::fleet;

fn identity() -> Identity {
    Identity {
        engine: Some(Engine::Vllm),
        evidence: String::new(),
        description: Description::default(),
        models: vec!["m".to_owned()],
        model: Some(Served {
            name: "m".to_owned(),
            owner: None,
            root: Some("/models/m-7b".to_owned()),
            context: Some(2048),
            weights: [("ftype", "Q4_1".to_owned())].into(),
        }),
    }
}

fn examination() -> Examination {
    let ways = Ways {
        methods: vec![Method::TokenIds, Method::Prefill],
        round_trip: Probed::Yes,
    };
    Examination {
        chat: ways.clone(),
        completions: ways,
        keeps_word: Probed::Yes,
        tokenisation: Some(Fingerprint::new(Way::Asked, &[1])),
        rendering: Some(Fingerprint::new(Way::Asked, &[2])),
        ..Examination::new(identity(), fleet::Engine::Vllm)
    }
}

/// A change of the other, what the chats of both are then, and which check says so.
#[track_caller]
fn check(change: impl FnOnce(&mut Examination), same: Probed, name: &str, said: &str) {
    let (one, mut other) = (examination(), examination());
    change(&mut other);
    for pair in [compare(&one, &other), compare(&other, &one)] {
        assert_eq!(pair.same_model(Dialect::OpenAiChat), same, "{pair:?}");
        let mut checks = pair.checks.iter();
        let check = checks.find(|check| check.name == name).unwrap();
        let finding = match same {
            Probed::Yes => Finding::Ok,
            Probed::No => Finding::Problem,
            Probed::Unknown => Finding::Unknown,
        };
        assert_eq!(check.finding, finding, "{check:?}");
        assert!(check.evidence.contains(said), "{check:?}");
        assert_eq!(check.remedy.is_some(), finding != Finding::Ok);
        let goes_on = same == Probed::Yes;
        assert_eq!(pair.methods(Dialect::OpenAiChat).is_empty(), !goes_on);
    }
}

fn model(examination: &mut Examination) -> &mut Served {
    examination.identity.model.as_mut().unwrap()
}

#[test]
fn models_are_the_same_by_name_and_weights() {
    let name = "pair.model";
    check(|_| {}, Probed::Yes, name, "both serve m");
    check(|it| model(it).name = "n".to_owned(), Probed::No, name, "n");
    // On another host they may lie elsewhere.
    let root = |root: &str| {
        let root = root.to_owned();
        move |it: &mut Examination| model(it).root = Some(root)
    };
    check(root("/mnt/m-7b/"), Probed::Yes, name, "m");
    check(root("/models/m-70b"), Probed::No, name, "m-70b");
    check(|it| model(it).root = None, Probed::Yes, name, "m");
    let other = |it: &mut Examination| {
        model(it).weights.insert("ftype", "F16".to_owned());
    };
    check(other, Probed::No, name, "ftype: ");
    check(|it| model(it).weights.clear(), Probed::Yes, name, "m");
    check(
        |it| it.identity.model = None,
        Probed::Unknown,
        name,
        "one of them",
    );
}

#[test]
fn prompts_are_the_same_by_their_tokens() {
    let other = || Some(Fingerprint::new(Way::Asked, &[9]));
    let told = || Some(Fingerprint::new(Way::Told, &[9]));
    let (tokens, prompts) = ("pair.tokenisation", "pair.rendering");
    check(|it| it.tokenisation = other(), Probed::No, tokens, " and ");
    check(
        |it| it.tokenisation = told(),
        Probed::Unknown,
        tokens,
        "two ways",
    );
    check(
        |it| it.tokenisation = None,
        Probed::Unknown,
        tokens,
        "does not tell",
    );
    check(|it| it.rendering = other(), Probed::No, prompts, " and ");
    check(
        |it| it.rendering = None,
        Probed::Unknown,
        prompts,
        "does not tell",
    );
}

#[test]
fn completions_are_not_rendered() {
    let (one, mut other) = (examination(), examination());
    other.rendering = None;
    other.keeps_word = Probed::No;
    let pair = compare(&one, &other);
    assert_eq!(pair.same_model(Dialect::OpenAiCompletions), Probed::Yes);
    assert_eq!(pair.methods(Dialect::OpenAiCompletions).len(), 2);
    assert_eq!(pair.same_model(Dialect::Mcp), Probed::Unknown);
}

#[test]
fn a_method_has_to_work_on_both() {
    let (one, mut other) = (examination(), examination());
    other.chat.methods = vec![Method::Prefill];
    let methods = |other: &Examination| compare(&one, other).methods(Dialect::OpenAiChat).to_vec();
    assert_eq!(methods(&other), [Method::Prefill]);
    other.keeps_word = Probed::Unknown;
    assert_eq!(methods(&other), []);
    let pair = compare(&one, &other);
    let last = pair.checks.iter().find(|check| check.name == "pair.chat");
    assert_eq!(last.unwrap().evidence, "no method works on both");
}
