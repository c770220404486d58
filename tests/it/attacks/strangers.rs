//! Two tenants of one installation: attacks 1, 2 and 29. What is another's is to each of them as if it never was,
//! on whichever replica. How long it takes to be told so is measured by `cargo bench --bench strangers`.

use streamweld_mock::Script;
use streamweld_tests::{Client, Over, Pair, question, wait_end};

use crate::access::check_stranger;

const PATH: &str = "/v1/chat/completions";

fn tenants(client: &Client) -> [Client; 2] {
    ["Bearer a", "Bearer b"].map(|key| client.with("authorization", key))
}

async fn check(over: Over) {
    let pair = Pair::start(over, Script::tokens(6)).await;
    let mut ids = Vec::new();
    for client in tenants(&pair.one.client) {
        let response = client.send("POST", PATH, &question()).await;
        let id = response.id();
        response.all().await;
        wait_end(&client, &id).await;
        ids.push(id);
    }
    for client in pair.clients() {
        let [a, b] = tenants(&client);
        check_stranger(&a, &ids[1]).await;
        check_stranger(&b, &ids[0]).await;
        check_stranger(&client, &ids[0]).await;
        // Each finds its own.
        for (tenant, id) in [(&a, &ids[0]), (&b, &ids[1])] {
            assert_eq!(tenant.events(id).await.status, 200);
        }
    }
    assert_eq!(pair.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_01_what_is_anothers_never_was_over_linked_journals() {
    check(Over::Link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_01_what_is_anothers_never_was_over_redis() {
    check(Over::Redis).await;
}

/// The same key, and the same id of a response, of two tenants are two, on either replica.
#[tokio::test(flavor = "multi_thread")]
async fn row_29_a_key_of_one_tenant_shows_nothing_to_another() {
    for over in [Over::Link, Over::Redis] {
        let pair = Pair::start(over, Script::tokens(6)).await;
        let body = question();
        let mut ids = Vec::new();
        for client in pair.clients() {
            for tenant in tenants(&client) {
                let keyed = tenant.with("idempotency-key", "k");
                let response = keyed.send("POST", PATH, &body).await;
                ids.push(response.id());
                response.all().await;
                wait_end(&tenant, ids.last().expect("one")).await;
            }
        }
        assert_eq!(ids[..2], ids[2..], "each has its own again");
        assert_ne!(ids[0], ids[1]);
        assert_eq!(pair.mock.recorder().count(), 2);
    }
}
