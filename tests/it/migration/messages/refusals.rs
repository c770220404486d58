//! The gates that are special for messages, each with what it refuses, and what it lets pass.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Raw, Script};
use streamweld_tests::TwinsSetup;

use super::message::{MESSAGES, Told, counts, cut_once, says};

/// Asks for a message that is cut, with these members.
async fn cut_with(more: &Value) -> Told {
    let twins = cut_once(Engine::Anthropic, |setup| setup).await;
    let told = Told::of(&twins, more).await;
    if told.message.error.is_some() {
        // Nobody else was given anything of what is refused, not even to count it.
        assert_eq!((twins.attempts().len(), counts(&twins).len()), (1, 0));
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_message_asks_for_is_refused_by_its_gate() {
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    let image = json!({"type": "image", "source": {"type": "url", "url": "http://i/"}});
    let begun = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "Salt"}]);
    for (gate, more, word) in [
        ("tool_call", json!({"tools": tools}), "tools"),
        (
            "tool_call",
            json!({"mcp_servers": [{"name": "s"}]}),
            "server",
        ),
        (
            "reasoning",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            "reason",
        ),
        (
            "stop_sequence",
            json!({"stop_sequences": ["###"]}),
            "ends the answer",
        ),
        (
            "structured_output",
            json!({"output_config": {"format": {"type": "json_schema"}}}),
            "format",
        ),
        ("request_shape", json!({"my_member": 1}), "my_member"),
        (
            "request_shape",
            json!({"messages": [{"role": "user", "content": [image]}]}),
            "media",
        ),
        ("request_shape", json!({"messages": begun}), "prefilled"),
        (
            "request_shape",
            json!({"context_management": {"edits": []}}),
            "truncation",
        ),
        ("seam", json!({"temperature": 0.7}), "at random"),
    ] {
        let saw = cut_with(&more).await.assert_refused(&[gate]);
        assert!(saw[0].contains(word), "{}", saw[0]);
    }
    for more in [
        json!({"tools": tools, "tool_choice": {"type": "none"}}),
        json!({"thinking": {"type": "disabled"}, "stop_sequences": [], "output_config": {"effort": "low"}}),
        json!({"system": [{"type": "text", "text": "s"}], "service_tier": "auto", "metadata": {"user_id": "u"}}),
    ] {
        cut_with(&more).await.assert_moved("prefill");
    }
}

fn event(data: &Value) -> String {
    let name = data["type"].as_str().expect("a type");
    format!("event: {name}\ndata: {data}\n\n")
}

fn start(index: u32, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: u32, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: u32) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

/// A message that says so much, and is cut.
fn cut_behind(events: &[String]) -> Script {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let begin = event(&json!({"type": "message_start", "message": {"id": "x", "usage": usage}}));
    let raw = Raw::new().stream_head().chunk(begin);
    Script::raw(raw.chunk(events.concat()).fin())
}

/// The brief beginning of an answer of which more than text was shown.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_message_has_shown_beside_text_is_refused_by_its_gate() {
    let text = json!({"type": "text", "text": ""});
    let said = |index| {
        let words = json!({"type": "text_delta", "text": "Salt comes from rivers"});
        [start(index, &text), delta(index, &words)].concat()
    };
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thought = json!({"type": "thinking_delta", "thinking": "Hm."});
    let hidden = json!({"type": "redacted_thinking", "data": "x"});
    let tool = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
    let search = json!({"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "t", "content": []});
    let cited = json!({"type": "citations_delta", "citation": {"type": "page_location"}});
    for (gates, events) in [
        (
            &["reasoning"][..],
            vec![start(0, &thinking), delta(0, &thought)],
        ),
        (
            &["request_shape", "reasoning"],
            vec![start(0, &thinking), delta(0, &thought), stop(0), said(1)],
        ),
        (
            &["request_shape", "reasoning"],
            vec![start(0, &hidden), stop(0), said(1)],
        ),
        (&["tool_call", "seam"], vec![start(0, &tool)]),
        (
            &["request_shape", "tool_call"],
            vec![said(0), stop(0), start(1, &tool)],
        ),
        (
            &["request_shape", "tool_call"],
            vec![
                start(0, &search),
                stop(0),
                start(1, &found),
                stop(1),
                said(2),
            ],
        ),
        (&["request_shape"], vec![said(0), delta(0, &cited)]),
        (&["request_shape"], vec![said(0), stop(0), said(1)]),
        (&["failure_class"], vec![said(0), stop(0)]),
    ] {
        let twins = TwinsSetup::new(says(Engine::Anthropic)).start().await;
        twins.next([cut_behind(&events)]);
        let client = &twins.replica.client;
        let body = super::message::request(&json!({})).to_string();
        let response = client.send("POST", MESSAGES, &body).await;
        let id = response.id();
        let (shown, _) = response.all().await;
        let shown = String::from_utf8(shown).expect("UTF-8");
        assert!(shown.contains("migration_refused"), "{gates:?}: {shown}");
        let control = client.with("x-streamweld-events", "control");
        let (control, _) = control.events(&id).await.all().await;
        let warnings = streamweld_tests::blocks(&control).into_iter();
        let warnings =
            warnings.filter(|block| block.event.as_deref() == Some("streamweld.warning"));
        let told: Vec<String> = warnings
            .map(|block| {
                let data = block.data.expect("data");
                let warning: Value = serde_json::from_str(&data).expect("JSON");
                warning["gate"].as_str().expect("a gate").to_owned()
            })
            .collect();
        assert!(
            gates
                .iter()
                .all(|gate| told.iter().any(|told| told == gate)),
            "{gates:?}: {told:?}"
        );
        let allowed = [gates, &["seam"]].concat();
        assert!(
            told.iter().all(|told| allowed.contains(&told.as_str())),
            "{gates:?}: {told:?}"
        );
        assert_eq!((twins.attempts().len(), counts(&twins).len()), (1, 0));
    }
}

/// Each message has a limit, and its stream does not count; so whoever would go on has to.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_refuses_where_nobody_can_count_what_was_shown() {
    let at = "/v1/messages/count_tokens";
    for (answer, why) in [
        (Script::error(404), "does not say how many they are"),
        (
            Script::answer(200, "many"),
            "does not say how many they are",
        ),
        // It may be asked again, and is, for as long as a cut waits.
        (Script::error(503), "could not be asked how many they are"),
        (
            Script::answer(200, json!({"input_tokens": 7})),
            "counts the prompt otherwise",
        ),
    ] {
        let twins = cut_once(Engine::Anthropic, |setup| {
            setup.config(|config| config.migration.wait = Duration::from_millis(200))
        })
        .await;
        twins.mocks[0].set_script_at(at, answer);
        let saw = Told::of(&twins, &json!({}))
            .await
            .assert_refused(&["tokens"]);
        assert!(saw[0].contains(why), "{}", saw[0]);
        assert_eq!(twins.attempts().len(), 1);
    }
    // Where the first one did not say how many tokens its prompt has, there is nothing to compare with.
    let twins = TwinsSetup::new(says(Engine::Anthropic)).start().await;
    let text = json!({"type": "text", "text": ""});
    let words = json!({"type": "text_delta", "text": "Salt comes from rivers"});
    let body = [start(0, &text), delta(0, &words)].concat();
    twins.next([Script::raw(Raw::new().stream_head().chunk(body).fin())]);
    let saw = Told::of(&twins, &json!({}))
        .await
        .assert_refused(&["tokens"]);
    assert!(
        saw[0].contains("how many tokens its prompt has"),
        "{}",
        saw[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_on_by_prefill_and_only_where_that_is_allowed() {
    let twins = cut_once(Engine::Anthropic, |setup| setup.policy(Policy::Exact)).await;
    let saw = Told::of(&twins, &json!({})).await.assert_refused(&["seam"]);
    assert!(saw[0].contains("prefill is not allowed"), "{}", saw[0]);
    // A turn that is over to these.
    for engine in [Engine::Vllm, Engine::Sglang] {
        let twins = cut_once(engine, |setup| setup).await;
        let saw = Told::of(&twins, &json!({})).await.assert_refused(&["seam"]);
        assert!(
            saw[0].ends_with("cannot be told to go on with an answer"),
            "{}",
            saw[0]
        );
    }
}
