//! Who a caller is by the word of a gateway (protocol.md 9.3).

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, Harness, Setup};

async fn start() -> Harness {
    Setup::new(Script::tokens(5))
        .config(|config| {
            config.generation.trusted_subject_header = Some("x-user".to_owned());
            let origin = "https://app.example".parse().expect("an origin");
            config.edge.cors_origins = vec![origin];
        })
        .start()
        .await
}

/// All come with the key of the gateway's service.
fn of(harness: &Harness, user: &str, key: &str) -> Client {
    let client = harness.client.with("authorization", key);
    client.with("x-user", user)
}

async fn made_by(client: &Client) -> String {
    let answer = client.chat().await;
    let id = answer.id();
    answer.all().await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_stands_in_place_of_the_credential() {
    let harness = start().await;
    let ann = of(&harness, "ann", "Bearer service");
    let path = format!("/v1/streams/{}", made_by(&ann).await);
    assert_eq!(ann.get(&path).await.status, 200);
    let rotated = of(&harness, "ann", "Bearer rotated");
    assert_eq!(
        rotated.get(&path).await.status,
        200,
        "the key may change behind it"
    );
    let service = harness.client.with("authorization", "Bearer service");
    for stranger in [
        of(&harness, "bob", "Bearer service"),
        of(&harness, "", "Bearer service"),
        ann.with("x-user", "bob"),
        service,
        harness.client.with("authorization", "ann"),
        harness.client.clone(),
    ] {
        for target in [path.clone(), format!("{path}/events")] {
            let answer = stranger.get(&target).await;
            assert_eq!(answer.status, 404, "{stranger:?}");
            assert_eq!(answer.json().await["error"]["code"], "stream_not_found");
        }
        let stop = stranger.send("POST", &format!("{path}/stop"), "").await;
        assert_eq!(stop.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_subject_no_generation_is_made_and_the_rest_passes() {
    let harness = start().await;
    let ann = of(&harness, "ann", "Bearer service");
    for client in [
        harness.client.clone(),
        of(&harness, "", "Bearer service"),
        ann.with("x-user", "ann"),
    ] {
        let answer = client.send("POST", "/v1/chat/completions", CHAT).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json().await["error"]["code"], "subject_missing");
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    assert_eq!(harness.client.get("/echo").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_its_subjects_own() {
    let harness = start().await;
    let keyed = |user: &str| {
        let client = of(&harness, user, "Bearer service");
        client.with("idempotency-key", "k")
    };
    let ann = made_by(&keyed("ann")).await;
    assert_eq!(made_by(&keyed("ann")).await, ann);
    assert_ne!(made_by(&keyed("bob")).await, ann);
}

/// A page may not say who it is, and `Connection` takes away nothing that the gateway has said.
#[tokio::test(flavor = "multi_thread")]
async fn neither_pages_nor_hops_change_it() {
    let harness = start().await;
    let page = harness.client.with("origin", "https://app.example");
    let asks = page.with("access-control-request-method", "POST").with(
        "access-control-request-headers",
        "content-type, X-User, x-own",
    );
    let answer = asks.send("OPTIONS", "/v1/chat/completions", "").await;
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type, x-own")
    );
    let ann = of(&harness, "ann", "Bearer service").with("connection", "x-user");
    made_by(&ann).await;
    let seen = harness.mock.recorder().request(0).expect("forwarded");
    assert_eq!(seen.header("x-user"), Some("ann"));
}
