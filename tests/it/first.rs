//! The way of one answer: whole, cut and resumed, read twice, stopped.

use streamweld_mock::Script;
use streamweld_tests::{End, Harness, blocks, events};

#[tokio::test(flavor = "multi_thread")]
async fn an_unmodified_client_sees_the_backends_events() {
    let harness = Harness::start(Script::tokens(20)).await;
    let response = harness.client.chat().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-streamweld-durability"), Some("durable"));
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let (plain, _) = streamweld_tests::Client::new(harness.mock.addr())
        .chat()
        .await
        .all()
        .await;
    assert_eq!(events(&body).len(), events(&plain).len());
    let seqs: Vec<u64> = blocks(&body)
        .iter()
        .map(streamweld_tests::Block::seq)
        .collect();
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>());
    let (replay, _) = harness.client.events(&id).await.all().await;
    assert_eq!(replay, body);
}
