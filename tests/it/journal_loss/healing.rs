//! A journal that fails in the middle of an answer, and heals or does not.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_stand_yet_is_not_shown() {
    // An answer that comes all at once is finished in one go; this one comes in two.
    let story = start_with(Script::tokens(20).gate_after(3, "go"), |heal| {
        heal.patience = Duration::from_secs(60);
    })
    .await;
    let held = story.faults.hold(Op::Append);
    let mut response = story.harness.client.chat().await;
    patience(held.reached()).await;
    story.harness.mock.gates().release("go");
    // It beats, which shows that it could write.
    let chunk = response.body.chunk().await.expect("it beats");
    assert_eq!(chunk, b":\n");
    held.release();
    let (body, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let blocks = blocks(&body);
    assert_eq!(seqs(&blocks), (2..25).collect::<Vec<_>>());
    assert!(story.faults.calls(Op::Append) <= 3, "batches gather");
}

/// One fault at every event, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_at_any_event_loses_and_doubles_nothing() {
    for fault in [
        Fault::UnknownApplied,
        Fault::UnknownLost,
        Fault::Refuse(Refusal::Unexpected {
            last: streamweld_journal::Seq::FIRST,
        }),
    ] {
        let story = start_with(Script::tokens(6).step_gate("step"), |heal| {
            heal.patience = Duration::from_secs(60);
        })
        .await;
        for at in 0..8 {
            for _ in 0..at {
                story.faults.pass(Op::Append);
            }
            story.faults.script(Op::Append, [fault]);
            let response = ask(&story.harness.client, Dialect::OpenAiChat).await;
            let id = response.id();
            for seq in 2..11 {
                story.harness.mock.gates().step("step");
                if seq < 10 {
                    wait_seq(&story.harness.client, &id, seq).await;
                }
            }
            let (body, end) = response.all().await;
            assert_eq!(end, End::Proper, "{fault:?} at {at}");
            assert_eq!(seqs(&blocks(&body)), (2..11).collect::<Vec<_>>());
            wait_end(&story.harness.client, &id).await;
            let (again, _) = story.harness.client.events(&id).await.all().await;
            assert_eq!(blocks(&again), blocks(&body), "{fault:?} at {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suffix_is_shown_without_ids_then_healed_under_contiguous_ones() {
    let story = start(
        Script::tokens(20)
            .gate_after(3, "one")
            .gate_after(8, "two")
            .gate_after(12, "three"),
    )
    .await;
    let (client, gates) = (&story.harness.client, story.harness.mock.gates());
    let mut first = client.chat().await;
    let id = first.id();
    let mut body = first.body.blocks(3).await;
    assert_eq!(state(client, &id).await["durability"], "durable");

    story.faults.set_down(true);
    gates.release("one");
    let suffix = first.body.blocks(5).await;
    assert!(has_no_ids(&blocks(&suffix)));
    let degraded = state(client, &id).await;
    assert_eq!(degraded["durability"], "degraded");
    assert_eq!(degraded["last_seq"], 4);
    body.extend(suffix);
    // Somebody who comes now sees the same: what stands with ids, then the suffix.
    let mut second = client.events(&id).await;
    let seen = blocks(&second.body.blocks(8).await);
    assert_eq!(seqs(&seen[..3]), [2, 3, 4]);
    assert!(has_no_ids(&seen[3..]));

    story.faults.set_down(false);
    wait_state(client, &id, |state| {
        state["durability"] == "durable" && state["last_seq"] == 9
    })
    .await;
    gates.release("two");
    gates.release("three");
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(seqs(&blocks(&rest)), (10..25).collect::<Vec<_>>());
    let (rest, _) = second.body.rest().await;
    assert_eq!(seqs(&blocks(&rest)), (10..25).collect::<Vec<_>>());
    body.extend(rest);

    // Whoever reconnects with the last id it was given sees the suffix again, under ids.
    let (again, _) = client
        .with("last-event-id", &format!("{id}:4"))
        .chat()
        .await
        .all()
        .await;
    assert_eq!(seqs(&blocks(&again)), (5..25).collect::<Vec<_>>());
    assert_eq!(events(&again), events(&body)[3..]);
    assert_eq!(story.harness.mock.recorder().count(), 1);
    assert_eq!(
        metric(&story.harness, "streamweld_unsequenced_suffixes_total").await,
        1
    );
    assert_eq!(
        metric(&story.harness, "streamweld_healed_suffixes_total").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_log_is_read_to_its_true_end_and_never_again() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.script(Op::Append, [Fault::Vanish]);
    story.harness.mock.gates().release("go");
    assert!(has_no_ids(&blocks(&response.body.blocks(3).await)));
    story.harness.mock.gates().release("end");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&rest).last().map(String::as_str), Some("[DONE]"));
    assert!(has_no_ids(&blocks(&rest)));
    let gone = async {
        while client.events(&id).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(gone).await;
    for response in [
        client.events(&id).await,
        client.get(&format!("/v1/streams/{id}")).await,
        client
            .with("last-event-id", &format!("{id}:2"))
            .chat()
            .await,
    ] {
        let answer = response.error_code().await;
        assert_eq!(answer, (404, "stream_not_found".to_owned()));
    }
    let lost = r#"streamweld_append_failures_total{reason="vanished"}"#;
    assert_eq!(metric(&story.harness, lost).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_healed_is_never_shown_as_whole() {
    let story = start_with(Script::tokens(20).gate_after(3, "go"), |heal| {
        heal.longest = Duration::from_millis(200);
    })
    .await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.set_down(true);
    story.harness.mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper, "who is attached sees the true end");
    assert_eq!(events(&rest).last().map(String::as_str), Some("[DONE]"));
    // Longer than the bounds: the journal comes back too late.
    let given_up = async {
        while metric(
            &story.harness,
            r#"streamweld_append_failures_total{reason="unknown"}"#,
        )
        .await
            == 0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    patience(given_up).await;
    story.faults.set_down(false);
    let state = wait_end(client, &id).await;
    assert_eq!(state["status"], "error");
    assert_eq!(state["terminal"]["code"], "journal_incomplete");
    assert_eq!(state["durability"], "durable", "nothing is unsequenced now");
    assert_eq!(state["last_seq"], 5);
    let (later, end) = client.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let blocks = blocks(&later);
    assert_eq!(seqs(&blocks), [2, 3, 4, 5]);
    let form = blocks[3].data.as_deref().expect("data");
    assert!(form.contains("journal_incomplete"), "{form}");
    let stop = client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await;
    assert_eq!(
        stop.error_code().await,
        (409, "already_terminal".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_with_another_writer_sends_its_readers_away() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story
        .faults
        .script(Op::Append, [Fault::Refuse(Refusal::Ended)]);
    story.harness.mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Fin, "never a clean end for a part");
    assert!(blocks(&rest).is_empty());
    let ending = story.harness.mock.recorder().wait_closed(0).await;
    ending.expect("the backend is let go");
    // What is left is not taken for the whole either.
    let (later, end) = client.events(&id).await.all().await;
    assert_eq!(end, End::Fin);
    assert_eq!(seqs(&blocks(&later)), [2, 3, 4]);
    assert_eq!(state(client, &id).await["owner_alive"], false);
}
