//! Stop (protocol.md 6.7, 7.4, 12): the only way to end a generation from outside, once, with one terminal.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Outcome, Script};
use streamweld_tests::{
    Block, CHAT, Client, End, Harness, Response, Setup, blocks, ends, state, wait_end, wait_seq,
};
use tokio::task::{JoinSet, yield_now};

async fn stop(client: &Client, id: &str) -> Response {
    client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await
}

/// A generation that stands after `events` events, and what its reader was given so far.
async fn stand(harness: &Harness, dialect: Dialect, events: usize) -> (Response, Vec<u8>) {
    let mut response = harness.client.send("POST", dialect.path(), CHAT).await;
    assert_eq!(response.status, 200);
    let body = response.body.blocks(events).await;
    (response, body)
}

#[track_caller]
fn data(block: &Block) -> Value {
    serde_json::from_str(block.data.as_deref().expect("data")).expect("JSON")
}

/// Stops a generation in the middle, and checks everything but the form, which it gives.
async fn check_stop(
    script: Script,
    dialect: Dialect,
    events: usize,
    text: &str,
) -> (Vec<Block>, Value) {
    let harness = Harness::start(script.gate_after(events, "gate")).await;
    let (mut first, body) = stand(&harness, dialect, events).await;
    let id = first.id();
    let second = harness.client.events(&id).await;
    let stopped = stop(&harness.client, &id).await;
    assert_eq!(stopped.status, 200);
    assert_eq!(stopped.header("content-type"), Some("application/json"));

    // The answer comes once it is over: for the backend within a second, and in the state at once.
    let recorder = harness
        .mock
        .recorder()
        .with_deadline(Duration::from_secs(1));
    let ending = recorder
        .wait_closed(0)
        .await
        .expect("closed within a second");
    assert!(
        matches!(ending.outcome, Outcome::ClientClosed | Outcome::ClientReset),
        "{ending:?}"
    );
    let after = state(&harness.client, &id).await;
    assert_eq!(after["status"], "stopped");
    let seq = events as u64 + 2;

    let answer = stopped.json().await;
    assert_eq!(answer["object"], "streamweld.stop");
    assert_eq!(answer["stream_id"], id);
    assert_eq!(answer["status"], "stopped");
    assert_eq!(answer["text"], text);
    assert_eq!(answer["usage"], after["usage"]);
    assert_eq!(
        answer["terminal"],
        json!({"kind":"stopped","code":null,"seq":seq,"time":after["ended_at"],"message":null})
    );
    assert_eq!(answer.as_object().expect("an object").len(), 6);

    // Those who read see the form with the terminal's id on its last block, then a clean end.
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    let form = blocks(&rest);
    for (index, block) in form.iter().enumerate() {
        let id = (index + 1 == form.len()).then(|| format!("{id}:{seq}"));
        assert_eq!(block.id, id);
    }
    let whole = [body, rest.clone()].concat();
    assert_eq!(second.all().await, (whole.clone(), End::Proper));
    assert_eq!(
        harness.client.events(&id).await.all().await,
        (whole, End::Proper)
    );
    let behind = harness
        .client
        .with("last-event-id", &format!("{id}:{}", seq - 1));
    for late in [
        behind.events(&id).await,
        behind.send("POST", dialect.path(), CHAT).await,
    ] {
        if form.is_empty() {
            assert_eq!(late.status, 204);
        } else {
            assert_eq!(late.all().await, (rest.clone(), End::Proper));
        }
    }

    // Repeated, it is the same answer, whatever its body says.
    for body in ["", "{}", "not JSON", r#"{"reason":"x"}"#] {
        let again = harness
            .client
            .send("POST", &format!("/v1/streams/{id}/stop"), body)
            .await;
        assert_eq!(again.status, 200);
        assert_eq!(again.json().await, answer);
    }
    assert_eq!(harness.mock.recorder().count(), 1);
    (form, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_chat_looks_finished_to_its_readers() {
    // The role, then two words for each of two choices.
    let script = Script::text("Good morning to you")
        .choices(2)
        .id("chatcmpl-7");
    let (form, answer) = check_stop(script, Dialect::OpenAiChat, 6, "Good morning").await;
    let [one, two, sentinel] = &form[..] else {
        panic!("{form:?}")
    };
    for (index, block) in [one, two].into_iter().enumerate() {
        let chunk = data(block);
        assert_eq!(chunk["id"], "chatcmpl-7");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["created"], 1_700_000_000);
        assert_eq!(chunk["model"], "m");
        assert_eq!(chunk["choices"].as_array().expect("a list").len(), 1);
        assert_eq!(chunk["choices"][0]["index"], index);
        assert_eq!(chunk["choices"][0]["finish_reason"], "stop");
        assert_eq!(chunk["choices"][0]["delta"], json!({}));
    }
    assert_eq!(sentinel.data.as_deref(), Some("[DONE]"));
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens":null,"completion_tokens":4,"total_tokens":null,"estimated":true})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_completion_looks_finished_to_its_readers() {
    let script = Script::text("Good morning to you").id("cmpl-7");
    let (form, answer) = check_stop(script, Dialect::OpenAiCompletions, 2, "Good morning").await;
    let [chunk, sentinel] = &form[..] else {
        panic!("{form:?}")
    };
    let chunk = data(chunk);
    assert_eq!(chunk["id"], "cmpl-7");
    assert_eq!(chunk["object"], "text_completion");
    assert_eq!(chunk["choices"][0]["text"], "");
    assert_eq!(chunk["choices"][0]["finish_reason"], "stop");
    assert_eq!(sentinel.data.as_deref(), Some("[DONE]"));
    assert_eq!(answer["usage"]["completion_tokens"], 2);
    assert_eq!(answer["usage"]["estimated"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_message_looks_finished_to_its_readers() {
    let script = Script::text("Good morning to you");
    let before = Dialect::AnthropicMessages.events_before_text(&script);
    let (form, answer) = check_stop(
        script,
        Dialect::AnthropicMessages,
        before + 2,
        "Good morning",
    )
    .await;
    let names: Vec<_> = form
        .iter()
        .filter_map(|block| block.event.as_deref())
        .collect();
    assert_eq!(
        names,
        ["content_block_stop", "message_delta", "message_stop"]
    );
    assert_eq!(data(&form[0])["index"], 0);
    assert_eq!(data(&form[1])["delta"]["stop_reason"], "end_turn");
    assert_eq!(
        data(&form[1])["usage"]["output_tokens"],
        answer["usage"]["completion_tokens"]
    );
    assert_eq!(data(&form[2])["type"], "message_stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_generic_stream_just_ends() {
    let script = Script::text("Good morning to you");
    let (form, answer) = check_stop(script, Dialect::Generic, 2, "").await;
    assert!(form.is_empty());
    assert_eq!(answer["usage"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_before_the_first_event_is_a_finished_empty_answer() {
    let (form, answer) = check_stop(Script::tokens(5), Dialect::OpenAiChat, 0, "").await;
    assert_eq!(form.len(), 2);
    assert_eq!(data(&form[0])["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["completion_tokens"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_behind_the_finish_adds_what_is_missing_only() {
    // The role, two words, the finish; the sentinel is held.
    let (form, _) = check_stop(
        Script::text("Good morning"),
        Dialect::OpenAiChat,
        4,
        "Good morning",
    )
    .await;
    assert_eq!(form.len(), 1);
    assert_eq!(form[0].data.as_deref(), Some("[DONE]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn control_readers_are_told_who_stopped_it() {
    for (admin, by) in [(false, "client"), (true, "admin")] {
        let harness = Harness::start(Script::tokens(8).gate_after(4, "gate")).await;
        let (first, _) = stand(&harness, Dialect::OpenAiChat, 4).await;
        let id = first.id();
        if admin {
            let target = format!("/admin/streams/{id}/stop");
            assert_eq!(harness.admin.send("POST", &target, "").await.status, 200);
        } else {
            assert_eq!(stop(&harness.client, &id).await.status, 200);
        }
        let control = harness.client.with("x-streamweld-events", "control");
        let (bytes, end) = control.events(&id).await.all().await;
        assert_eq!(end, End::Proper);
        let shown = blocks(&bytes);
        let [.., done, terminal] = &shown[..] else {
            panic!("{shown:?}")
        };
        assert_eq!((done.data.as_deref(), &done.id), (Some("[DONE]"), &None));
        assert_eq!(terminal.event.as_deref(), Some("streamweld.stopped"));
        assert_eq!(terminal.seq(), 6);
        let payload = data(terminal);
        assert_eq!(payload["by"], by);
        assert_eq!(payload["stream_id"], id);
        assert_eq!(payload["seq"], 6);
        assert_eq!(payload["attempts"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_stops_it_and_never_sees_the_output() {
    let harness = Harness::start(Script::text("Good morning to you").gate_after(3, "gate")).await;
    let user = harness.client.with("authorization", "Bearer user");
    let mut first = user.chat().await;
    let id = first.id();
    first.body.blocks(3).await;
    let target = format!("/admin/streams/{id}/stop");
    let stopped = harness.admin.send("POST", &target, "").await;
    assert_eq!(stopped.status, 200);
    let by_admin = stopped.json().await;
    assert_eq!(by_admin.get("text"), None);
    assert!(!by_admin.to_string().contains("Good"));
    assert_eq!(by_admin["status"], "stopped");
    assert_eq!(by_admin["usage"]["completion_tokens"], 2);
    assert_eq!(
        harness.admin.send("POST", &target, "").await.json().await,
        by_admin
    );
    // To the user it is the answer that a stop of theirs would have had.
    let mut by_user = stop(&user, &id).await.json().await;
    assert_eq!(by_user["text"], "Good morning");
    by_user.as_object_mut().expect("an object").remove("text");
    assert_eq!(by_user, by_admin);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_after_the_end_is_too_late() {
    for (script, status) in [
        (Script::tokens(3), "done"),
        (Script::tokens(3).fin_after(2), "error"),
    ] {
        let harness = Harness::start(script).await;
        let response = harness.client.chat().await;
        let id = response.id();
        response.all().await;
        wait_end(&harness.client, &id).await;
        for _ in 0..2 {
            let late = stop(&harness.client, &id).await;
            assert_eq!(
                late.error_code().await,
                (409, "already_terminal".to_owned())
            );
            let target = format!("/admin/streams/{id}/stop");
            let late = harness.admin.send("POST", &target, "").await;
            assert_eq!(
                late.error_code().await,
                (409, "already_terminal".to_owned())
            );
        }
        assert_eq!(
            state(&harness.client, &id).await["status"],
            status,
            "it stays as it ended"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_without_readers_can_be_stopped() {
    let harness = Harness::start(Script::tokens(8).gate_after(4, "gate")).await;
    let (first, _) = stand(&harness, Dialect::OpenAiChat, 4).await;
    let id = first.id();
    drop(first);
    let stopped = stop(&harness.client, &id).await.json().await;
    assert_eq!(stopped["status"], "stopped");
    assert_eq!(stopped["terminal"]["seq"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_stops_at_once_are_one() {
    let harness = Harness::start(Script::tokens(8).gate_after(4, "gate")).await;
    let (first, _) = stand(&harness, Dialect::OpenAiChat, 4).await;
    let id = first.id();
    let mut stops = JoinSet::new();
    for _ in 0..20 {
        let (client, id) = (harness.client.clone(), id.clone());
        stops.spawn(async move { stop(&client, &id).await.json().await });
    }
    let mut answers = Vec::new();
    while let Some(answer) = stops.join_next().await {
        answers.push(answer.expect("is answered"));
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:#?}"
    );
}

/// The backend is let go on to its end in the moment in which the stop comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_and_an_end_that_race_give_one_terminal() {
    const ROUNDS: usize = 200;
    let script = Script::tokens(3).id("fixed").gate_after(5, "end");
    let harness = Harness::start(script).await;
    let control = harness.client.with("x-streamweld-events", "control");
    let mut stops = 0;
    for round in 0..ROUNDS {
        // A step that the last round's mock did not live to take.
        harness.mock.gates().close("end");
        let (mut first, mut body) = stand(&harness, Dialect::OpenAiChat, 5).await;
        let id = first.id();
        let gates = harness.mock.gates();
        gates
            .wait_arrived("end", round + 1)
            .await
            .expect("the mock stands there");
        // A little sooner, a little later.
        let finish = async {
            for _ in 0..round % 20 {
                yield_now().await;
            }
            gates.step("end");
        };
        let (stopped, ()) = tokio::join!(stop(&harness.client, &id), finish);
        let (rest, end) = first.body.rest().await;
        assert_eq!(end, End::Proper, "round {round}");
        body.extend_from_slice(&rest);

        let ended = state(&harness.client, &id).await;
        let kind = ended["status"].as_str().expect("a status").to_owned();
        assert_eq!(ended["terminal"]["seq"], ended["last_seq"], "round {round}");
        let answer = match stopped.status {
            200 => Some(stopped.json().await),
            _ => {
                let refused = stopped.error_code().await;
                assert_eq!(refused, (409, "already_terminal".to_owned()));
                None
            }
        };
        assert_eq!(
            kind,
            if answer.is_some() { "stopped" } else { "done" },
            "round {round}"
        );
        stops += usize::from(answer.is_some());
        // Whatever it was, it stays, for everybody.
        let again = stop(&harness.client, &id).await;
        match &answer {
            Some(answer) => assert_eq!(again.json().await, *answer),
            None => assert_eq!(again.status, 409),
        }
        let (replay, end) = harness.client.events(&id).await.all().await;
        assert_eq!((&replay, end), (&body, End::Proper));
        let sentinel = blocks(&body).pop().expect("not empty");
        assert_eq!(sentinel.data.as_deref(), Some("[DONE]"));
        let (bytes, end) = control.events(&id).await.all().await;
        assert_eq!(end, End::Proper);
        let terminals: Vec<_> = blocks(&bytes)
            .into_iter()
            .filter_map(|block| block.event)
            .filter(|name| name != "streamweld.open")
            .collect();
        assert_eq!(terminals, [format!("streamweld.{kind}")], "round {round}");
    }
    assert!(stops > 0, "some stop came in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_a_reader_is_being_given_events_cuts_between_blocks() {
    let script = Script::tokens(50_000).gate_after(50_000, "end");
    // The time of an answer is not what this is about.
    let harness = Setup::new(script)
        .config(|config| config.edge.hold = Duration::from_secs(60))
        .start()
        .await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    wait_seq(&harness.client, &id, 100).await;
    let (reading, stopped) = tokio::join!(first.body.rest(), stop(&harness.client, &id));
    assert_eq!(stopped.status, 200);
    let answer = stopped.json().await;
    let (body, end) = reading;
    assert_eq!(end, End::Proper);
    let seq = answer["terminal"]["seq"].as_u64().expect("a number");
    // Every event up to the terminal, and the form of two blocks in its place.
    assert_eq!(ends(&body).len() as u64, seq - 2 + 2);
    let last = blocks(&body).pop().expect("not empty");
    assert_eq!(last.id, Some(format!("{id}:{seq}")));
    assert_eq!(
        answer["text"],
        streamweld_tests::texts(&body),
        "what readers have seen"
    );
}
