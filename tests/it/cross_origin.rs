//! What a page of another origin may read: what the backend allows, on every way to a generation (protocol.md 4.5).

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{
    CHAT, Client, End, Harness, Response, Setup, Way, leave, patience, wait_end, wait_seq,
};

const PATH: &str = "/v1/chat/completions";
const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
const ALLOW: &str = "access-control-allow-origin";
const EXPOSE: &str = "access-control-expose-headers";
const OURS: &str = "X-Streamweld-Stream-Id, X-Streamweld-Durability, X-Streamweld-Request-Id, X-Streamweld-Resume-Url, \
     X-Streamweld-Tail, X-Streamweld-Verdict";
/// What a backend that echoes origins says to a page of `https://app.example`.
const ECHOED: [(&str, &str); 6] = [
    (ALLOW, "https://app.example"),
    ("access-control-allow-credentials", "true"),
    (EXPOSE, "x-backend"),
    ("access-control-max-age", "600"),
    ("vary", "Origin"),
    ("vary", "Accept-Encoding"),
];

fn saying(script: Script, fields: &[(&str, &str)]) -> Script {
    fields
        .iter()
        .fold(script, |script, (name, value)| script.header(*name, *value))
}

/// What an answer says to pages.
fn policy(response: &Response) -> Vec<(&str, &str)> {
    let fields = response.headers.iter();
    let mut policy: Vec<_> = fields
        .filter(|(name, _)| name.starts_with("access-control-") || name == "vary")
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    // The order of fields of one name counts, and no other.
    policy.sort_by_key(|(name, _)| *name);
    policy
}

/// The same with our fields exposed.
fn exposing(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut policy = fields.to_vec();
    policy.push((EXPOSE, OURS));
    policy.sort_by_key(|(name, _)| *name);
    policy
}

/// A generation that has ended, and the head that its maker got.
async fn ended(client: &Client) -> (String, Response) {
    let mut response = client.chat().await;
    let id = response.id();
    response.body.rest().await;
    wait_end(client, &id).await;
    (id, response)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_attaches_is_given_what_the_backend_allows() {
    let script = saying(Script::tokens(6).gate_after(3, "gate"), &ECHOED).header("x-backend", "1");
    let harness = Harness::start(script).await;
    let mut first = harness.client.chat().await;
    assert_eq!(policy(&first), exposing(&ECHOED));
    let id = first.id();
    first.body.blocks(3).await;
    let mut running = Vec::new();
    for way in Way::ALL {
        let cursor = format!("{id}:2");
        running.push(way.resume(&harness.client, &cursor, (PATH, CHAT)).await);
    }
    harness.mock.gates().release("gate");
    let last = wait_end(&harness.client, &id).await["last_seq"].clone();
    for reader in running {
        assert_eq!(policy(&reader), exposing(&ECHOED));
        assert_eq!(reader.header("x-backend"), None);
        assert_eq!(reader.all().await.1, End::Proper);
    }
    for way in Way::ALL {
        for (seq, status) in [("0", 200), (&*last.to_string(), 204)] {
            let cursor = format!("{id}:{seq}");
            let reader = way.resume(&harness.client, &cursor, (PATH, CHAT)).await;
            assert_eq!(reader.status, status, "{way:?}");
            assert_eq!(policy(&reader), exposing(&ECHOED), "{way:?} {status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_that_join_are_given_it_too() {
    let script = saying(Script::tokens(6).head_gate("head"), &ECHOED);
    let harness = Harness::start(script).await;
    let lost = harness
        .client
        .begin(&harness.client.request("POST", PATH, CHAT))
        .await;
    harness.mock.recorder().wait_requests(1).await.expect("one");
    let again = harness.client.with("x-stainless-retry-count", "1");
    let again = tokio::spawn(async move { again.chat().await });
    // Both wait for a head: what it will say cannot be known when the repeat joins.
    let joined = async {
        loop {
            let metrics = harness.admin.get("/metrics").await.all().await.0;
            let metrics = String::from_utf8(metrics).expect("text");
            if metrics.contains("\nstreamweld_readers 2\n") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(joined).await;
    harness.mock.gates().release("head");
    let joined = patience(again).await.expect("no panic");
    assert_eq!(policy(&joined), exposing(&ECHOED));
    joined.all().await;
    assert_eq!(harness.mock.recorder().count(), 1, "it has joined");
    leave(lost).await;

    let keyed = harness.client.with("idempotency-key", "k");
    let (id, first) = ended(&keyed).await;
    let second = keyed.chat().await;
    assert_eq!(second.id(), id);
    assert_eq!(policy(&second), policy(&first));
    assert_eq!(policy(&second), exposing(&ECHOED));
    assert_eq!(harness.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_errors_about_a_stream_are_given_it_too() {
    let harness = Harness::start(saying(Script::tokens(6).step_gate("step"), &ECHOED)).await;
    harness.mock.gates().steps("step", 3);
    let first = harness.client.chat().await;
    let id = first.id();
    let path = format!("/v1/streams/{id}");
    wait_seq(&harness.client, &id, 4).await;
    let check = async |status: u16, answer: Response| {
        assert_eq!(answer.status, status);
        assert_eq!(policy(&answer), exposing(&ECHOED), "{status}");
        answer.json().await
    };
    let client = &harness.client;
    check(200, client.get(&path).await).await;
    check(200, client.send("POST", &format!("{path}/stop"), "").await).await;
    check(200, client.send("POST", &format!("{path}/stop"), "").await).await;
    for (cursor, status) in [
        ("x", 400),
        (&*format!("{UNKNOWN}:1"), 400),
        ("99", 409),
        (&*format!("{id}:1~2"), 409),
    ] {
        let events = format!("{path}/events?last_event_id={cursor}");
        check(status, client.get(&events).await).await;
    }
    for cursor in [format!("{id}:99"), format!("{id}:1~2")] {
        check(409, client.with("last-event-id", &cursor).chat().await).await;
    }
    let bad_key = client
        .with("last-event-id", &format!("{id}:1"))
        .with("idempotency-key", "");
    check(400, bad_key.chat().await).await;

    harness.mock.gates().release("step");
    let (ended, _) = ended(client).await;
    let stop = format!("/v1/streams/{ended}/stop");
    check(409, client.send("POST", &stop, "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_left_the_ring_is_told_to_pages_too() {
    let script = saying(Script::text("x".repeat(200_000)), &[(ALLOW, "*")]);
    let setup = Setup::new(script).config(|config| config.journal.per_generation = 4 << 10);
    let harness = setup.start().await;
    let keyed = harness.client.with("idempotency-key", "k");
    let (id, _) = ended(&keyed).await;
    for answer in [keyed.events(&id).await, keyed.chat().await] {
        assert_eq!(policy(&answer), exposing(&[(ALLOW, "*")]));
        let expired = (410, "cursor_expired".to_owned());
        assert_eq!(answer.error_code().await, expired);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_ours_are_exposed_where_the_backend_allows_an_origin() {
    for (said, seen) in [
        (vec![(ALLOW, "*")], exposing(&[(ALLOW, "*")])),
        (
            vec![(ALLOW, "*"), (EXPOSE, "*")],
            exposing(&[(ALLOW, "*"), (EXPOSE, "*")]),
        ),
        // No origin is allowed, so there is nobody to expose anything to.
        (vec![("vary", "Origin")], vec![("vary", "Origin")]),
        (vec![(EXPOSE, "x-backend")], vec![(EXPOSE, "x-backend")]),
    ] {
        let harness = Harness::start(saying(Script::tokens(2), &said)).await;
        let (id, first) = ended(&harness.client).await;
        assert_eq!(policy(&first), seen);
        assert_eq!(policy(&harness.client.events(&id).await), seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_allowed_that_the_backend_does_not_allow() {
    let harness = Harness::start(Script::tokens(2)).await;
    let page = harness.client.with("origin", "https://app.example");
    let (id, first) = ended(&page).await;
    assert_eq!(policy(&first), []);
    let path = format!("/v1/streams/{id}");
    for answer in [
        page.events(&id).await,
        page.get(&path).await,
        page.send("POST", &format!("{path}/stop"), "").await,
        page.with("last-event-id", &format!("{id}:1")).chat().await,
        page.get("/v1/models").await,
    ] {
        assert_eq!(policy(&answer), []);
    }

    // What was allowed to the page of one origin is told to another as it is, and its browser refuses.
    let harness = Harness::start(saying(Script::tokens(2), &ECHOED)).await;
    let (id, _) = ended(&harness.client).await;
    let other = harness.client.with("origin", "https://other.example");
    let answer = other.events(&id).await;
    assert_eq!(answer.header(ALLOW), Some("https://app.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_operators_are_given_none_of_it() {
    let script = saying(Script::tokens(2), &[(ALLOW, "*"), ("vary", "Origin")]);
    let setup =
        Setup::new(script).config(|config| config.journal.retention = Duration::from_secs(1));
    let harness = setup.start().await;
    let maker = harness.client.with("authorization", "Bearer a");
    let (id, _) = ended(&maker).await;
    let path = format!("/v1/streams/{id}");
    let again = harness.client.with("last-event-id", &format!("{id}:1"));
    for answer in [
        harness.client.events(&id).await,
        harness.client.get(&path).await,
        harness
            .client
            .send("POST", &format!("{path}/stop"), "")
            .await,
        again.chat().await,
    ] {
        assert_eq!((answer.status, policy(&answer)), (404, vec![]));
    }
    let seen = format!("/admin/streams/{id}");
    let stop = format!("{seen}/stop");
    for (answer, status) in [
        (harness.admin.get(&seen).await, 200),
        (harness.admin.send("POST", &stop, "").await, 409),
    ] {
        assert_eq!((answer.status, policy(&answer)), (status, vec![]));
    }
    // Only the digest of its credential is left.
    let expired = async {
        loop {
            let answer = maker.get(&path).await;
            if answer.status == 410 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(policy(&patience(expired).await), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_4_kib_is_not_kept() {
    let names = ALLOW.len() + 1 + EXPOSE.len();
    for (over, kept) in [(0, true), (1, false)] {
        let long = "x".repeat((4 << 10) - names + over);
        let script = saying(Script::tokens(2), &[(ALLOW, "*"), (EXPOSE, &long)]);
        let harness = Harness::start(script).await;
        let (id, first) = ended(&harness.client).await;
        let whole = vec![(ALLOW, "*"), (EXPOSE, &*long), (EXPOSE, OURS)];
        assert_eq!(policy(&first), whole, "the backend's own answer passes");
        let later = harness.client.events(&id).await;
        assert_eq!(policy(&later), if kept { whole } else { vec![] });
        assert_eq!(later.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_no_text_is_not_kept() {
    let script = saying(Script::tokens(2), &[(ALLOW, "*"), (EXPOSE, "\u{e9}")]);
    let harness = Harness::start(script).await;
    let (id, first) = ended(&harness.client).await;
    assert_eq!(first.header(ALLOW), Some("*"));
    assert_eq!(policy(&harness.client.events(&id).await), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_is_the_backends_on_every_path() {
    let harness = Harness::start(Script::tokens(2)).await;
    let (id, _) = ended(&harness.client).await;
    let allowed = Script::answer(204, "")
        .header(ALLOW, "https://app.example")
        .header("access-control-allow-headers", "last-event-id");
    let page = harness.client.with("origin", "https://app.example");
    let asks = page
        .with("access-control-request-method", "GET")
        .with("access-control-request-headers", "last-event-id");
    let mut count = 1;
    for path in [
        PATH.to_owned(),
        format!("/v1/streams/{id}"),
        format!("/v1/streams/{id}/events?last_event_id=2"),
        format!("/v1/streams/{id}/stop"),
        // Nothing is told of whether it is there, nor of whether it could be.
        format!("/v1/streams/{UNKNOWN}/events"),
        format!("/v1/streams/{}/other", UNKNOWN.to_uppercase()),
    ] {
        let (plain, _) = path.split_once('?').unwrap_or((&path, ""));
        harness.mock.set_script_at(plain, allowed.clone());
        let answer = asks.send("OPTIONS", &path, "").await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(
            policy(&answer),
            [
                ("access-control-allow-headers", "last-event-id"),
                (ALLOW, "https://app.example")
            ]
        );
        let seen = harness.mock.recorder().request(count).expect("forwarded");
        assert_eq!((seen.method.as_str(), &*seen.target), ("OPTIONS", &*path));
        assert_eq!(seen.header("origin"), Some("https://app.example"));
        count += 1;
    }
    // A backend that allows nothing decides as well.
    let other = format!("/v1/streams/{UNKNOWN}");
    let answer = asks.send("OPTIONS", &other, "").await;
    assert_eq!((answer.status, policy(&answer)), (404, vec![]));
    count += 1;
    // Any other OPTIONS is no method of our paths.
    let half = harness.client.with("access-control-request-method", "GET");
    for client in [&harness.client, &page, &half] {
        let answer = client.send("OPTIONS", &other, "").await;
        assert_eq!(answer.status, 405);
    }
    for method in ["GET", "POST", "DELETE"] {
        asks.send(method, &other, "").await.all().await;
    }
    assert_eq!(harness.mock.recorder().count(), count);
}
