//! A journal that is full.

use super::*;

/// A chat answer with one event of some 40,000 bytes, that waits before and behind it.
fn large(before: &str, behind: &str) -> Script {
    Script::tokens(3)
        .gate_after(2, before)
        .huge_event_after(2, 40_000)
        .gate_after(2, behind)
}

/// Reads until the large event has come.
async fn read_large(response: &mut Response) -> Vec<Block> {
    let mut all = Vec::new();
    while all.len() < 40_000 {
        all.extend(response.body.chunk().await.expect("it goes on"));
    }
    blocks(&all)
}

async fn start_small(total: u64, script: Script) -> Harness {
    let setup = Setup::new(script).config(move |config| config.journal.total = total);
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_full_of_live_generations_refuses_no_inference_and_heals() {
    let harness = start_small(64 << 10, Script::tokens(20)).await;
    let (client, gates) = (&harness.client, harness.mock.gates());
    harness.mock.push_script(large("a1", "a2"));
    let mut first = ask(client, Dialect::OpenAiChat).await;
    harness.mock.push_script(large("b1", "b2"));
    let mut second = ask(client, Dialect::OpenAiChat).await;
    let (first_id, second_id) = (first.id(), second.id());
    gates.release("a1");
    assert!(
        read_large(&mut first)
            .await
            .iter()
            .all(|it| it.id.is_some())
    );
    // No room for this one: it is shown at once, without ids.
    gates.release("b1");
    let shown = read_large(&mut second).await;
    assert!(shown.last().is_some_and(|block| block.id.is_none()));
    assert_eq!(state(client, &second_id).await["durability"], "degraded");
    // Nor for a new one.
    let (body, end) = {
        let third = ask(client, Dialect::OpenAiChat).await;
        assert_eq!(third.status, 200);
        assert_eq!(third.header("x-streamweld-durability"), Some("degraded"));
        third.all().await
    };
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(
        metric(&harness, "streamweld_journal_early_evictions_total").await,
        0,
        "live ones never go"
    );

    // One that ends makes room.
    gates.release("a2");
    let (_, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    wait_state(client, &second_id, |state| state["durability"] == "durable").await;
    gates.release("b2");
    let (rest, end) = second.body.rest().await;
    assert_eq!(end, End::Proper);
    assert!(blocks(&rest).iter().all(|block| block.id.is_some()));
    wait_end(client, &second_id).await;
    let (again, _) = client.events(&second_id).await.all().await;
    let seqs = seqs(&blocks(&again));
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(client.events(&first_id).await.error_code().await.0, 410);
    assert_eq!(
        metric(&harness, "streamweld_journal_early_evictions_total").await,
        1
    );
    let full = r#"streamweld_append_failures_total{reason="full"}"#;
    assert!(metric(&harness, full).await >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_generations_go_early_least_recently_read_first() {
    let script = Script::tokens(3).huge_event_after(2, 20_000);
    let harness = start_small(80 << 10, script).await;
    let client = &harness.client;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let response = ask(client, Dialect::OpenAiChat).await;
        ids.push(response.id());
        response.all().await;
        wait_end(client, ids.last().expect("one")).await;
    }
    // In this order they were read last.
    for at in [1, 0, 2] {
        let (_, end) = client.events(&ids[at]).await.all().await;
        assert_eq!(end, End::Proper);
    }
    let evictions = "streamweld_journal_early_evictions_total";
    assert_eq!(metric(&harness, evictions).await, 0);
    let fourth = ask(client, Dialect::OpenAiChat).await;
    ids.push(fourth.id());
    fourth.all().await;
    assert_eq!(metric(&harness, evictions).await, 1);
    let answer = client.events(&ids[1]).await.error_code().await;
    assert_eq!(answer, (410, "stream_expired".to_owned()));
    for at in [0, 2, 3] {
        assert_eq!(client.events(&ids[at]).await.status, 200, "{at}");
    }
}
