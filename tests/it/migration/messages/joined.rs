//! Both parts are one message, and what goes on wrongly is not shown.

use serde_json::json;
use streamweld_mock::{Engine, Faults, Refuse, Script};
use streamweld_tests::{End, TwinsSetup};

use super::message::{Message, SHOWN, TEXT, Told, ask, counts, cut_once, request, says};

/// What is sent to whoever goes on, and what is asked of it beforehand, at the path that the app knows.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_on_is_given_what_was_shown_and_what_is_left_of_the_limit() {
    for path in ["/v1/messages", "/anthropic/v1/messages?beta=true"] {
        let twins = cut_once(Engine::Anthropic, |setup| setup).await;
        let told = Told::at(&twins, path, &json!({"max_tokens": 100})).await;
        told.assert_moved("prefill");
        let attempts = twins.attempts();
        assert_eq!(attempts.len(), 2);
        assert_eq!(attempts[1].target, path);
        let [first, second] = [0, 1].map(|at| attempts[at].json());
        let given = second["messages"][1]["content"].as_str().expect("a text");
        assert_eq!(second["messages"][1]["role"], "assistant");
        assert!(TEXT.starts_with(given) && !given.ends_with(char::is_whitespace));
        // What was counted, by both questions.
        let counted = counts(&twins);
        let at = path.replace("messages", "messages/count_tokens");
        assert!(counted.iter().all(|request| request.target == at), "{at}");
        let mut bodies: Vec<_> = counted.iter().map(streamweld_mock::Request::json).collect();
        bodies.sort_by_key(|body| body["messages"].as_array().map(Vec::len));
        assert_eq!(bodies.len(), 2);
        for (counted, attempt) in bodies.iter().zip([&first, &second]) {
            assert_eq!(counted["messages"], attempt["messages"]);
            assert_eq!(counted["system"], attempt["system"]);
            assert_eq!(
                (counted.get("max_tokens"), counted.get("stream")),
                (None, None)
            );
        }
        let tokens = 100 - second["max_tokens"].as_u64().expect("a limit");
        assert!((3..20).contains(&tokens), "{tokens}");
        // Nothing else is changed.
        let mut same = second.clone();
        same["messages"].as_array_mut().expect("messages").pop();
        same["max_tokens"] = json!(100);
        assert_eq!(same, first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_a_message_is_told_as_any_other() {
    for engine in [Engine::Anthropic, Engine::LlamaCpp] {
        let twins = cut_once(engine, |setup| setup).await;
        let told = Told::of(&twins, &json!({})).await;
        told.assert_moved("prefill");
        let name = Some("streamweld.migration");
        let at = told
            .control
            .iter()
            .position(|block| block.event.as_deref() == name);
        assert_eq!(at, Some(1 + SHOWN));
        let payload = &told.payloads("migration")[0];
        assert_eq!(
            (&payload["trigger"], &payload["attempt"]),
            (&json!("truncated"), &json!(2))
        );
        assert_eq!(told.state["attempts"], 2);
    }
}

/// The service sends pings whenever it likes, also where both parts meet.
#[tokio::test(flavor = "multi_thread")]
async fn pings_anywhere_change_nothing() {
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let says = || says(Engine::Anthropic).id("x");
    let twins = TwinsSetup::new(says()).start().await;
    let client = &twins.replica.client;
    let (whole, _) = ask(client, &request(&json!({}))).await;
    for at in 0..6 {
        twins.next([
            says().block_after(SHOWN, ping).fin_after(SHOWN),
            says().block_after(at, ping).block_after(at + 1, ping),
        ]);
        let (message, end) = ask(client, &request(&json!({}))).await;
        assert_eq!((end, &message), (End::Proper, &whole), "{at}");
    }
}

/// Nothing was said: the same request elsewhere, whose beginning is not shown twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_only_began_begins_once() {
    for engine in [Engine::Anthropic, Engine::LlamaCpp] {
        let says = |id: &str| says(engine).id(id);
        let twins = TwinsSetup::new(says("kept")).start().await;
        let client = &twins.replica.client;
        for events in 0..=2 {
            let before = twins.attempts().len();
            twins.next([says("lost").fin_after((events, 10))]);
            let (message, end) = ask(client, &request(&json!({}))).await;
            assert_eq!(
                (end, message.text.as_str(), message.done),
                (End::Proper, TEXT, true)
            );
            let starts = message
                .events
                .iter()
                .filter(|event| event["type"] == "message_start");
            let ids: Vec<_> = starts.map(|event| event["message"]["id"].clone()).collect();
            assert_eq!(
                ids,
                [if events == 0 { "kept" } else { "lost" }],
                "{engine} {events}"
            );
            let begun = message
                .events
                .iter()
                .filter(|event| event["type"] == "content_block_start");
            assert_eq!(begun.count(), 1);
            let attempts = twins.attempts();
            assert_eq!(attempts.len(), before + 2);
            assert_eq!(attempts[before].body, attempts[before + 1].body);
        }
    }
}

/// Whoever goes on wrongly is found out before a byte of it is shown.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_go_on_with_the_message_is_not_shown() {
    for engine in [Engine::Anthropic, Engine::LlamaCpp] {
        for faults in [
            Faults {
                echo: true,
                ..Faults::default()
            },
            Faults {
                refuse: Some(Refuse::NewTurn),
                ..Faults::default()
            },
            Faults {
                eos_after: Some(0),
                ..Faults::default()
            },
        ] {
            let twins = cut_once(engine, |setup| setup).await;
            twins.next([says(engine).faults(faults.clone())]);
            let told = Told::of(&twins, &json!({})).await;
            let saw = told.assert_refused(&["seam"]);
            assert!(
                saw[0].contains(" was asked to go on, and it wrote another text"),
                "{}",
                saw[0]
            );
            assert!(TEXT.starts_with(&told.message.text), "{faults:?}");
            assert_eq!(twins.attempts().len(), 2);
        }
    }
}

/// A stop reason that was held back when the body broke off belongs to no end.
#[tokio::test(flavor = "multi_thread")]
async fn a_reason_ahead_of_its_time_is_forgotten() {
    let early = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
                 \"usage\":{\"output_tokens\":1}}\n\n";
    let says = || says(Engine::Anthropic).id("x");
    let twins = TwinsSetup::new(says()).start().await;
    let client = &twins.replica.client;
    let (whole, _) = ask(client, &request(&json!({}))).await;
    twins.next([says().block_after(SHOWN, early).fin_after(SHOWN)]);
    let (message, end): (Message, End) = ask(client, &request(&json!({}))).await;
    assert_eq!((end, message), (End::Proper, whole));
}

/// Of two that may go on, one refuses the beginning of an answer, as newer models of the service do.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_refuses_prefill_is_named_with_its_status() {
    let refuses: Script = says(Engine::Anthropic).faults(Faults {
        refuse: Some(Refuse::Status(400)),
        ..Faults::default()
    });
    for (count, whole) in [(3, true), (2, false)] {
        let twins = TwinsSetup::new(says(Engine::Anthropic))
            .count(count)
            .start()
            .await;
        twins.next([says(Engine::Anthropic).fin_after(SHOWN), refuses.clone()]);
        let told = Told::of(&twins, &json!({})).await;
        if whole {
            told.assert_moved("prefill");
            assert_eq!(told.state["attempts"], 3);
        } else {
            let saw = told.assert_refused(&["seam"]);
            let why =
                "refused to go on, with status 400: newer models take no beginning of an answer";
            assert!(saw[0].ends_with(why), "{}", saw[0]);
        }
    }
}
