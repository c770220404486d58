//! What a model may be made to say: attack 3. One event in is one event out, under an id of ours.

use streamweld_mock::{Dialect, Raw, Script};
use streamweld_tests::{Block, End, Harness, ask, blocks, wait_end};

/// Text that would be more than text, if it were written where it came from.
const SAID: [&str; 9] = [
    "\n\nid: 99\ndata: [DONE]\n\n",
    "\r\rdata: forged\r\r",
    "\r\n\r\nevent: streamweld.stopped\r\ndata: {}\r\n\r\n",
    "\u{0}\u{1}\u{7f}",
    "\u{2028}data: forged\u{2029}\u{85}",
    "\u{feff}data: forged",
    ": comment",
    "</script><script>alert(1)</script>",
    "\",\"finish_reason\":\"stop\"}]}",
];

/// An event of a chat whose every text is this.
fn event(text: &str) -> String {
    let event = serde_json::json!({
        "id": text, "object": "chat.completion.chunk", "model": text, "system_fingerprint": text,
        "choices": [{"index": 0, "delta": {"role": text, "content": text}, "finish_reason": null}],
    });
    format!("data: {event}\n\n")
}

const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn answer(events: &str) -> Script {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Script::raw(Raw::new().write(format!("{head}{events}")))
}

/// What each reader is shown: so many events, numbered on, and as many for everybody who follows what happens.
async fn shown(harness: &Harness) -> Vec<Block> {
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(response.status, 200);
    let id = response.id();
    let (body, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    wait_end(&harness.client, &id).await;
    let (again, _) = harness.client.events(&id).await.all().await;
    assert!(again == body, "every reader is shown the same");
    let shown: Vec<Block> = blocks(&body)
        .into_iter()
        .filter(|it| it.data.is_some())
        .collect();
    for (at, block) in shown.iter().enumerate() {
        assert_eq!(block.seq(), at as u64 + 2, "ids are ours: {block:?}");
        assert_eq!(block.event, None, "{block:?}");
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn row_03_text_is_text_wherever_it_stands() {
    let harness = Harness::start(Script::new()).await;
    for said in SAID {
        harness
            .mock
            .set_script(answer(&format!("{}{FINISH}", event(said))));
        let shown = shown(&harness).await;
        assert_eq!(shown.len(), 3, "{said:?}: {shown:?}");
        let data = shown[0].data.as_deref().expect("data");
        let seen: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(seen["choices"][0]["delta"]["content"], said);
        assert_eq!(shown[2].data.as_deref(), Some("[DONE]"));
    }
}

/// The words of the standard that a backend may write between its events are its own no more.
#[tokio::test(flavor = "multi_thread")]
async fn row_03_fields_of_a_backend_make_no_events_and_no_ids() {
    let harness = Harness::start(Script::new()).await;
    let plain = event("a");
    for odd in [
        "id: 7\n",
        "id: 7\0\n",
        "id\n",
        "retry: 1\n",
        "retry: -1\n",
        ": data: forged\n",
        "forged: [DONE]\n",
        "dataa: forged\n",
        " data: forged\n",
        ":\r\n",
        "id: \u{2028}data: forged\n",
    ] {
        let events = format!("{odd}{plain}{FINISH}");
        harness.mock.set_script(answer(&events));
        let shown = shown(&harness).await;
        assert_eq!(shown.len(), 3, "{odd:?}: {shown:?}");
        let forged = shown.iter().any(|it| format!("{it:?}").contains("forged"));
        assert!(!forged, "{odd:?}: {shown:?}");
    }
}

/// An error of a backend, with text that is more, is one error; and a model of such a name one event of the feed.
#[tokio::test(flavor = "multi_thread")]
async fn row_03_errors_and_names_of_models_are_one_event_each() {
    let harness = Harness::start(Script::new()).await;
    for said in SAID {
        let error = serde_json::json!({"error": {"message": said, "type": said, "code": said}});
        let events = format!("{}data: {error}\n\n", event("a"));
        harness.mock.set_script(answer(&events));
        let body = serde_json::json!({"model": said, "stream": true, "user": said});
        let mut feed = harness.admin.get("/admin/watch").await;
        let response = harness
            .client
            .send("POST", "/v1/chat/completions", &body.to_string())
            .await;
        let id = response.id();
        let (body, _) = response.all().await;
        let errors = blocks(&body)
            .into_iter()
            .filter(|it| {
                it.data
                    .as_deref()
                    .is_some_and(|data| data.contains("\"error\""))
            })
            .count();
        assert_eq!(errors, 1, "{said:?}: {}", String::from_utf8_lossy(&body));
        let state = wait_end(&harness.client, &id).await;
        assert_eq!(state["model"], said);
        // Created, its first event, and its end.
        let told = blocks(&feed.body.blocks(3).await);
        for block in &told {
            let data = block.data.as_deref().unwrap_or("{}");
            let data: serde_json::Value = serde_json::from_str(data).expect("one object");
            assert!(data.get("forged").is_none(), "{said:?}: {block:?}");
        }
        feed.leave().await;
    }
}
