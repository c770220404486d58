//! Which responses are ours, and whose.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_the_backends() {
    let harness = Harness::start(script()).await;
    let maker = harness.client.with("authorization", "Bearer a");
    respond(&maker).await.all().await;
    assert_eq!(retrieve(&maker, 0).await.status, 200);
    let stranger = harness.client.with("authorization", "Bearer b");
    for other in [stranger, harness.client.clone()] {
        assert_the_backends(&harness, retrieve(&other, 0).await).await;
    }
    for target in [
        format!("/v1/responses/{NAME}"),
        format!("/v1/responses/{NAME}?stream=false"),
        format!("/v1/responses/{NAME}/input_items?stream=true"),
        format!("/v2/responses/{NAME}?stream=true"),
        "/v1/responses/resp_other?stream=true".to_owned(),
        "/v1/responses/?stream=true".to_owned(),
    ] {
        assert_the_backends(&harness, maker.get(&target).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_runs_here_is_known_whatever_the_journal_says() {
    let journal = Faulty::new(Memory::default());
    let held = journal.faults().hold(Op::Claim);
    let script = script().gate_after(6, "go");
    let setup = Setup::new(script.clone()).journal(Arc::new(journal));
    let harness = setup.start().await;
    let mut first = respond(&harness.client).await;
    let id = first.id();
    first.body.blocks(6).await;
    wait_seq(&harness.client, &id, 7).await;
    let rest = retrieve(&harness.client, 2).await;
    assert_eq!((rest.status, rest.id()), (200, id.clone()));
    harness.mock.gates().release("go");
    let all = numbered(&id, &events(&script, RESPONSES));
    let from = ends(&all)[2];
    assert_eq!(rest.all().await, (all[from..].to_vec(), End::Proper));
    assert_eq!(harness.mock.recorder().count(), 1);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_path_has_to_encode_is_found() {
    let script = Script::text("Hello").id("resp /?#% ü_0123456789abcdef0123456789abcdef");
    let harness = Harness::start(script).await;
    let all = respond(&harness.client).await.all().await;
    let name = "resp%20%2F%3F%23%25%20%C3%BC_0123456789abcdef0123456789abcdef";
    let target = format!("/v1/responses/{name}?stream=true");
    assert_eq!(harness.client.get(&target).await.all().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_a_short_id_is_no_secret() {
    let short = Script::text("Hello").id("resp_7");
    let harness = Harness::start(short.clone()).await;
    respond(&harness.client).await.all().await;
    let target = "/v1/responses/resp_7?stream=true";
    assert_the_backends(&harness, harness.client.get(target).await).await;
    harness.mock.push_script(short);
    let maker = harness.client.with("authorization", "Bearer a");
    let all = respond(&maker).await.all().await;
    assert_eq!(maker.get(target).await.all().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_responses_of_one_name_the_newer_is_meant() {
    let harness = Harness::start(script()).await;
    let mut older = respond(&harness.client).await;
    older.body.blocks(1).await;
    assert_eq!(retrieve(&harness.client, 0).await.id(), older.id());
    older.all().await;
    let newer = respond(&harness.client).await;
    let id = newer.id();
    newer.all().await;
    assert_eq!(retrieve(&harness.client, 0).await.id(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_response_is_the_backends() {
    let harness = Setup::new(script())
        .config(|config| config.journal.retention = Duration::from_secs(1))
        .start()
        .await;
    respond(&harness.client).await.all().await;
    assert_eq!(retrieve(&harness.client, 0).await.status, 200);
    let expired = async {
        while retrieve(&harness.client, 0).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    patience(expired).await;
    assert_the_backends(&harness, retrieve(&harness.client, 0).await).await;
}
