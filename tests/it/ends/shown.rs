//! Stops, and readers that are there when it ends.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Raw, RawStep, Script};
use streamweld_tests::{End, Harness, ask, blocks, patience, without_ids};

use super::{delta, plain, shown};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_cleanly_for_every_reader_in_the_form_of_its_dialect() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(Script::tokens(8).stall_after(4)).await;
        let mut response = ask(&harness.client, dialect).await;
        let id = response.id();
        let mut body = response.body.blocks(4).await;
        let stop = format!("/v1/streams/{id}/stop");
        let stopped = harness.client.send("POST", &stop, "").await.json().await;
        assert_eq!(stopped["status"], "stopped");
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        assert_eq!(end, End::Proper);
        let replay = harness.client.events(&id).await.all().await;
        assert_eq!(replay.1, End::Proper);
        let plain = dialect == Dialect::Gemini;
        if plain {
            assert_eq!(blocks(&body), without_ids(&blocks(&replay.0)));
        } else {
            assert_eq!(replay.0, body);
        }
        let form = blocks(&replay.0).split_off(4);
        let datas: Vec<Value> = form
            .iter()
            .map(|block| block.data.as_deref().unwrap_or_default())
            .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
            .collect();
        match dialect {
            Dialect::Generic => assert!(form.is_empty()),
            Dialect::AnthropicMessages => {
                let names: Vec<_> = form.iter().map(|block| block.event.as_deref()).collect();
                assert_eq!(
                    names,
                    [
                        Some("content_block_stop"),
                        Some("message_delta"),
                        Some("message_stop")
                    ]
                );
                assert_eq!(datas[1]["delta"]["stop_reason"], "end_turn");
            }
            Dialect::OpenAiResponses => {
                assert_eq!(datas.len(), 1);
                assert_eq!(form[0].event.as_deref(), Some("response.incomplete"));
                assert_eq!(datas[0]["sequence_number"], 4);
                assert_eq!(datas[0]["response"]["created_at"], 1_700_000_000);
            }
            Dialect::Gemini => {
                assert_eq!(datas.len(), 1);
                assert_eq!(datas[0]["candidates"][0]["finishReason"], "STOP");
            }
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => {
                assert_eq!(datas.len(), 2);
                assert_eq!(datas[0]["choices"][0]["finish_reason"], "stop");
                assert_eq!(datas[0]["created"], 1_700_000_000);
                assert_eq!(datas[1], "[DONE]");
            }
        }
        // The terminal's id stands on the last block, and nowhere else.
        for (place, block) in form.iter().enumerate() {
            let last = place + 1 == form.len();
            assert_eq!(
                block.id.as_ref().map(|_| block.seq()),
                last.then(|| stopped["terminal"]["seq"].as_u64().expect("a sequence"))
            );
        }
        let closed = harness.mock.recorder().wait_closed(0);
        patience(closed).await.expect("the backend is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_comes_after_the_end_is_anybodys() {
    let stop = delta(0, "a", &json!("stop"));
    let events = [&*stop, "[DONE]"];
    let raw = Raw::new()
        .stream_head()
        .chunk(format!("data: {stop}\n\ndata: [DONE]\n\ndata: late\n\n"))
        .chunk("data: {\"error\":1}\n\n")
        .step(RawStep::Rst);
    let (shown, _) = shown(Dialect::OpenAiChat, Script::raw(raw)).await;
    shown.assert_done(&plain(&events), "sentinel", &["stop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_there_see_the_end_that_is_theirs() {
    for dialect in Dialect::ALL {
        let script = Script::tokens(8).gate_after(3, "end").fin_after(3);
        let harness = Harness::start(script).await;
        let control = harness.client.with("x-streamweld-events", "control");
        let mut maker = ask(&control, dialect).await;
        let id = maker.id();
        let mut seen = maker.body.blocks(4).await;
        let mut resumed = ask(
            &harness.client.with("last-event-id", &format!("{id}:2")),
            dialect,
        )
        .await;
        let mut followed = harness.client.events(&id).await;
        let mut tail = resumed.body.blocks(2).await;
        let mut all = followed.body.blocks(3).await;
        harness.mock.gates().release("end");

        // With control events even the client that made it has a clean end: the terminal tells.
        let (rest, end) = maker.body.rest().await;
        seen.extend_from_slice(&rest);
        assert_eq!(end, End::Proper);
        let names: Vec<_> = blocks(&seen)
            .into_iter()
            .filter_map(|block| block.event)
            .filter(|name| name.starts_with("streamweld."))
            .collect();
        assert_eq!(names, ["streamweld.open", "streamweld.error"]);

        let (rest, end) = resumed.body.rest().await;
        tail.extend_from_slice(&rest);
        let (rest, other_end) = followed.body.rest().await;
        all.extend_from_slice(&rest);
        assert_eq!(end, other_end);
        assert!(blocks(&all).ends_with(&blocks(&tail)));
        if dialect == Dialect::Generic {
            assert_eq!((blocks(&all).len(), end), (3, End::Fin));
        } else {
            assert_eq!((blocks(&all).len(), end), (4, End::Proper));
            assert_eq!(blocks(&all)[3].seq(), 5);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_a_form_without_ids_and_a_terminal_with_one_for_control_readers() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(Script::tokens(8).stall_after(4)).await;
        let control = harness.client.with("x-streamweld-events", "control");
        let mut maker = ask(&control, dialect).await;
        let id = maker.id();
        let mut seen = maker.body.blocks(5).await;
        let stop = format!("/v1/streams/{id}/stop");
        assert_eq!(harness.client.send("POST", &stop, "").await.status, 200);
        let (rest, end) = maker.body.rest().await;
        seen.extend_from_slice(&rest);
        assert_eq!(end, End::Proper);
        let mut rest = blocks(&seen).split_off(5);
        let terminal = rest.pop().expect("a terminal");
        assert_eq!(terminal.event.as_deref(), Some("streamweld.stopped"));
        assert_eq!(terminal.seq(), 6);
        let payload: Value =
            serde_json::from_str(&terminal.data.expect("data")).expect("one line of JSON");
        assert_eq!(payload["by"], "client");
        assert!(rest.iter().all(|block| block.id.is_none()));
        assert_eq!(rest.is_empty(), dialect == Dialect::Generic);
    }
}
