//! The count of events that were seen.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_count_of_events_gives_the_rest_in_the_form_that_its_client_reads() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(script()).await;
        let response = harness
            .client
            .send("POST", dialect.path(), &question())
            .await;
        let id = response.id();
        let (native, _) = response.all().await;
        let (ids, _) = harness.client.events(&id).await.all().await;
        // Of Gemini the two forms differ.
        assert_eq!(native == ids, dialect != Dialect::Gemini);
        let (native_ends, ids_ends) = (ends(&native), ends(&ids));
        assert_eq!(native_ends.len(), ids_ends.len());
        for count in 0..=native_ends.len() {
            let behind = |ends: &[usize]| count.checked_sub(1).map_or(0, |last| ends[last]);
            for (form, rest) in [
                ("&form=native", &native[behind(&native_ends)..]),
                ("", &ids[behind(&ids_ends)..]),
            ] {
                let target = format!("/v1/streams/{id}/events?after_events={count}{form}");
                let answer = harness.client.get(&target).await;
                let left = if rest.is_empty() { 204 } else { 200 };
                assert_eq!(answer.status, left, "{dialect}: {target}");
                assert_eq!(answer.all().await, (rest.to_vec(), End::Proper));
            }
        }
        let beyond = format!(
            "/v1/streams/{id}/events?after_events={}",
            ids_ends.len() + 1
        );
        let beyond = harness.client.get(&beyond).await;
        assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_looks_native_to_whoever_asks_for_that() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(script().fin_after(3)).await;
        let response = ask(&harness.client, dialect).await;
        let id = response.id();
        let (native, end) = response.all().await;
        assert_eq!(end, End::Fin);
        let count = blocks(&native)
            .iter()
            .filter(|one| one.data.is_some())
            .count();
        let three = ends(&native)[2];
        for seen in [0, 3, count] {
            let target = format!("/v1/streams/{id}/events?after_events={seen}&form=native");
            let answer = harness.client.get(&target).await;
            if dialect == Dialect::Generic && seen == 3 {
                assert_eq!(answer.status, 204, "this dialect has no form");
                continue;
            }
            let rest = if seen == 0 { 0 } else { three };
            assert_eq!(answer.status, 200, "{dialect}: {target}");
            assert_eq!(answer.all().await, (native[rest..].to_vec(), End::Fin));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_answer_is_counted_with_its_form() {
    let harness = Harness::start(script().stall_after(2)).await;
    let mut response = ask(&harness.client, Dialect::Gemini).await;
    let id = response.id();
    response.body.blocks(2).await;
    let stop = format!("/v1/streams/{id}/stop");
    harness.client.send("POST", &stop, "").await.json().await;
    let (form, _) = response.body.rest().await;
    assert_eq!(blocks(&form).len(), 1);
    let at = |count: usize| format!("/v1/streams/{id}/events?after_events={count}&form=native");
    let rest = harness.client.get(&at(2)).await.all().await;
    assert_eq!(rest, (form, End::Proper));
    assert_eq!(harness.client.get(&at(3)).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn native_readers_of_gemini_are_given_plain_heartbeats() {
    let harness = Setup::new(script().gate_after(2, "go"))
        .config(|config| config.edge.heartbeat = Duration::from_millis(20))
        .start()
        .await;
    let response = ask(&harness.client, Dialect::Gemini).await;
    let id = response.id();
    let target = format!("/v1/streams/{id}/events?after_events=2&form=native");
    let mut rest = harness.client.get(&target).await;
    for _ in 0..3 {
        assert_eq!(rest.body.chunk().await.as_deref(), Some(&b"\n"[..]));
    }
    harness.mock.gates().release("go");
    let (rest, end) = rest.all().await;
    assert_eq!(end, End::Proper);
    let text = String::from_utf8(rest).expect("UTF-8");
    assert!(text.contains("data: "));
    assert!(
        !text.contains("\nid: ") && !text.contains("\n:\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_no_place_or_two_is_refused() {
    let harness = Harness::start(script()).await;
    let response = harness.client.chat().await;
    let id = response.id();
    response.all().await;
    let invalid = (400, "invalid_parameter".to_owned());
    for bad in [
        "after_events=",
        "after_events=-1",
        "after_events=x",
        "form=plain",
        "form=",
        "after_events=1&last_event_id=2",
    ] {
        let answer = harness
            .client
            .get(&format!("/v1/streams/{id}/events?{bad}"))
            .await;
        assert_eq!(answer.error_code().await, invalid, "{bad}");
    }
    let resumes = harness.client.with("last-event-id", &format!("{id}:2"));
    let both = format!("/v1/streams/{id}/events?after_events=1");
    assert_eq!(resumes.get(&both).await.error_code().await, invalid);
    // A form and a cursor go together.
    let native = format!("/v1/streams/{id}/events?form=native");
    assert_eq!(resumes.get(&native).await.status, 200);
}
