//! Responses that end, are left, or are read at another replica.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_failed_fails_again() {
    let script = script().fin_after(6);
    let harness = Harness::start(script.clone()).await;
    let (all, end) = respond(&harness.client).await.all().await;
    assert_eq!(end, End::Fin);
    let ends = ends(&all);
    assert_eq!(ends.len(), 7, "six events and the form");
    for (number, end) in ends[..6].iter().enumerate() {
        let rest = retrieve(&harness.client, number).await.all().await;
        assert_eq!(rest, (all[*end..].to_vec(), End::Fin));
    }
    // The form itself has a number too. Whoever saw it is not to take what comes now for a success.
    let again = retrieve(&harness.client, 6).await.all().await;
    assert_eq!(again, (all[ends[5]..].to_vec(), End::Fin));
    let beyond = retrieve(&harness.client, 7).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_was_stopped_ends_with_the_number_of_its_form() {
    let harness = Harness::start(script().stall_after(6)).await;
    let mut first = respond(&harness.client).await;
    let stop = format!("/v1/streams/{}/stop", first.id());
    first.body.blocks(6).await;
    harness.client.send("POST", &stop, "").await.json().await;
    let (form, _) = first.body.rest().await;
    assert_eq!(blocks(&form).len(), 1);
    let rest = retrieve(&harness.client, 5).await.all().await;
    assert_eq!(rest, (form, End::Proper));
    let nothing = retrieve(&harness.client, 6).await;
    assert_eq!(nothing.status, 200);
    assert_eq!(nothing.all().await, (Vec::new(), End::Proper));
    let beyond = retrieve(&harness.client, 7).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_by_number_keeps_a_cancel_away_like_any_other() {
    let harness = Setup::new(script().gate_after(6, "go"))
        .config(|config| {
            config.generation.orphan_policy = OrphanPolicy::CancelAfter(Duration::from_secs(1));
        })
        .start()
        .await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let rest = retrieve(&harness.client, 0).await;
    first.leave().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    harness.mock.gates().release("go");
    let (rest, end) = rest.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest).len(), events(&script(), RESPONSES).len() - 1);
}

async fn another_replica_resumes_a_response(over: Over) {
    let script = script().gate_after(6, "go");
    let pair = Pair::start(over, script.clone()).await;
    let first = respond(&pair.one.client).await;
    let id = first.id();
    wait_seq(&pair.other.client, &id, 7).await;
    // Its name is told a moment after its first event.
    let found = async {
        loop {
            let rest = retrieve(&pair.other.client, 3).await;
            if rest.status == 200 {
                return rest;
            }
        }
    };
    let running = patience(found).await;
    pair.mock.gates().release("go");
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script, RESPONSES)));
    let ends = ends(&all);
    assert_eq!(running.all().await, (all[ends[3]..].to_vec(), End::Proper));
    wait_end(&pair.other.client, &id).await;
    for client in pair.clients() {
        for (number, end) in ends.iter().enumerate() {
            let rest = retrieve(&client, number).await.all().await;
            assert_eq!(rest, (all[*end..].to_vec(), End::Proper));
            let counted = format!("/v1/streams/{id}/events?after_events={}", number + 1);
            let counted = client.get(&counted).await;
            assert_eq!(counted.status, if *end == all.len() { 204 } else { 200 });
            assert_eq!(counted.all().await.0, all[*end..]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_linked_replica_resumes_a_response() {
    another_replica_resumes_a_response(Over::Link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_of_one_redis_resumes_a_response() {
    another_replica_resumes_a_response(Over::Redis).await;
}
