//! Readers with control events, and what an error looks like to whom.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, End, Harness, Way, blocks, ends};

use super::CHAT_PATH;

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_the_same_bytes_on_every_path() {
    let harness = Harness::start(Script::tokens(4)).await;
    let control = harness.client.with("x-streamweld-events", "control");
    let first = control.with("x-kept", "1").chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Proper);
    let shown = blocks(&body);
    let seqs: Vec<u64> = shown.iter().map(streamweld_tests::Block::seq).collect();
    assert_eq!(
        seqs,
        (1..=shown.len() as u64).collect::<Vec<_>>(),
        "every entry is shown"
    );

    let open = &shown[0];
    assert_eq!(open.event.as_deref(), Some("streamweld.open"));
    let open: serde_json::Value =
        serde_json::from_str(open.data.as_deref().expect("data")).expect("JSON");
    assert_eq!(open["stream_id"], id);
    assert_eq!(open["seq"], 1);
    assert_eq!(open["dialect"], "openai_chat");
    assert_eq!(open["model"], "m");
    assert_eq!(open["backend"], "llm");
    assert_eq!(open["orphan_policy"], "continue");
    assert!(open["request_id"].is_string() && open["time"].is_string());
    assert_eq!(open.as_object().expect("an object").len(), 8);

    let done = shown.last().expect("the terminal");
    assert_eq!(done.event.as_deref(), Some("streamweld.done"));
    let done: serde_json::Value =
        serde_json::from_str(done.data.as_deref().expect("data")).expect("JSON");
    assert_eq!(done["stream_id"], id);
    assert_eq!(done["seq"], shown.len() as u64);
    assert_eq!(done["end"], "sentinel");
    assert_eq!(done["reasons"], serde_json::json!(["stop"]));
    assert_eq!(done["attempts"], 1);
    assert!(done["time"].is_string());
    assert_eq!(done.as_object().expect("an object").len(), 6);

    // An ordinary reader is given the same without these two.
    let places = ends(&body);
    let (plain, _) = harness.client.events(&id).await.all().await;
    assert_eq!(plain, &body[places[0]..places[places.len() - 2]]);

    let events = format!("/v1/streams/{id}/events");
    for (seq, at) in (0..).zip([0].into_iter().chain(places.iter().copied())) {
        for way in Way::ALL {
            let cursor = format!("{id}:{seq}");
            let rest = way.resume(&control, &cursor, (CHAT_PATH, CHAT)).await;
            if at == body.len() {
                assert_eq!(rest.status, 204);
            } else {
                assert_eq!(
                    rest.all().await,
                    (body[at..].to_vec(), End::Proper),
                    "{way:?} after {seq}"
                );
            }
        }
        if at < body.len() {
            let target = format!("{events}?events=control&last_event_id={seq}");
            let by_query = harness.client.get(&target).await;
            assert_eq!(by_query.all().await.0, &body[at..]);
            let again = harness.client.with("last-event-id", &format!("{id}:{seq}"));
            let again = again.send("POST", "/v1/chat/completions?events=control", CHAT);
            assert_eq!(again.await.all().await.0, &body[at..]);
        }
    }
    let seen = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(seen.header("x-kept"), Some("1"));
    assert_eq!(
        seen.header("x-streamweld-events"),
        None,
        "ours is not forwarded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_asked_for_in_the_query_of_the_first_request_too() {
    let harness = Harness::start(Script::tokens(4)).await;
    let target = "/v1/chat/completions?a=1&events=control";
    let first = harness.client.send("POST", target, CHAT).await;
    let (body, _) = first.all().await;
    assert_eq!(blocks(&body)[0].event.as_deref(), Some("streamweld.open"));
    let seen = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(seen.target, target, "the query is the backend's as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn control_readers_see_the_form_without_an_id_and_then_the_terminal() {
    let harness = Harness::start(Script::tokens(8).fin_after(4)).await;
    let control = harness.client.with("x-streamweld-events", "control");
    let first = control.chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Proper, "the terminal says it, so no abort has to");
    let shown = blocks(&body);
    let [.., form, terminal] = &shown[..] else {
        panic!("too short")
    };
    assert_eq!(form.id, None);
    assert!(
        form.data
            .as_deref()
            .expect("data")
            .contains("streamweld_error")
    );
    assert_eq!(terminal.event.as_deref(), Some("streamweld.error"));
    assert_eq!(terminal.seq(), 6);
    assert!(
        terminal
            .data
            .as_deref()
            .expect("data")
            .contains(r#""code":"truncated""#)
    );
    for way in Way::ALL {
        let rest = way
            .resume(&control, &format!("{id}:0"), (CHAT_PATH, CHAT))
            .await;
        assert_eq!(rest.all().await, (body.clone(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_looks_resumable_only_to_whoever_resumes() {
    let harness = Harness::start(Script::tokens(8).fin_after(4)).await;
    let first = harness.client.chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Fin, "the abort");
    assert_eq!(blocks(&body).pop().expect("the form").id, None);
    let places = ends(&body);
    for way in Way::ALL {
        let rest = way
            .resume(&harness.client, &format!("{id}:3"), (CHAT_PATH, CHAT))
            .await;
        let (rest, end) = rest.all().await;
        assert_eq!(end, End::Proper);
        let form = &body[places[3]..body.len() - 1];
        let expected = [
            &body[places[1]..places[3]],
            form,
            format!("id: {id}:6\n\n").as_bytes(),
        ]
        .concat();
        assert_eq!(rest, expected);
    }
}
