//! Pages of the origins that the operator lists: this proxy decides for them, on every path (protocol.md 4.7).

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, End, Harness, Response, Setup, Way, Wire, wait_end};

const PATH: &str = "/v1/chat/completions";
const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
const APP: &str = "https://app.example";
const OTHER: &str = "https://other.example";
const ALLOW: &str = "access-control-allow-origin";
const EXPOSE: &str = "access-control-expose-headers";
const OURS: &str = "X-Streamweld-Stream-Id, X-Streamweld-Durability, X-Streamweld-Request-Id, X-Streamweld-Resume-Url, \
     X-Streamweld-Tail, X-Streamweld-Verdict";
/// What the backend says, to somebody else.
const SAID: [(&str, &str); 7] = [
    (ALLOW, OTHER),
    ("access-control-allow-credentials", "true"),
    ("access-control-allow-headers", "*"),
    (EXPOSE, "x-backend"),
    ("access-control-max-age", "600"),
    ("vary", "Accept-Encoding"),
    ("vary", "origin"),
];

fn saying(script: Script) -> Script {
    let fields = SAID.into_iter();
    fields.fold(script, |script, (name, value)| script.header(name, value))
}

/// A server with a list, and two pages: of an origin on it, and of another one.
async fn start(script: Script) -> (Harness, Client, Client) {
    let list = ["http://localhost:3000", APP];
    let harness = Setup::new(script)
        .config(move |config| {
            config.edge.cors_origins = list.map(|one| one.parse().expect("an origin")).into();
            config.edge.max_request_body = Some(1 << 10);
        })
        .start()
        .await;
    let page = harness.client.with("origin", APP);
    let other = harness.client.with("origin", OTHER);
    (harness, page, other)
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

/// What a listed page is told where the backend says nothing.
const ALONE: [(&str, &str); 4] = [
    (ALLOW, APP),
    (EXPOSE, OURS),
    (EXPOSE, "Retry-After"),
    ("vary", "Origin"),
];

/// And where it says what is above.
const BESIDE: [(&str, &str); 6] = [
    (ALLOW, APP),
    (EXPOSE, "x-backend"),
    (EXPOSE, OURS),
    (EXPOSE, "Retry-After"),
    ("vary", "Accept-Encoding"),
    ("vary", "origin"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_reads_every_answer_whatever_the_backend_says() {
    let (harness, page, _) = start(saying(Script::tokens(6))).await;
    let mut first = page.chat().await;
    assert_eq!(policy(&first), BESIDE);
    let id = first.id();
    assert_eq!(first.body.rest().await.1, End::Proper);
    let last = wait_end(&page, &id).await["last_seq"].clone();
    for way in Way::ALL {
        for (seq, status) in [("0", 200), (&*last.to_string(), 204)] {
            let reader = way
                .resume(&page, &format!("{id}:{seq}"), (PATH, CHAT))
                .await;
            assert_eq!((reader.status, policy(&reader)), (status, BESIDE.into()));
        }
    }
    let path = format!("/v1/streams/{id}");
    let stop = format!("{path}/stop");
    for (answer, status) in [
        (page.get(&path).await, 200),
        (page.send("POST", &stop, "").await, 409),
        (
            page.get(&format!("{path}/events?last_event_id=99")).await,
            409,
        ),
    ] {
        assert_eq!((answer.status, policy(&answer)), (status, BESIDE.into()));
    }

    // Where the backend has said nothing, or was not asked.
    harness.mock.set_script(Script::tokens(6));
    harness.mock.set_script_at("/limited", Script::error(429));
    let too_long = "x".repeat(2 << 10);
    for (answer, status) in [
        (page.chat().await, 200),
        (page.get("/echo").await, 200),
        (page.send("POST", "/limited", CHAT).await, 429),
        (page.events(UNKNOWN).await, 404),
        (page.get("/v1/streams/watch").await, 404),
        (page.send("DELETE", &path, "").await, 405),
        (page.send("POST", PATH, &too_long).await, 413),
        (page.get(&format!("/{}", "x".repeat(17 << 10))).await, 414),
        (
            page.with("last-event-id", &format!("{UNKNOWN}:x"))
                .chat()
                .await,
            400,
        ),
    ] {
        assert_eq!((answer.status, policy(&answer)), (status, ALONE.into()));
    }
    // What it asked reached the backend as it came.
    let requests = harness.mock.recorder().requests();
    let origins = requests.iter().map(|request| request.header("origin"));
    assert!(origins.eq(std::iter::repeat_n(Some(APP), requests.len())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_away_is_told_to_pages() {
    let (harness, page, _) = start(Script::tokens(2)).await;
    harness.mock.shutdown().await;
    for answer in [page.chat().await, page.get("/v1/models").await] {
        assert_eq!((answer.status, policy(&answer)), (502, ALONE.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_is_preflighted_here_on_every_path() {
    let (harness, page, _) = start(saying(Script::tokens(2))).await;
    let id = page.chat().await.id();
    let asks = page.with("access-control-request-method", "POST");
    let wanted = "authorization,content-type, last-event-id,x-api-key,X-Streamweld-Events";
    let asks_with = |names: &str| asks.with("access-control-request-headers", names);
    let methods = (
        "access-control-allow-methods",
        "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
    );
    let vary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
    let told = |names: Option<&'static str>| {
        let mut told: Vec<_> = names
            .map(|names| ("access-control-allow-headers", names))
            .into_iter()
            .collect();
        told.extend([methods, (ALLOW, APP)]);
        told.extend([("access-control-max-age", "7200"), ("vary", vary)]);
        told
    };
    for path in [
        PATH.to_owned(),
        "/v1/models?limit=2".to_owned(),
        format!("/v1/streams/{id}"),
        format!("/v1/streams/{id}/events?cap=x"),
        format!("/v1/streams/{UNKNOWN}/stop"),
        "/v1/streams/watch".to_owned(),
    ] {
        let answer = asks_with(wanted).send("OPTIONS", &path, "").await;
        assert_eq!((answer.status, policy(&answer)), (204, told(Some(wanted))));
        assert!(answer.header("x-streamweld-request-id").is_some());
        assert_eq!(answer.all().await.1, End::Proper);
    }
    // Simple requests name nothing, and what is no name is not allowed.
    let bare = asks.send("OPTIONS", PATH, "").await;
    assert_eq!(policy(&bare), told(None));
    let many = "x-a,".repeat(2 << 10) + "x-a";
    for names in ["x y", "x-a,,x-b", "", &many] {
        let answer = asks_with(names).send("OPTIONS", PATH, "").await;
        assert_eq!(
            (answer.status, policy(&answer)),
            (204, told(None)),
            "{names}"
        );
    }
    let twice = asks_with("x-a").with("access-control-request-headers", "x-b");
    let twice = twice.send("OPTIONS", PATH, "").await;
    assert_eq!(policy(&twice), told(Some("x-a, x-b")));
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "no preflight was forwarded"
    );

    // Any other OPTIONS is a request.
    let plain = page.send("OPTIONS", "/echo", "").await;
    assert_eq!((plain.status, policy(&plain)), (200, ALONE.into()));
    assert_eq!(harness.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_origin_is_told_what_the_backend_says() {
    let (harness, page, other) = start(saying(Script::tokens(2))).await;
    // What the backend says already depends on the origin, as far as it goes.
    let mut said: Vec<_> = SAID.to_vec();
    said.insert(4, (EXPOSE, OURS));
    said.sort_by_key(|(name, _)| *name);
    let twice = page.with("origin", OTHER);
    let (null, slash) = (
        harness.client.with("origin", "null"),
        harness.client.with("origin", &format!("{APP}/")),
    );
    for client in [&other, &harness.client, &twice, &null, &slash] {
        let before = harness.mock.recorder().count();
        let first = client.chat().await;
        assert_eq!(policy(&first), said);
        assert_eq!(policy(&client.events(&first.id()).await), said);
        let asks = client.with("access-control-request-method", "GET");
        asks.send("OPTIONS", "/v1/models", "").await;
        let asked = harness.mock.recorder().count() - before;
        assert_eq!(asked, 2, "a chat and a preflight");
    }

    // A page that nobody allows is told nothing, but that another would be.
    let (_harness, _, other) = start(Script::tokens(2)).await;
    let id = other.chat().await.id();
    for answer in [other.events(&id).await, other.get("/echo").await] {
        assert_eq!(policy(&answer), [("vary", "Origin")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_is_no_page_reading() {
    let (harness, ..) = start(Script::tokens(2)).await;
    let request = format!(
        "GET /upgrade HTTP/1.1\r\nhost: h\r\norigin: {APP}\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"
    );
    let head = Wire::open(&harness.client, &request).await.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(
        !head.to_ascii_lowercase().contains("access-control-"),
        "{head}"
    );
    assert!(!head.to_ascii_lowercase().contains("vary"), "{head}");
}
