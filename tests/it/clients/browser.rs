//! The `EventSource` and `fetch` of Chromium, in a page that the mock serves through the proxy.
//!
//! No driver stands between: the page plays its story and posts what it saw to the mock.

use std::time::Duration;

use serde_json::Value;
use streamweld_mock::{Cut, Dialect, Direction, FaultRelay, RelayPlan, RelayStep, Script};
use streamweld_server::config::ContentCoding;
use streamweld_tests::{CHAT, Harness, Setup, events};

use super::chromium::{Browser, CLIENT, asked, report};
use super::scene::{ANTHROPIC_EVENTS, events_of, expected, left_alone, with_feed};
use super::seen::{Row, Seen};

/// What the page saw, playing `story` behind `relay`.
async fn seen_by_page(
    harness: &Harness,
    relay: &FaultRelay,
    story: &str,
    more: &[(&str, &str)],
) -> Value {
    let browser = open(harness, relay, story, more).await;
    let seen = report(&harness.mock).await;
    drop(browser);
    seen
}

async fn open(
    harness: &Harness,
    relay: &FaultRelay,
    story: &str,
    more: &[(&str, &str)],
) -> Browser {
    let page = Script {
        content_type: Some("text/html".to_owned()),
        ..Script::answer(200, include_str!("../../clients/browser/page.html"))
    };
    harness.mock.set_script_at("/page", page);
    let report = format!("{}/echo/report", harness.mock.url());
    let query: Vec<String> = [("story", story), ("report", &report)]
        .iter()
        .chain(more)
        .map(|(name, value)| {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            format!("{name}={encoded}")
        })
        .collect();
    Browser::open(&format!("{}/page?{}", relay.url(), query.join("&"))).await
}

/// A network that passes 6000 bytes of the answers of each connection, and then closes it. (A reset could take what was
/// not read yet with it, the head included: the page would have no cursor, and begin anew.)
async fn short_lived(harness: &Harness) -> FaultRelay {
    let relay = faithful(harness).await;
    relay.set_plan(
        RelayPlan::new()
            .to_client(RelayStep::Pass(6000))
            .to_client(RelayStep::Cut(Cut::Fin)),
    );
    relay
}

async fn faithful(harness: &Harness) -> FaultRelay {
    FaultRelay::start(harness.client.addr)
        .await
        .expect("a port")
}

/// The data of its events; checks that ids grow and that it closed itself.
#[track_caller]
fn data_of(seen: &Value) -> Vec<String> {
    let pairs = seen["events"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let seqs: Vec<u64> = pairs
        .iter()
        .map(|pair| {
            let id = text(&pair[1]);
            id.split_once(':').expect("ours").1.parse().expect("a seq")
        })
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let states = seen["states"].as_array().expect("a list");
    assert_eq!(states.last(), Some(&Value::from(2)), "CLOSED: {states:?}");
    pairs.iter().map(|pair| text(&pair[0])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_event_source_resumes_to_the_end_and_stops() {
    let mut seen = Seen::by("browser::its_event_source_resumes_to_the_end_and_stops");
    let script = Script::tokens(60);
    let harness = Harness::start(script.clone()).await;
    let id = left_alone(&harness, Dialect::OpenAiChat).await;
    let relay = short_lived(&harness).await;
    let path = events_of(&id);
    let told = seen_by_page(&harness, &relay, "event_source", &[("path", &path)]).await;
    let request = &asked(&harness.mock, Dialect::OpenAiChat.path())[0];
    assert_eq!(
        data_of(&told),
        expected(&script, request, Dialect::OpenAiChat)
    );
    assert!(relay.accepted() >= 3, "it was cut");
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` on the resume URL, each connection cut after 6000 bytes",
        "every event once, then closed",
    ));

    let script = Script {
        retry: Some(50),
        ..Script::tokens(400)
    };
    let harness = with_feed(&script).await;
    let relay = short_lived(&harness).await;
    let told = seen_by_page(&harness, &relay, "event_source", &[("path", "/feed")]).await;
    let requests = asked(&harness.mock, "/feed");
    assert_eq!(
        data_of(&told),
        expected(&script, &requests[0], Dialect::Generic)
    );
    assert_eq!(requests.len(), 1);
    assert!(relay.accepted() >= 3, "it was cut");
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` on a durable `GET` feed, each connection cut after 6000 bytes",
        "every event once, then closed; the backend was asked once",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn its_event_source_reads_what_is_compressed() {
    let script = Script::tokens(400);
    let harness = Setup::new(script.clone())
        .config(|config| config.edge.compress = ContentCoding::ALL.to_vec())
        .start()
        .await;
    let path = events_of(&left_alone(&harness, Dialect::OpenAiChat).await);
    let relay = faithful(&harness).await;
    let told = seen_by_page(&harness, &relay, "event_source", &[("path", &path)]).await;
    let request = &asked(&harness.mock, Dialect::OpenAiChat.path())[0];
    let all = expected(&script, request, Dialect::OpenAiChat);
    assert_eq!(data_of(&told), all);
    let plain: usize = all.iter().map(String::len).sum();
    // The page with them.
    let passed = relay.passed(Direction::ToClient);
    assert!(passed < plain as u64 / 2, "{passed} of {plain}");
    let mut seen = Seen::by("browser::its_event_source_reads_what_is_compressed");
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` on the resume URL, `--compress gzip,br,zstd`",
        "every event once, in less than half of the bytes",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn its_event_source_sees_an_error_once_and_stops() {
    let mut seen = Seen::by("browser::its_event_source_sees_an_error_once_and_stops");
    for (dialect, story) in [
        (
            Dialect::OpenAiChat,
            "`EventSource` on the resume URL, chat, backend fails",
        ),
        (
            Dialect::AnthropicMessages,
            "`EventSource` on the resume URL, Messages, backend fails",
        ),
    ] {
        let script = Script::tokens(60).error_after(40);
        let harness = Harness::start(script.clone()).await;
        let id = left_alone(&harness, dialect).await;
        let relay = short_lived(&harness).await;
        let names = ANTHROPIC_EVENTS.join(",");
        let more = [("path", events_of(&id)), ("names", names)];
        let more = more.each_ref().map(|(name, value)| (*name, value.as_str()));
        let told = seen_by_page(&harness, &relay, "event_source", &more).await;
        let mut data = data_of(&told);
        let error = data.pop().expect("an event");
        assert!(error.contains("the mock engine failed"), "{error}");
        let request = &asked(&harness.mock, dialect.path())[0];
        assert_eq!(data, expected(&script, request, dialect));
        seen.row(&Row::new(
            CLIENT,
            story,
            "every event once, then the error once, then closed",
        ));
    }

    let script = Script {
        retry: Some(50),
        ..Script::tokens(60)
    }
    .fin_after(40);
    let harness = with_feed(&script).await;
    let relay = faithful(&harness).await;
    let told = seen_by_page(&harness, &relay, "event_source", &[("path", "/feed")]).await;
    let requests = asked(&harness.mock, "/feed");
    assert_eq!(
        data_of(&told),
        expected(&script, &requests[0], Dialect::Generic)
    );
    assert_eq!(requests.len(), 1);
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` on a durable `GET` feed, backend fails",
        "every event once, no error event, then closed",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_it_sends_again_unseen_joins() {
    let mut seen = Seen::by("browser::a_post_that_it_sends_again_unseen_joins");
    let path = Dialect::OpenAiChat.path();
    let script = Script::tokens(20).head_gate("begin");
    let harness = Harness::start(script.clone()).await;
    let relay = faithful(&harness).await;
    let browser = open(&harness, &relay, "post", &[("path", path), ("body", CHAT)]).await;
    let recorder = harness
        .mock
        .recorder()
        .with_deadline(Duration::from_secs(60));
    recorder
        .wait_until(|recorder| {
            recorder
                .requests()
                .iter()
                .any(|request| request.path() == path)
        })
        .await
        .expect("the chat");
    let before = relay.accepted();
    relay.cut_connections(Cut::Rst);
    relay
        .wait_accepted(before + 1)
        .await
        .expect("it sends it again");
    harness.mock.gates().release("begin");
    let told = report(&harness.mock).await;
    drop(browser);
    let requests = asked(&harness.mock, path);
    assert_eq!(requests.len(), 1, "the backend was asked twice");
    let body = told["text"].as_str().expect("text");
    assert_eq!(
        events(body.as_bytes()),
        expected(&script, &requests[0], Dialect::OpenAiChat)
    );
    assert_eq!(told["error"], Value::Null);
    seen.row(&Row::new(
        CLIENT,
        "`fetch` of a chat, connection lost before the answer",
        "the whole answer, after a repeat that neither the page nor the backend saw",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_throws_in_its_fetch() {
    let mut seen = Seen::by("browser::a_cut_answer_throws_in_its_fetch");
    let path = Dialect::OpenAiChat.path();
    let script = Script::tokens(20).fin_after(10);
    let harness = Harness::start(script.clone()).await;
    let relay = faithful(&harness).await;
    let more = [("path", path), ("body", CHAT)];
    let told = seen_by_page(&harness, &relay, "post", &more).await;
    assert_eq!(told["error"], "TypeError");
    let id = told["id"].as_str().expect("an id");
    let body = told["text"].as_str().expect("text");
    let (replay, _) = harness.client.events(id).await.all().await;
    let replay = String::from_utf8(replay).expect("UTF-8");
    let (good, _) = replay.split_once("data: {\"error\"").expect("the form");
    match body.strip_prefix(good) {
        // A stream that fails drops what its page has not taken yet.
        None => assert!(good.starts_with(body), "{body}"),
        Some(form) => assert!(
            form.is_empty() || form.contains("streamweld_error"),
            "{body}"
        ),
    }
    seen.row(&Row::new(
        CLIENT,
        "`fetch` of a chat, backend fails",
        "reading throws `TypeError`; what was not read by then is lost, the error form too",
    ));
    seen.check();
}

/// Where the mock serves the page itself: another origin than the proxy's.
async fn elsewhere(harness: &Harness) -> FaultRelay {
    FaultRelay::start(harness.mock.addr())
        .await
        .expect("a port")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_resumes() {
    let mut seen = Seen::by("browser::a_page_of_another_origin_resumes");
    let script = Script {
        retry: Some(50),
        ..Script::tokens(400)
    };
    let allowed = script.clone().header("access-control-allow-origin", "*");
    let harness = with_feed(&allowed).await;
    let relay = short_lived(&harness).await;
    let path = format!("{}/feed", relay.url());
    let page = elsewhere(&harness).await;
    let told = seen_by_page(&harness, &page, "event_source", &[("path", &path)]).await;
    let requests = asked(&harness.mock, "/feed");
    assert_eq!(
        data_of(&told),
        expected(&allowed, &requests[0], Dialect::Generic)
    );
    assert_eq!(requests.len(), 1);
    assert!(relay.accepted() >= 3, "it was cut");
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` of another origin, which the backend allows, each connection cut after 6000 bytes",
        "every event once, then closed; the backend was asked once",
    ));

    // The backend has allowed somebody else.
    let other = script.header("access-control-allow-origin", "https://other.example");
    let harness = with_feed(&other).await;
    let path = format!("http://{}/feed", harness.client.addr);
    let page = elsewhere(&harness).await;
    let told = seen_by_page(&harness, &page, "event_source", &[("path", &path)]).await;
    assert_eq!(data_of(&told), [""; 0]);
    seen.row(&Row::new(
        CLIENT,
        "`EventSource` of another origin, which the backend does not allow",
        "nothing: the browser refuses the answer, and it closes",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_learns_its_stream_and_uses_it() {
    let mut seen = Seen::by("browser::a_page_of_another_origin_learns_its_stream_and_uses_it");
    let path = Dialect::OpenAiChat.path();
    let allow = |script: Script| {
        script.header("access-control-allow-origin", "*").header(
            "access-control-allow-headers",
            "content-type, last-event-id",
        )
    };
    let harness = Harness::start(allow(Script::answer(204, ""))).await;
    let script = allow(Script {
        dialect: Some(Dialect::OpenAiChat),
        ..Script::tokens(20)
    });
    harness.mock.set_script_at(path, script.clone());
    let page = elsewhere(&harness).await;
    let base = format!("http://{}", harness.client.addr);
    let more = [("base", &*base), ("path", path), ("body", CHAT)];
    let told = seen_by_page(&harness, &page, "post_and_look", &more).await;
    let mut requests = asked(&harness.mock, path);
    requests.retain(|request| request.method == "POST");
    let all = expected(&script, &requests[0], Dialect::OpenAiChat);
    let text = |name: &str| told[name].as_str().expect("text").to_owned();
    assert_eq!(events(text("text").as_bytes()), all);
    // It stood at the first event, entry 2.
    assert_eq!(events(text("rest").as_bytes()), all[1..]);
    assert_eq!(told["state"]["stream_id"], told["id"]);
    assert_eq!(told["stop"]["error"]["code"], "already_terminal");
    assert_eq!(told["ahead"]["error"]["code"], "cursor_ahead");
    assert_eq!(told["nothing"], 204);
    assert_eq!(requests.len(), 1);
    seen.row(&Row::new(
        CLIENT,
        "`fetch` of another origin, which the backend allows: chat, then rest, state and stop of its stream",
        "the stream id, the rest, state and errors; preflights are answered by the backend",
    ));
    seen.check();
}
