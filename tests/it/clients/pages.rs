//! Pages of another origin than the proxy's, which the operator has listed: the code of docs/browser.md in Chromium.
//!
//! The mock serves the page, and its origin is the one that is listed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, FaultRelay, Script};
use streamweld_server::Config;
use streamweld_tests::{CHAT, Harness, Setup, events, wait_end};

use super::chromium::{Browser, CLIENT, asked, report};
use super::cuts::{Places, STREAMS, Stream, lent, script, sign};
use super::scene::{ANTHROPIC_EVENTS, expected};
use super::seen::{Row, Seen};

/// More than the 200 that are promised: a browser opens connections that it does not use, and sends some requests again
/// itself, so that not each cut is one that its page sees.
const CUTS: usize = 7;
const PROMISED: u64 = 200;

/// A server that lists the origin of the mock's pages and hands out resume URLs.
async fn listing(script: Script) -> Harness {
    let list = |config: &mut Config| {
        sign(config);
        let mock = format!("http://127.0.0.1:{}", config.backends[0].url.port());
        config.edge.cors_origins = vec![mock.parse().expect("an origin")];
    };
    Setup::new(script).config(list).start().await
}

/// What the page saw of each of its streams.
async fn seen_by_page(harness: &Harness, streams: &[Value]) -> Vec<Value> {
    let serve = |path: &str, media: &str, text: &str| {
        let content_type = Some(media.to_owned());
        let script = Script {
            content_type,
            ..Script::answer(200, text)
        };
        harness.mock.set_script_at(path, script);
    };
    let plan = json!({ "streams": streams, "tries": 20 }).to_string();
    serve(
        "/page",
        "text/html",
        include_str!("../../clients/browser/elsewhere.html"),
    );
    serve("/resume.mjs", "text/javascript", RESUME);
    serve("/watch.mjs", "text/javascript", WATCH);
    serve("/plan", "application/json", &plan);
    let browser = Browser::open(&format!("{}/page", harness.mock.url())).await;
    let seen = report(&harness.mock).await;
    drop(browser);
    seen.as_array().expect("a list").clone()
}

const RESUME: &str = include_str!("../../clients/browser/resume.mjs");
const WATCH: &str = include_str!("../../clients/browser/watch.mjs");

/// Checks that each was seen whole, and that it was cut as often as is said.
#[track_caller]
fn assert_whole(seen: &[Value], all: &[String], places: &Places) {
    for one in seen {
        assert_eq!(one["thrown"], "nothing", "{places:?}: {one}");
        Stream::of(one).assert_exact(all, places);
    }
    let lost: u64 = seen.iter().filter_map(|one| one["lost"].as_u64()).sum();
    assert_eq!(seen.len(), STREAMS);
    assert!(lost >= PROMISED, "{places:?}: {lost} cuts were seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_and_double_nothing_for_its_fetch() {
    let script = script();
    let harness = listing(script.clone()).await;
    let mut places = Places::new();
    let relays = places.relays(harness.client.addr, CUTS).await;
    let path = Dialect::OpenAiChat.path();
    let chat = |relay: &FaultRelay| json!({ "story": "fetch", "url": format!("{}{path}", relay.url()), "body": CHAT });
    let streams: Vec<Value> = relays.iter().map(chat).collect();
    let seen = seen_by_page(&harness, &streams).await;
    let requests = asked(&harness.mock, path);
    let all = expected(&script, &requests[0], Dialect::OpenAiChat);
    assert_whole(&seen, &all, &places);
    assert_eq!(requests.len(), STREAMS);
    assert!(requests.iter().all(|request| request.method == "POST"));
    let mut seen = Seen::by("pages::two_hundred_cuts_lose_and_double_nothing_for_its_fetch");
    seen.row(&Row::new(
        CLIENT,
        "`resume.mjs` of docs/browser.md, `POST`s of 40 chats, 200 cuts at random bytes",
        "every event once; the backend was asked once for each, and for no preflight",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_and_double_nothing_for_its_event_source() {
    let script = script();
    let harness = listing(script.clone()).await;
    let mut places = Places::new();
    let relays = places.relays(harness.client.addr, CUTS).await;
    let mut streams = Vec::new();
    for relay in &relays {
        let url = lent(&harness.client, Dialect::OpenAiChat).await;
        let url = format!("{}{url}", relay.url());
        streams.push(json!({ "story": "event_source", "url": url }));
    }
    let seen = seen_by_page(&harness, &streams).await;
    let path = Dialect::OpenAiChat.path();
    let requests = asked(&harness.mock, path);
    let all = expected(&script, &requests[0], Dialect::OpenAiChat);
    assert_whole(&seen, &all, &places);
    assert_eq!(requests.len(), STREAMS);
    let mut seen = Seen::by("pages::two_hundred_cuts_lose_and_double_nothing_for_its_event_source");
    seen.row(&Row::new(
        CLIENT,
        "`watch.mjs` of docs/browser.md, signed resume URLs of 40 chats, 200 cuts at random bytes",
        "every event once, then closed by the `204`; the backend was asked once for each",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_see_an_error_and_stop() {
    // Written slowly: else all of it could be lost with the abort, before the page has taken anything.
    let script = Script::tokens(60)
        .pace(Duration::from_millis(5))
        .error_after(40);
    let harness = listing(script.clone()).await;
    let base = format!("http://{}", harness.client.addr);
    let chat = Dialect::OpenAiChat.path();
    let url = lent(&harness.client, Dialect::AnthropicMessages).await;
    let streams = [
        json!({ "story": "event_source", "url": format!("{base}{url}"), "names": ANTHROPIC_EVENTS }),
        json!({ "story": "fetch", "url": format!("{base}{chat}"), "body": CHAT }),
    ];
    let seen = seen_by_page(&harness, &streams).await;
    let data = |seen: &Value| -> Vec<String> {
        let pairs = seen["events"].as_array().expect("a list").iter();
        pairs
            .map(|pair| pair[0].as_str().expect("text").to_owned())
            .collect()
    };
    for (seen, dialect, most) in [
        (&seen[0], Dialect::AnthropicMessages, 1),
        (&seen[1], Dialect::OpenAiChat, 2),
    ] {
        assert_eq!(seen["thrown"], "nothing", "{seen}");
        let (errors, data): (Vec<_>, Vec<_>) = data(seen)
            .into_iter()
            .partition(|data| data.contains("the mock engine failed"));
        assert!((1..=most).contains(&errors.len()), "{errors:?}");
        let request = &asked(&harness.mock, dialect.path())[0];
        assert_eq!(data, expected(&script, request, dialect));
    }
    assert_eq!(asked(&harness.mock, chat).len(), 1);
    let mut seen = Seen::by("pages::both_see_an_error_and_stop");
    seen.row(&Row::new(
        CLIENT,
        "`watch.mjs`, signed resume URL, Messages, backend fails",
        "every event once, then the error once, then closed",
    ));
    seen.row(&Row::new(
        CLIENT,
        "`resume.mjs`, `POST` of a chat, backend fails",
        "every event once, then the error once or twice, then the end",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_is_given_a_url_for_another() {
    let script = Script::tokens(20);
    let harness = listing(script.clone()).await;
    let base = format!("http://{}", harness.client.addr);
    let chat = Dialect::OpenAiChat.path();
    let headers = json!({
        "authorization": "Bearer secret",
        "content-type": "application/json",
        "x-api-key": "secret",
        "x-streamweld-capability": "read+stop",
    });
    let post = json!({
        "story": "look", "url": format!("{base}{chat}"), "method": "POST", "headers": headers, "body": CHAT,
    });
    let unknown = json!({ "story": "look", "url": format!("{base}/v1/streams/watch") });
    let seen = seen_by_page(&harness, &[post, unknown]).await;
    assert_eq!(seen[0]["status"], 200, "{seen:?}");
    let field = |name: &str| seen[0]["fields"][name].as_str().expect(name).to_owned();
    let (id, url) = (
        field("x-streamweld-stream-id"),
        field("x-streamweld-resume-url"),
    );
    assert_eq!(field("x-streamweld-durability"), "durable");
    let all = expected(&script, &first_chat(&harness), Dialect::OpenAiChat);
    let text = seen[0]["text"].as_str().expect("text");
    assert_eq!(events(text.as_bytes()), all);
    let (replay, _) = harness.client.get(&url).await.all().await;
    assert_eq!(String::from_utf8(replay).expect("UTF-8"), text);
    let stop = url.replace("/events?", "/stop?");
    let with_credentials = harness
        .client
        .with("authorization", "Bearer secret")
        .with("x-api-key", "secret");
    wait_end(&with_credentials, &id).await;
    let stop = harness.client.send("POST", &stop, "").await;
    assert_eq!(
        stop.error_code().await,
        (409, "already_terminal".to_owned())
    );
    // Errors of ours too.
    assert_eq!(seen[1]["status"], 404, "{seen:?}");
    assert!(
        seen[1]["text"]
            .as_str()
            .expect("text")
            .contains("\"not_found\"")
    );
    let mut seen = Seen::by("pages::a_listed_page_is_given_a_url_for_another");
    seen.row(&Row::new(
        CLIENT,
        "`fetch` of a listed origin with credentials and fields of ours: a chat, and an error",
        "the whole answer, its stream id and resume URL; the error",
    ));
    seen.check();
}

fn first_chat(harness: &Harness) -> streamweld_mock::Request {
    asked(&harness.mock, Dialect::OpenAiChat.path()).remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_origin_that_is_not_listed_is_refused() {
    let script = Script::tokens(20);
    let list = |config: &mut Config| {
        sign(config);
        config.edge.cors_origins = vec!["https://app.example".parse().expect("an origin")];
    };
    let harness = Setup::new(script).config(list).start().await;
    let base = format!("http://{}", harness.client.addr);
    let url = lent(&harness.client, Dialect::OpenAiChat).await;
    let chat = Dialect::OpenAiChat.path();
    let seen = seen_by_page(
        &harness,
        &[
            json!({ "story": "event_source", "url": format!("{base}{url}") }),
            json!({ "story": "look", "url": format!("{base}{url}") }),
            json!({ "story": "look", "url": format!("{base}{chat}"), "method": "POST", "body": CHAT,
                    "headers": { "content-type": "application/json" } }),
        ],
    )
    .await;
    assert_eq!(seen[0]["events"], json!([]));
    assert_eq!(seen[0]["thrown"], Value::Null);
    assert_eq!(seen[1]["thrown"], "TypeError");
    assert_eq!(seen[2]["thrown"], "TypeError");
    let requests = asked(&harness.mock, chat);
    let methods: Vec<&str> = requests
        .iter()
        .map(|request| request.method.as_str())
        .collect();
    assert_eq!(methods, ["POST", "OPTIONS"], "the page has sent nothing");
    let mut seen = Seen::by("pages::a_page_of_an_origin_that_is_not_listed_is_refused");
    seen.row(&Row::new(
        CLIENT,
        "an origin that neither the list nor the backend allows: `EventSource` and `fetch` of a signed resume URL, `POST` of a chat",
        "nothing: the browser refuses; the chat is not even sent",
    ));
    seen.check();
}

/// What is written there is what runs here.
#[test]
fn the_code_in_the_document_is_the_code_that_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/browser.md");
    let document = fs::read_to_string(path).expect("docs/browser.md is there");
    for (name, code) in [("resume.mjs", RESUME), ("watch.mjs", WATCH)] {
        let block = format!("```js\n{code}```\n");
        assert!(
            document.contains(&block),
            "docs/browser.md has another {name} than tests/clients/browser"
        );
    }
}
