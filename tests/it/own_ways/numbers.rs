//! The numbers that the events of a response have.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_number_of_a_response_gives_the_rest() {
    let harness = Harness::start(script()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script(), RESPONSES)));
    let ends = ends(&all);
    for (number, end) in ends.iter().enumerate() {
        let rest = retrieve(&harness.client, number).await;
        assert_eq!(rest.status, 200, "behind {number}");
        assert_eq!(rest.id(), id);
        assert_eq!(rest.header("content-type"), Some("text/event-stream"));
        assert_eq!(rest.all().await, (all[*end..].to_vec(), End::Proper));
    }
    let start = format!("/v1/responses/{NAME}?stream=true");
    assert_eq!(
        harness.client.get(&start).await.all().await,
        (all, End::Proper)
    );
    let beyond = retrieve(&harness.client, ends.len()).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_response_is_joined_behind_every_number() {
    let script = script().gate_after(6, "go");
    let harness = Harness::start(script.clone()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let mut joined = Vec::new();
    for number in 0..6 {
        joined.push(retrieve(&harness.client, number).await);
    }
    harness.mock.gates().release("go");
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script, RESPONSES)));
    for (rest, end) in joined.into_iter().zip(ends(&all)) {
        assert_eq!(rest.all().await, (all[end..].to_vec(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_ahead_is_waited_for() {
    let script = script().gate_after(6, "go");
    let harness = Harness::start(script.clone()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let mut ahead = Box::pin(retrieve(&harness.client, 7));
    let early = timeout(Duration::from_millis(100), &mut ahead).await;
    assert!(early.is_err(), "there is nothing to answer yet");
    harness.mock.gates().release("go");
    let (all, _) = first.all().await;
    let rest = ahead.await.all().await;
    assert_eq!(rest, (all[ends(&all)[7]..].to_vec(), End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_does_not_come_is_ahead() {
    let harness = short_hold(Setup::new(script().stall_after(6)))
        .start()
        .await;
    let first = respond(&harness.client).await;
    wait_seq(&harness.client, &first.id(), 7).await;
    let ahead = retrieve(&harness.client, 6).await;
    assert_eq!(ahead.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_number_is_refused() {
    let harness = Harness::start(script()).await;
    respond(&harness.client).await.all().await;
    for bad in ["", "-1", "x", "1.0", "99999999999999999999"] {
        let refused = retrieve(&harness.client, bad).await;
        let expected = (400, "invalid_parameter".to_owned());
        assert_eq!(refused.error_code().await, expected, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keepalives_count_and_what_has_no_number_is_shown_again() {
    let script = script()
        .block_after(5, "event: x\ndata: {\"type\":\"x\"}\n\n")
        .block_after(
            8,
            "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":8}\n\n",
        )
        .fin_after(8);
    let harness = Harness::start(script).await;
    let (all, _) = respond(&harness.client).await.all().await;
    let ends = ends(&all);
    // 0 to 4, the one without, 5 to 7, the keepalive and the form.
    assert_eq!(ends.len(), 11);
    for (number, block) in [(4, 4), (5, 6), (7, 8), (8, 9)] {
        let (rest, _) = retrieve(&harness.client, number).await.all().await;
        assert_eq!(rest, all[ends[block]..], "behind {number}");
    }
    let form = blocks(&all).pop().expect("the form");
    assert_eq!(number(form.data), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_do_not_count_on_have_no_places() {
    for again in ["", ",\"sequence_number\":0"] {
        let created = format!(
            "event: response.created\ndata: {{\"type\":\"response.created\"{again},\"response\":{{\"id\":\"{NAME}\"}}}}\n\n"
        );
        let delta = format!("event: x\ndata: {{\"type\":\"x\"{again}}}\n\n");
        let done = format!(
            "event: response.completed\ndata: {{\"type\":\"response.completed\"{again},\"response\":{{\"status\":\"completed\"}}}}\n\n"
        );
        let raw = streamweld_mock::Raw::new().stream_head();
        let raw = [created, delta, done]
            .into_iter()
            .fold(raw, |raw, event| raw.chunk(event));
        let harness = Harness::start(Script::raw(raw.last_chunk())).await;
        let all = respond(&harness.client).await.all().await;
        assert_eq!(blocks(&all.0).len(), 3);
        let refused = retrieve(&harness.client, 1).await;
        let expected = (400, "invalid_parameter".to_owned());
        assert_eq!(refused.error_code().await, expected, "{again:?}");
        let start = format!("/v1/responses/{NAME}?stream=true");
        assert_eq!(harness.client.get(&start).await.all().await, all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_have_left_the_ring_are_told() {
    let script = Script::tokens(400).id(NAME);
    let script = script.gate_after(1, "named").gate_after(300, "go");
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 16 << 10)
        .start()
        .await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 2).await;
    assert_eq!(retrieve(&harness.client, 0).await.status, 200);
    harness.mock.gates().release("named");
    wait_seq(&harness.client, &id, 301).await;
    let earliest = state(&harness.client, &id).await["earliest_seq"].clone();
    let earliest = earliest.as_u64().expect("a number");
    assert!(earliest > 10, "the ring has turned");
    // Entry 2 has number 0.
    let kept = earliest - 2;
    for number in [0, kept - 2] {
        let gone = retrieve(&harness.client, number).await;
        assert_eq!(gone.error_code().await, (410, "cursor_expired".to_owned()));
    }
    for number in [kept - 1, kept, 297] {
        let mut rest = retrieve(&harness.client, number).await;
        assert_eq!(rest.status, 200, "behind {number}");
        let next = blocks(&rest.body.blocks(1).await).remove(0);
        assert_eq!(self::number(next.data), number + 1);
    }
    // What cannot be counted from its beginning cannot be counted.
    let counted = format!("/v1/streams/{id}/events?after_events=280");
    let gone = harness.client.get(&counted).await;
    assert_eq!(gone.error_code().await, (410, "cursor_expired".to_owned()));
    harness.mock.gates().release("go");
}
