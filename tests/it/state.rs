//! The state of a generation (protocol.md 6.6): every member, while it runs and after each end; and what is never in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Script};
use streamweld_tests::{End, Harness, state, wait_end, wait_seq, wait_state};

const PROMPT: &str = "the secret prompt";
const OUTPUT: &str = "the secret output";
const KEY: &str = "Bearer the-secret-key";

const MEMBERS: [&str; 19] = [
    "attempts",
    "backends",
    "created_at",
    "dialect",
    "durability",
    "earliest_seq",
    "ended_at",
    "last_event_at",
    "last_seq",
    "level",
    "migrations",
    "model",
    "object",
    "owner_alive",
    "readers",
    "status",
    "stream_id",
    "terminal",
    "usage",
];

/// A streaming request that names a model and a prompt.
fn question(more: &str) -> String {
    format!(
        r#"{{"model":"a model","stream":true,"prompt":"{PROMPT}","messages":[{{"role":"user","content":"{PROMPT}"}}]{more}}}"#
    )
}

#[track_caller]
fn check_members(state: &Value) {
    let mut members: Vec<_> = state
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(members, MEMBERS);
    let text = state.to_string();
    for secret in ["secret", PROMPT, OUTPUT, KEY, "127.0.0.1"] {
        assert!(!text.contains(secret), "{secret:?} in {text}");
    }
}

/// A time as it is written: UTC, milliseconds, `Z`. It sorts as text.
#[track_caller]
fn time(value: &Value) -> &str {
    let text = value.as_str().expect("a time");
    let shape: String = text
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_generation_shows_where_it_stands() {
    let script = Script::text(OUTPUT).step_gate("step");
    let harness = Harness::start(script).await;
    let client = harness.client.with("authorization", KEY);
    let first = client
        .send("POST", "/v1/chat/completions", &question(""))
        .await;
    let id = first.id();

    let begun = state(&client, &id).await;
    check_members(&begun);
    assert_eq!(begun["object"], "streamweld.stream");
    assert_eq!(begun["stream_id"], id);
    assert_eq!(begun["status"], "streaming");
    assert_eq!(begun["dialect"], "openai_chat");
    assert_eq!(begun["model"], "a model");
    assert_eq!(begun["backends"], json!(["llm"]));
    assert_eq!(begun["owner_alive"], true);
    assert_eq!(begun["earliest_seq"], 1);
    assert_eq!(begun["last_seq"], 1, "`open` alone");
    assert_eq!(begun["durability"], "durable");
    assert_eq!(begun["readers"], 1);
    assert_eq!(begun["attempts"], 1);
    assert_eq!(begun["migrations"], 0);
    assert_eq!(begun["terminal"], Value::Null);
    assert_eq!(begun["ended_at"], Value::Null);
    let created = time(&begun["created_at"]).to_owned();
    assert_eq!(begun["last_event_at"], created, "the time of `open`");

    let mut last = created.clone();
    for seq in 2..=4 {
        // So that times of two events differ.
        let now = SystemTime::now();
        while millis(SystemTime::now()) <= millis(now) + 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        harness.mock.gates().step("step");
        let moved = wait_seq(&client, &id, seq).await;
        check_members(&moved);
        assert_eq!(moved["last_seq"], seq);
        assert_eq!(moved["created_at"], created);
        let at = time(&moved["last_event_at"]).to_owned();
        assert!(at > last, "{at} after {last}");
        last = at;
    }

    // Two texts behind the role.
    let counted = state(&client, &id).await;
    assert_eq!(
        counted["usage"],
        json!({"prompt_tokens": null, "completion_tokens": 2, "total_tokens": null, "estimated": true})
    );

    let second = client.events(&id).await;
    wait_state(&client, &id, |state| state["readers"] == 2).await;
    drop(second);
    wait_state(&client, &id, |state| state["readers"] == 1).await;
    drop(first);
    let orphaned = wait_state(&client, &id, |state| state["readers"] == 0).await;
    assert_eq!(
        orphaned["status"], "streaming",
        "a reader that leaves is no stop"
    );
    assert_eq!(orphaned["owner_alive"], true);
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_millis()
}

/// Makes a generation that ends by itself, and gives its state.
async fn ended(script: Script, dialect: Dialect, more: &str) -> Value {
    let harness = Harness::start(script).await;
    let client = harness.client.with("authorization", KEY);
    let response = client.send("POST", dialect.path(), &question(more)).await;
    let id = response.id();
    response.all().await;
    let state = wait_end(&client, &id).await;
    check_members(&state);
    assert_eq!(state["dialect"], dialect.as_str());
    assert_eq!(state["owner_alive"], false);
    assert_eq!(state["readers"], 0);
    assert_eq!(state["terminal"]["seq"], state["last_seq"]);
    assert_eq!(state["terminal"]["kind"], state["status"]);
    assert_eq!(state["terminal"]["time"], state["ended_at"]);
    assert_eq!(
        state["last_event_at"], state["ended_at"],
        "the terminal is the last entry"
    );
    assert!(time(&state["created_at"]) <= time(&state["ended_at"]));
    state
}

#[track_caller]
fn check_terminal(state: &Value, members: &[&str]) {
    let mut found: Vec<_> = state["terminal"]
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    found.sort_unstable();
    assert_eq!(found, members);
}

const DONE: [&str; 7] = ["code", "end", "kind", "message", "reasons", "seq", "time"];
const OTHER: [&str; 5] = ["code", "kind", "message", "seq", "time"];

#[tokio::test(flavor = "multi_thread")]
async fn after_done_its_end_reasons_and_usage_show() {
    let usage = r#","stream_options":{"include_usage":true}"#;
    let state = ended(Script::text(OUTPUT), Dialect::OpenAiChat, usage).await;
    assert_eq!(state["status"], "done");
    check_terminal(&state, &DONE);
    assert_eq!(state["terminal"]["end"], "sentinel");
    assert_eq!(state["terminal"]["reasons"], json!(["stop"]));
    assert_eq!(state["terminal"]["code"], Value::Null);
    assert_eq!(state["terminal"]["message"], Value::Null);
    assert_eq!(
        state["usage"],
        json!({"prompt_tokens": 6, "completion_tokens": 3, "total_tokens": 9, "estimated": false})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_done_in_each_dialect() {
    for dialect in Dialect::ALL {
        let state = ended(Script::text(OUTPUT), dialect, "").await;
        assert_eq!(state["status"], "done");
        check_terminal(&state, &DONE);
        let (end, reasons) = match dialect {
            Dialect::Generic => ("unknown", json!([])),
            Dialect::OpenAiResponses => ("sentinel", json!(["completed"])),
            Dialect::AnthropicMessages => ("sentinel", json!(["end_turn"])),
            Dialect::Gemini => ("eof", json!(["STOP"])),
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => ("sentinel", json!(["stop"])),
        };
        assert_eq!(state["terminal"]["end"], end);
        assert_eq!(state["terminal"]["reasons"], reasons);
        assert_eq!(state["usage"].is_null(), dialect == Dialect::Generic);
        // Gemini's path names it.
        let model = match dialect {
            Dialect::Gemini => "mock",
            _ => "a model",
        };
        assert_eq!(state["model"], model);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_its_code_and_message_show() {
    for dialect in Dialect::ALL {
        let state = ended(Script::text(OUTPUT).fin_after(2), dialect, "").await;
        assert_eq!(state["status"], "error");
        check_terminal(&state, &OTHER);
        assert_eq!(state["terminal"]["code"], "truncated");
        assert!(
            !state["terminal"]["message"]
                .as_str()
                .expect("a message")
                .is_empty()
        );
        assert_eq!(state["terminal"]["seq"], 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_its_status_is_stopped() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(Script::text(OUTPUT).gate_after(2, "gate")).await;
        let client = harness.client.with("authorization", KEY);
        let response = client.send("POST", dialect.path(), &question("")).await;
        let id = response.id();
        wait_seq(&client, &id, 3).await;
        let stopped = client
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await;
        assert_eq!(stopped.status, 200);
        assert_eq!(response.all().await.1, End::Proper);
        let state = state(&client, &id).await;
        check_members(&state);
        check_terminal(&state, &OTHER);
        assert_eq!(state["status"], "stopped");
        assert_eq!(state["terminal"]["kind"], "stopped");
        assert_eq!(state["terminal"]["code"], Value::Null);
        assert_eq!(state["terminal"]["message"], Value::Null);
        assert_eq!(state["terminal"]["seq"], 4);
        assert_eq!(state["terminal"]["time"], state["ended_at"]);
        assert_eq!(state["owner_alive"], false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_request_did_not_say_is_null() {
    let harness = Harness::start(Script::tokens(2)).await;
    let response = harness
        .client
        .send("POST", "/generic", "no JSON at all")
        .await;
    let id = response.id();
    response.all().await;
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["model"], Value::Null);
    assert_eq!(state["usage"], Value::Null);
    assert_eq!(state["dialect"], "generic");
}
