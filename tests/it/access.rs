//! Who may read, stop and look (protocol.md 9): whoever sends the credential of the request that made the generation.
//! Anyone else is told exactly what is told of an id that never was.

use serde_json::Value;
use streamweld_mock::Script;
use streamweld_tests::{Client, End, Harness, Response, Setup, state, wait_end};

const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
/// As long as another one, so that its name counts and not only how long it is.
const EXTRA: &str = "X-Account";
const FIELDS: [&str; 5] = [
    "Authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    EXTRA,
];

async fn start() -> Harness {
    Setup::new(Script::tokens(6).step_gate("step"))
        .config(|config| config.generation.credential_headers = vec![EXTRA.to_owned()])
        .start()
        .await
}

/// Everything that can be asked about a generation.
async fn ask(client: &Client, id: &str) -> Vec<Response> {
    let path = format!("/v1/streams/{id}");
    let again = client.with("last-event-id", &format!("{id}:1"));
    let ahead = client.with("last-event-id", &format!("{id}:999"));
    vec![
        client.get(&path).await,
        client.events(id).await,
        client
            .get(&format!("{path}/events?last_event_id=nonsense"))
            .await,
        client
            .get(&format!("{path}/events?last_event_id=999"))
            .await,
        client.send("POST", &format!("{path}/stop"), "").await,
        again.chat().await,
        again.get("/v1/models").await,
        ahead.chat().await,
    ]
}

/// What an answer tells, but for the two ids and the time.
async fn told(answer: Response, id: &str) -> (u16, Vec<(String, String)>, String) {
    let status = answer.status;
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| name != "date" && name != "x-streamweld-request-id");
    let (body, end) = answer.all().await;
    assert_eq!(end, End::Proper);
    let mut body: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(body["error"]["request_id"].take().is_string());
    (status, headers, body.to_string().replace(id, "(id)"))
}

pub(crate) async fn check_stranger(stranger: &Client, id: &str) {
    let about_this = ask(stranger, id).await;
    let about_unknown = ask(stranger, UNKNOWN).await;
    for (this, unknown) in about_this.into_iter().zip(about_unknown) {
        assert_eq!(this.status, 404);
        assert_eq!(told(this, id).await, told(unknown, UNKNOWN).await);
    }
}

/// Makes a generation with these credential fields, and lets each of the others, and then its maker, ask about it.
async fn check(made_with: &[(&str, &str)], others: &[&[(&str, &str)]]) {
    let harness = start().await;
    let with = |fields: &[(&str, &str)]| {
        fields
            .iter()
            .fold(harness.client.clone(), |client, (name, value)| {
                client.with(name, value)
            })
    };
    let maker = with(made_with);
    harness.mock.gates().steps("step", 3);
    let mut first = maker.chat().await;
    let id = first.id();
    let mut body = first.body.blocks(3).await;
    for other in others {
        check_stranger(&with(other), &id).await;
    }
    assert_eq!(
        state(&maker, &id).await["status"],
        "streaming",
        "no stranger has stopped it"
    );

    harness.mock.gates().release("step");
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    body.extend_from_slice(&rest);
    wait_end(&maker, &id).await;
    for other in others {
        check_stranger(&with(other), &id).await;
    }
    // Names are written in any case; what is no credential does not count.
    let same = made_with
        .iter()
        .fold(harness.client.clone(), |client, (name, value)| {
            client.with(&name.to_uppercase(), value)
        });
    for maker in [maker.with("cookie", "session=1").with("x-other", "2"), same] {
        assert_eq!(
            maker.events(&id).await.all().await,
            (body.clone(), End::Proper)
        );
        let again = maker.with("last-event-id", &format!("{id}:1"));
        assert_eq!(again.chat().await.all().await, (body.clone(), End::Proper));
        assert_eq!(state(&maker, &id).await["stream_id"], id);
        let late = maker
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await;
        assert_eq!(
            late.error_code().await,
            (409, "already_terminal".to_owned())
        );
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_credential_field_binds_the_generation() {
    for field in FIELDS {
        // The same secret in another field is another credential, and so is one in two fields.
        let elsewhere = match field {
            EXTRA => "x-api-key",
            "x-api-key" => EXTRA,
            "api-key" => "x-goog-api-key",
            _ => "api-key",
        };
        check(
            &[(field, "Bearer secret")],
            &[
                &[],
                &[(field, "Bearer other")],
                &[(field, "bearer secret")],
                &[(field, "Bearer secre")],
                &[(field, "")],
                &[(elsewhere, "Bearer secret")],
                &[(field, "Bearer secret"), (elsewhere, "Bearer secret")],
                &[(field, "Bearer secret"), (field, "Bearer secret")],
            ],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_credential_fields_bind_together() {
    check(
        &[("authorization", "a"), ("x-api-key", "b")],
        &[
            &[("authorization", "a")],
            &[("x-api-key", "b")],
            &[("authorization", "b"), ("x-api-key", "a")],
            &[("authorization", "ab"), ("x-api-key", "")],
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_the_id_is_the_secret() {
    check(&[], &[]).await;
    check(&[("cookie", "session=1")], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_the_maker_had_not_is_another() {
    check(&[], &[&[("authorization", "Bearer a")], &[(EXTRA, "")]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_not_configured_is_no_credential() {
    let harness = Harness::start(Script::tokens(2)).await;
    let response = harness.client.with(EXTRA, "a").chat().await;
    let id = response.id();
    response.all().await;
    assert_eq!(
        harness.client.with(EXTRA, "b").events(&id).await.status,
        200
    );
    assert_eq!(harness.client.events(&id).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backend_is_given_the_credential_as_it_came() {
    let harness = start().await;
    harness.mock.gates().release("step");
    let mut client = harness.client.clone();
    for field in FIELDS {
        client = client.with(field, &format!("secret of {field}"));
    }
    client.chat().await.all().await;
    let seen = harness.mock.recorder().request(0).expect("one request");
    for field in FIELDS {
        assert_eq!(seen.header(field), Some(&*format!("secret of {field}")));
    }
}
