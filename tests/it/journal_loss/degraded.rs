//! A journal that does not open: an answer without ids.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_log_the_answer_is_degraded_beats_and_is_whole() {
    for fault in [
        Some(Fault::Refuse(Refusal::Full)),
        Some(Fault::UnknownApplied),
        None,
    ] {
        let story = start(Script::tokens(20).gate_after(3, "go")).await;
        // Without a fault it stands still: the head waits for a quarter of a second.
        let held = match fault {
            Some(fault) => {
                story.faults.script(Op::Open, [fault]);
                None
            }
            None => Some(story.faults.hold(Op::Open)),
        };
        let mut response = story.harness.client.chat().await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
        assert_eq!(response.header("x-streamweld-stream-id"), None);
        let mut body = response.body.blocks(3).await;
        while !body.ends_with(b"\n:\n") {
            body.extend(response.body.chunk().await.expect("it beats"));
        }
        story.harness.mock.gates().release("go");
        let (rest, end) = response.body.rest().await;
        body.extend(rest);
        assert_eq!(end, End::Proper);
        assert!(has_no_ids(&blocks(&body)));
        assert_eq!(events(&body).len(), 23);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
        drop(held);
        let clean = async {
            while story.journal.usage().bytes > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        patience(clean).await;
        let usage = story.journal.usage();
        assert_eq!((usage.live, usage.finished, usage.tombstones), (0, 0, 0));
        let started =
            r#"streamweld_generations_started_total{dialect="openai_chat",durability="degraded"}"#;
        assert_eq!(metric(&story.harness, started).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_failure_ends_in_the_form_and_the_abort() {
    let story = start(Script::tokens(20).error_after(3)).await;
    story
        .faults
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let (body, end) = story.harness.client.chat().await.all().await;
    assert_eq!(end, End::Fin);
    let blocks = blocks(&body);
    assert_eq!(blocks.len(), 4);
    assert!(has_no_ids(&blocks));
    let form = blocks[3].data.as_deref().expect("data");
    assert!(form.contains("upstream_error"), "{form}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_answer_cannot_be_found() {
    let story = start(Script::tokens(20).gate_after(3, "go")).await;
    story
        .faults
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let mut response = story.harness.client.chat().await;
    response.body.blocks(3).await;
    let list = story.harness.admin.get("/admin/streams").await.json().await;
    assert_eq!(list["data"], serde_json::json!([]));
}
