//! OpenAI Responses (protocol.md 7): one terminal, and numbers that go on in what is written here.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Script};
use streamweld_tests::{
    Block, CHAT, End, Harness, Shown, ask, blocks, numbered, state, without_ids,
};

const RESPONSES: Dialect = Dialect::OpenAiResponses;
/// Events before the text.
const OPENING: usize = 4;

fn script() -> Script {
    Script {
        model: Some("m".to_owned()),
        ..Script::text("Good morning to you").id("resp_7")
    }
}

async fn shown(script: &Script) -> (Shown, Vec<Block>) {
    let harness = Harness::start(script.clone()).await;
    let shown = Shown::of(&harness, RESPONSES).await;
    let events = shown.expected(&harness, script);
    (shown, events)
}

#[track_caller]
fn data(block: &Block) -> Value {
    serde_json::from_str(block.data.as_deref().expect("data")).expect("JSON")
}

/// The form that the client which made it was shown, behind so many events.
#[track_caller]
fn form(shown: &Shown, events: usize) -> Vec<Block> {
    blocks(&shown.first.0).split_off(events)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_response_is_the_backends_to_the_byte() {
    let script = script();
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", RESPONSES.path(), CHAT).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let request = harness.mock.recorder().request(0).expect("one request");
    let events = script.expected(&request.ask(RESPONSES));
    assert_eq!(body, numbered(&id, &events));
    let state = state(&harness.client, &id).await;
    assert_eq!(state["dialect"], "openai_responses");
    assert_eq!(state["terminal"]["end"], "sentinel");
    assert_eq!(state["terminal"]["reasons"], json!(["completed"]));
    assert_eq!(state["usage"]["completion_tokens"], 4);
    assert_eq!(state["usage"]["estimated"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_response_is_done_with_its_reason() {
    for reason in ["max_output_tokens", "content_filter"] {
        let (shown, events) = shown(&script().finish(reason)).await;
        shown.assert_done(&events, "sentinel", &[reason]);
        let last = events.last().expect("the terminal");
        assert_eq!(last.event.as_deref(), Some("response.incomplete"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_response_ends_in_an_error_with_the_next_number() {
    let count = script()
        .expected(&streamweld_mock::Ask::stream(RESPONSES))
        .len();
    for events in 0..count {
        for script in [script().clean_after(events), script().fin_after(events)] {
            let (shown, before) = shown(&script).await;
            shown.assert_failed(&before, "truncated");
            let form = form(&shown, events);
            assert_eq!(data(&form[0])["sequence_number"], events);
            for other in [&shown.again.0, &shown.replay.0, &shown.rest.1] {
                let last = blocks(other).pop();
                assert_eq!(without_ids(&Vec::from_iter(last)), form);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_keeps_alive_has_a_number_that_counts() {
    let keepalive = "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":6}\n\n";
    let script = script().block_after(6, keepalive).fin_after(6);
    let (shown, _) = shown(&script).await;
    let form = form(&shown, 7);
    assert_eq!(data(&form[0])["sequence_number"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_event_is_replaced_by_one_of_ours() {
    let (shown, events) = shown(&script().error_after(5)).await;
    let terminal = shown.assert_failed(&events, "upstream_error");
    assert_eq!(terminal["upstream"]["message"], "the mock engine failed");
    assert_eq!(terminal["upstream"]["code"], "server_error");
    assert_eq!(data(&form(&shown, 5)[0])["sequence_number"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_calls_itself_completed_and_is_not_is_never_shown() {
    let (shown, events) = shown(&script().abort_after(6)).await;
    let terminal = shown.assert_failed(&events, "aborted");
    assert_eq!(terminal["upstream"]["code"], "cancelled");
    let text = String::from_utf8(shown.first.0).expect("UTF-8");
    assert!(!text.contains("response.completed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_and_a_cancelled_response_are_errors() {
    for (finish, code, upstream) in [
        ("failed", "upstream_error", "server_error"),
        ("cancelled", "aborted", "cancelled"),
    ] {
        let script = script().finish(finish);
        let (shown, mut events) = shown(&script).await;
        // The mock takes its terminal for an event as good as any.
        events.pop();
        let terminal = shown.assert_failed(&events, code);
        assert_eq!(terminal["upstream"]["code"], upstream);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_response_is_incomplete_with_what_was_said() {
    for said in [0, 2] {
        let events = OPENING + said;
        let harness = Harness::start(script().stall_after(events)).await;
        let mut response = ask(&harness.client, RESPONSES).await;
        let id = response.id();
        drop(response.body.blocks(events).await);
        let stop = format!("/v1/streams/{id}/stop");
        let stopped = harness.client.send("POST", &stop, "").await.json().await;
        let text = ["", "Good morning"][said / 2];
        assert_eq!(stopped["text"], text);
        let (form, end) = response.body.rest().await;
        assert_eq!(end, End::Proper);
        let form = blocks(&form);
        assert_eq!(form.len(), 1);
        assert_eq!(form[0].event.as_deref(), Some("response.incomplete"));
        let data = data(&form[0]);
        assert_eq!(data["type"], "response.incomplete");
        assert_eq!(data["sequence_number"], events);
        let response = &data["response"];
        assert_eq!(response["id"], "resp_7");
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"], Value::Null);
        let message = &response["output"][0];
        assert_eq!(message["status"], "incomplete");
        let shown = &message["content"][0]["text"];
        assert_eq!(shown.as_str().unwrap_or_default(), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_stopped_before_it_began_has_a_beginning() {
    let harness = Harness::start(script().stall_after(0)).await;
    let mut response = ask(&harness.client, RESPONSES).await;
    let stop = format!("/v1/streams/{}/stop", response.id());
    assert_eq!(harness.client.send("POST", &stop, "").await.status, 200);
    let (form, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let form: Vec<Value> = blocks(&form).iter().map(data).collect();
    let types: Vec<&Value> = form.iter().map(|data| &data["type"]).collect();
    assert_eq!(types, ["response.created", "response.incomplete"]);
    assert_eq!(form[0]["sequence_number"], 0);
    assert_eq!(form[1]["sequence_number"], 1);
}
