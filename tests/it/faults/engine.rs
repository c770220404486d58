//! Engines that die, hang, refuse or give up (rows 1 to 6, 8 and 13).

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{
    Cut, Dialect, End as MockEnd, ErrorEvent, FaultRelay, FullBacklog, Mock, Outcome, Raw, Script,
};
use streamweld_tests::{End, Harness, Setup, Shown, ask, blocks, events, without_ids};
use streamweld_upstream::Backend;
use tokio::time::Instant;

use super::{in_front_of, reaches, stop};

#[tokio::test(flavor = "multi_thread")]
async fn row_01_engine_killed_after_every_event() {
    let script = || Script::tokens(3).id("x");
    for k in 0..=5 {
        let mock = Mock::start(script().gate_after(k, "kill"))
            .await
            .expect("a port");
        let harness = in_front_of(&mock.url()).start().await;
        let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let mut body = response.body.blocks(k).await;
        mock.kill(Cut::Rst).await;
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        let shown = events(&body);
        let state = harness
            .client
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        // Five events: the role, three of text, the finish. After it the answer is whole.
        if k == 5 {
            assert_eq!((shown.len(), end), (5, End::Proper));
            assert_eq!(state["terminal"]["end"], "cut");
        } else {
            assert_eq!((shown.len(), end), (k + 1, End::Fin));
            assert_eq!(state["terminal"]["code"], "truncated");
            assert!(shown[k].contains("streamweld_error"));
        }
        assert!(!shown.contains(&"[DONE]".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_02_engine_told_to_terminate_aborts_with_a_false_success() {
    for k in 0..=4 {
        let harness = Harness::start(Script::tokens(8).abort_after(k)).await;
        let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
        let expected = shown.expected(&harness, &Script::tokens(8).abort_after(k));
        assert_eq!(expected.len(), k);
        shown.assert_failed(&expected, "aborted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_03_engine_hangs_and_its_late_bytes_are_nobodys() {
    let harness = Setup::new(Script::tokens(8).gate_after(3, "hang"))
        .config(|config| config.edge.heartbeat = Duration::from_millis(40))
        .start()
        .await;
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    for _ in 0..5 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    let (status, stopped) = stop(&harness.client, &id).await;
    assert_eq!((status, &stopped["status"]), (200, &json!("stopped")));
    harness.mock.gates().release("hang");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    assert_eq!(response.body.rest().await.1, End::Proper);
    let state = reaches(&harness.client, &id, "stopped").await;
    assert_eq!(state["last_seq"], 5, "open, three events, the terminal");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_04_reset_inside_a_character_or_line_at_every_byte() {
    let text = |text| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let wire = format!("data: {}\n\ndata: {}\n\n", text("日"), text("🦀"));
    let harness = Harness::start(Script::new()).await;
    for n in 0..=wire.len() {
        let mut chunk = format!("{n:x}\r\n").into_bytes();
        chunk.extend_from_slice(&wire.as_bytes()[..n]);
        chunk.extend_from_slice(b"\r\n");
        let raw = Raw::new().stream_head();
        let raw = if n == 0 { raw } else { raw.bytes(chunk) };
        harness.mock.push_script(Script::raw(raw.rst()));
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let (body, end) = response.all().await;
        assert_eq!(end, End::Fin, "{n} bytes");
        let mut shown = blocks(&body);
        let form = shown.pop().expect("the error form");
        assert!(form.data.expect("data").contains("truncated"));
        let whole = wire.as_bytes()[..n]
            .windows(2)
            .filter(|pair| pair == b"\n\n")
            .count();
        let whole = blocks(wire.as_bytes()).into_iter().take(whole);
        assert_eq!(without_ids(&shown), whole.collect::<Vec<_>>(), "{n} bytes");
        let (replay, _) = harness.client.events(&id).await.all().await;
        assert_eq!(blocks(&replay).len(), shown.len() + 1, "{n} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_05_close_without_a_finish() {
    for end in [MockEnd::NoFinish, MockEnd::SentinelOnly] {
        let harness = Harness::start(Script::tokens(4).end(end)).await;
        let (body, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
        assert_eq!(end, End::Fin);
        let shown = events(&body);
        assert_eq!(shown.len(), 6);
        assert!(shown[5].contains("truncated") && !shown.contains(&"[DONE]".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_06_half_open_engine_is_left_when_asked_to() {
    let mock = Mock::start(Script::tokens(8).gate_after(3, "more"))
        .await
        .expect("a port");
    let relay = FaultRelay::start(mock.addr()).await.expect("a port");
    let harness = in_front_of(&relay.url())
        .config({
            let url = relay.url().parse().expect("a URL");
            move |config| {
                config.backends = vec![Backend::named("llm", url).into()];
                config.edge.heartbeat = Duration::from_millis(40);
            }
        })
        .start()
        .await;
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    relay.pause();
    mock.gates().release("more");
    for _ in 0..3 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    assert_eq!(stop(&harness.client, &id).await.0, 200);
    assert_eq!(response.body.rest().await.1, End::Proper);
    relay.resume();
    relay.wait_open(0).await.expect("the socket is not leaked");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_08_errors_before_and_after_the_head() {
    for status in [429, 503] {
        let harness = Harness::start(Script::error(status).header("retry-after", "3")).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("retry-after"), Some("3"));
        assert_eq!(harness.mock.recorder().count(), 1);
    }
    let error = ErrorEvent {
        message: "overloaded".to_owned(),
        code: 503,
        sentinel: true,
        ..ErrorEvent::default()
    };
    let harness = Harness::start(Script::tokens(3).end(MockEnd::ErrorAfter(error))).await;
    let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
    let terminal = shown.assert_failed(&[], "upstream_error");
    assert_eq!(terminal["upstream"]["code"], "503");
    assert_eq!(terminal["upstream"]["message"], "overloaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_an_accept_queue_that_is_full_costs_no_more_than_the_connect_timeout() {
    let backlog = FullBacklog::bind().expect("a port");
    let url = format!("http://{}", backlog.addr()).parse().expect("a URL");
    let harness = Setup::new(Script::new())
        .config(move |config| {
            config.backends = vec![Backend::named("llm", url).into()];
            config.upstream.connect_timeout = Duration::from_millis(200);
        })
        .start()
        .await;
    let begun = Instant::now();
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(
        response.error_code().await,
        (504, "backend_timeout".to_owned())
    );
    assert!(begun.elapsed() >= Duration::from_millis(200));
}
