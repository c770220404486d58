//! More choices than one.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Raw, Script};
use streamweld_tests::{Block, End, Harness, blocks, without_ids};

use super::{begun, chat, delta, plain};

#[tokio::test(flavor = "multi_thread")]
async fn every_choice_needs_its_own_finish() {
    let (a, b) = (delta(0, "a", &Value::Null), delta(1, "b", &Value::Null));
    let (stop, length) = (delta(0, "", &json!("stop")), delta(1, "", &json!("length")));
    let one = [&*a, &b, &stop];
    chat(&one).await.assert_failed(&plain(&one), "truncated");
    let both = [&*a, &b, &length, &stop, "[DONE]"];
    chat(&both)
        .await
        .assert_done(&plain(&both), "sentinel", &["stop", "length"]);
}

/// What the client that sent this request was shown, without ids, and the terminal in the state.
async fn asked(dialect: Dialect, request: &Value, raw: Raw) -> (Vec<Block>, End, Value) {
    let harness = Harness::start(Script::raw(raw)).await;
    let client = &harness.client;
    let request = request.to_string();
    let response = client.send("POST", dialect.path(), &request).await;
    let id = response.id();
    let (body, end) = response.all().await;
    let mut state = client.get(&format!("/v1/streams/{id}")).await.json().await;
    (without_ids(&blocks(&body)), end, state["terminal"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_was_asked_for_and_never_began_is_missed() {
    let (text, stop) = (delta(0, "a", &Value::Null), delta(0, "", &json!("stop")));
    let events = [&*text, &stop];
    let (chat, completions) = (Dialect::OpenAiChat, Dialect::OpenAiCompletions);
    let requests = [
        (chat, json!({"model": "m", "stream": true, "n": 2}), true),
        (chat, json!({"n": 3, "stream": true}), true),
        // Not every client says in the body that it wants a stream.
        (chat, json!({"n": 2}), true),
        (
            completions,
            json!({"stream": true, "n": 2, "prompt": "p"}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "prompt": ["p", "q"]}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "prompt": [[1, 2], [3]]}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "n": 1, "prompt": [1, 2]}),
            false,
        ),
        (chat, json!({"stream": true, "prompt": ["p", "q"]}), false),
        (chat, json!({"stream": true, "n": 0}), false),
        (chat, json!({"stream": true, "n": -2}), false),
        (chat, json!({"stream": true, "n": 1_000_000_000}), false),
        (chat, json!({"stream": true, "n": "2"}), false),
        (chat, json!({"stream": true, "n": null}), false),
    ];
    for (dialect, request, missed) in requests {
        for cut in [false, true] {
            let raw = begun(&events);
            let raw = if cut { raw.fin() } else { raw.last_chunk() };
            let (mut shown, end, terminal) = asked(dialect, &request, raw).await;
            let form = shown.split_off(events.len());
            assert_eq!(shown, plain(&events), "{request}");
            if missed {
                assert_eq!((form.len(), end), (1, End::Fin), "{request}");
                assert_eq!(terminal["kind"], "error", "{request}");
                assert_eq!(terminal["code"], "truncated", "{request}");
            } else {
                assert_eq!((form.len(), end), (0, End::Proper), "{request}");
                assert_eq!(terminal["kind"], "done", "{request}");
                assert_eq!(terminal["end"], if cut { "cut" } else { "eof" });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sentinel_says_that_no_more_choices_will_come() {
    let stop = delta(0, "a", &json!("stop"));
    let events = [&*stop, "[DONE]"];
    let request = json!({"stream": true, "n": 2});
    let raw = begun(&events).last_chunk();
    let (shown, end, terminal) = asked(Dialect::OpenAiChat, &request, raw).await;
    assert_eq!((shown, end), (plain(&events), End::Proper));
    assert_eq!(terminal["end"], "sentinel");
    assert_eq!(terminal["reasons"], json!(["stop"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_takes_its_time_is_waited_for() {
    let stop = delta(0, "a", &json!("stop"));
    let (text, length) = (delta(1, "b", &Value::Null), delta(1, "", &json!("length")));
    let events = [&*stop, &text, &length, "[DONE]"];
    let wait = async |request: Value, before: usize| {
        // Longer than a settled answer waits for its sentinel.
        let raw = begun(&events[..before]).pause(Duration::from_secs(6));
        let raw = events[before..]
            .iter()
            .fold(raw, |raw, event| raw.chunk(format!("data: {event}\n\n")));
        let (shown, end, terminal) = asked(Dialect::OpenAiChat, &request, raw.last_chunk()).await;
        assert_eq!((shown, end), (plain(&events), End::Proper));
        assert_eq!(terminal["end"], "sentinel");
        assert_eq!(terminal["reasons"], json!(["stop", "length"]));
    };
    tokio::join!(
        // Before it has begun, where it was asked for.
        wait(json!({"stream": true, "n": 2}), 1),
        // And once it has begun, whether or not it was.
        wait(json!({"stream": true, "n": 2}), 2),
        wait(json!({"stream": true}), 2),
    );
}
