//! How a server ends (protocol.md 8.4), and what the process says while it lives.

use std::fs;
use std::path::Path;
use std::time::Duration;

use streamweld_mock::{Dialect, ErrorEvent, Mock, Outcome, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Process, Response, Setup, Wire, ask, blocks, events, patience,
    texts, wait_end,
};

async fn with_grace(script: Script, grace: Duration) -> Harness {
    let setup = Setup::new(script).config(move |config| {
        config.shutdown_grace = grace;
        config.generation.durable_get = vec!["/feed".to_owned()];
    });
    setup.start().await
}

const LONG: Duration = Duration::from_secs(60);

/// Waits until the shutdown has begun.
async fn begun(admin: &Client) {
    let begun = async {
        while admin.get("/readyz").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(begun).await;
}

/// The refusal says what happened, what became of the request, and what to do.
#[track_caller]
fn check_refusal(answer: &serde_json::Value, became: &str) {
    assert_eq!(answer["error"]["code"], "shutting_down", "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    for said in [
        "is shutting down",
        became,
        "send it again",
        "new connection",
    ] {
        assert!(message.contains(said), "{said:?} is not said: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_new_begins_and_everything_else_goes_on() {
    let mut harness = with_grace(Script::tokens(20).gate_after(3, "go"), LONG).await;
    let client = harness.client.clone();
    let mut running = client.chat().await;
    let id = running.id();
    running.body.blocks(3).await;
    harness.begin_shutdown();
    begun(&harness.admin).await;

    let readyz = harness.admin.get("/readyz").await;
    assert_eq!(readyz.status, 503);
    assert_eq!(readyz.all().await.0, b"shutting down\n");
    assert_eq!(harness.admin.get("/livez").await.status, 200);
    let metrics = harness.admin.get("/metrics").await.all().await.0;
    let metrics = String::from_utf8(metrics).expect("text");
    assert!(metrics.contains("\nstreamweld_ready 0\n"), "{metrics}");

    for response in [
        client.chat().await,
        client.send("POST", "/anything", "x").await,
        client.get("/feed").await,
    ] {
        assert_eq!(response.header("retry-after"), Some("1"));
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(response.status, 503);
        check_refusal(&response.json().await, "not passed on");
    }
    assert_eq!(harness.mock.recorder().count(), 1);

    // Readers of what runs, its state, and what is no candidate.
    let cursor = client.with("last-event-id", &format!("{id}:3"));
    let again = cursor.chat().await;
    let replay = client.events(&id).await;
    assert_eq!((again.status, replay.status), (200, 200));
    assert_eq!(client.get(&format!("/v1/streams/{id}")).await.status, 200);
    assert_eq!(client.get("/echo").await.status, 200);
    assert_eq!(client.send("PUT", "/echo", "x").await.status, 200);

    harness.mock.gates().release("go");
    for response in [again, replay] {
        let (body, end) = response.all().await;
        assert_eq!(end, End::Proper);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }
    let (body, end) = running.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    harness.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_finishes_within_the_grace_time_too() {
    let mut harness = with_grace(Script::tokens(20).gate_after(3, "go"), LONG).await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    response.leave().await;
    harness.begin_shutdown();
    begun(&harness.admin).await;
    let reader = harness.client.events(&id).await;
    harness.mock.gates().release("go");
    assert_eq!(reader.all().await.1, End::Proper);
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
    harness.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_in_time_ends_as_error() {
    let harness = with_grace(Script::tokens(20).gate_after(3, "go"), Duration::ZERO).await;
    let client = harness.client.clone();
    let mut first = client.chat().await;
    let id = first.id();
    let mut body = first.body.blocks(3).await;
    let cursor = client.with("last-event-id", &format!("{id}:4"));
    let resumed = cursor.chat().await;
    let control = client.with("x-streamweld-events", "control");
    let control = control.events(&id).await;
    let recorder = harness.mock.recorder().clone();
    let shut_down = tokio::spawn(harness.shut_down());

    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Fin);
    body.extend(rest);
    let shown = blocks(&body);
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[3].id, None);
    let form = shown[3].data.clone().expect("data");
    assert!(form.contains(r#""code":"shutdown""#), "{form}");

    let (rest, end) = resumed.all().await;
    assert_eq!(end, End::Proper);
    let resumed = blocks(&rest);
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0].seq(), 5);
    assert_eq!(resumed[0].data.as_ref(), Some(&form));

    let (rest, end) = control.all().await;
    assert_eq!(end, End::Proper);
    let last = blocks(&rest).pop().expect("a block");
    assert_eq!(last.event.as_deref(), Some("streamweld.error"));
    assert!(last.data.expect("data").contains(r#""code":"shutdown""#));

    let ending = recorder.wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    patience(shut_down).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_head_in_time_is_refused() {
    let harness = with_grace(Script::tokens(3).head_gate("head"), Duration::ZERO).await;
    let client = harness.client.clone();
    let request = client.request("POST", "/v1/chat/completions", CHAT);
    let stream = client.begin(&request).await;
    harness
        .mock
        .recorder()
        .wait_requests(1)
        .await
        .expect("sent");
    let shut_down = tokio::spawn(harness.shut_down());
    let response = patience(Response::read(stream)).await.expect("an answer");
    assert_eq!(response.status, 503);
    check_refusal(&response.json().await, "cancelled");
    patience(shut_down).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    let harness = with_grace(Script::tokens(3), LONG).await;
    let echo = "GET /echo HTTP/1.1\r\nhost: h\r\n\r\n";
    let mut idle = Wire::open(&harness.client, echo).await;
    idle.head().await;
    let silent = Wire::open(&harness.client, "").await;
    harness.shut_down().await;
    idle.rest().await;
    silent.rest().await;
}

/// A mock, and the real binary in front of it.
async fn process(script: Script, arguments: &[&str]) -> (Mock, Process) {
    let mock = Mock::start(script).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let process = Process::serve(&[&[backend.as_str()], arguments].concat());
    (mock, process)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_process_in_good_order() {
    for signal in ["TERM", "INT"] {
        let (mock, mut process) = process(Script::tokens(20).gate_after(3, "go"), &[]).await;
        let client = process.client().await;
        let admin = process.admin().await;
        let mut response = client.chat().await;
        response.body.blocks(3).await;
        process.signal(signal);
        begun(&admin).await;
        assert_eq!(client.chat().await.status, 503);
        mock.gates().release("go");
        let (body, end) = response.body.rest().await;
        assert_eq!(end, End::Proper, "{signal}");
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
        let (status, output) = process.ended().await;
        assert_eq!(status.code(), Some(0), "{signal}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_grace_time_the_process_ends_as_well_with_code_0() {
    let script = Script::tokens(20).gate_after(3, "go");
    let (_mock, mut process) = process(script, &["--shutdown-grace=50ms"]).await;
    let mut response = process.client().await.chat().await;
    response.body.blocks(3).await;
    process.signal("TERM");
    let (body, end) = response.body.rest().await;
    assert_eq!(end, End::Fin);
    let form = blocks(&body).pop().and_then(|block| block.data);
    assert!(form.is_some_and(|form| form.contains("shutdown")));
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    for (first, second, code) in [
        ("TERM", "TERM", 143),
        ("INT", "INT", 130),
        ("TERM", "INT", 130),
    ] {
        let (_mock, mut process) = process(Script::tokens(20).gate_after(3, "go"), &[]).await;
        let mut response = process.client().await.chat().await;
        response.body.blocks(3).await;
        let admin = process.admin().await;
        process.signal(first);
        begun(&admin).await;
        process.signal(second);
        let (status, output) = process.ended().await;
        assert_eq!(status.code(), Some(code), "{first} {second}: {output}");
        assert_ne!(
            response.body.rest().await.1,
            End::Proper,
            "a part is no whole"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_shows_what_is_in_effect_and_where_it_listens() {
    let folder = std::env::temp_dir().join(format!("streamweld-token-{}", std::process::id()));
    fs::write(&folder, "planted-admin-token\n").expect("a file");
    let token = format!("--admin-token-file={}", folder.display());
    let arguments = [
        token.as_str(),
        "--backend-name=my-backend",
        "--retention=7m",
        "--orphan-policy=cancel_after=42s",
        "--journal-total=3MiB",
        "--journal-per-generation=1MiB",
    ];
    let (_mock, mut process) = process(Script::tokens(3), &arguments).await;
    let admin = process.admin().await;
    assert_eq!(admin.get("/admin/streams").await.status, 401);
    let operator = admin.with("authorization", "Bearer planted-admin-token");
    assert_eq!(operator.get("/admin/streams").await.status, 200);
    process.signal("TERM");
    let (_, output) = process.ended().await;
    fs::remove_file(&folder).expect("it is ours");
    for shown in ["my-backend", "7m", "cancel_after=42s", "3MiB"] {
        assert!(output.contains(shown), "{shown}: {output}");
    }
    for listener in ["data", "admin"] {
        let line = format!("{listener} listener on http://127.0.0.1:");
        assert_eq!(output.matches(&line).count(), 1, "{output}");
    }
    assert!(!output.contains("planted"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_with_a_password_in_its_url_is_refused_and_not_repeated() {
    let url = "http://planted-user:planted-password@127.0.0.1:1";
    let process = Process::serve(&[&format!("--backend={url}")]);
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(2), "{output}");
    assert!(output.contains("--backend"), "{output}");
    assert!(!output.contains("planted"), "{output}");
}

/// Everything that somebody confides is planted here, and looked for in all that the process writes.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_confided_is_written_at_any_level() {
    let error =
        Script::text("planted-output and more").end(streamweld_mock::End::ErrorAfter(ErrorEvent {
            events: 2,
            message: "planted-failure".to_owned(),
            ..ErrorEvent::default()
        }));
    let keys = Path::new(env!("CARGO_TARGET_TMPDIR")).join("url-keys");
    fs::write(&keys, "planted-".repeat(4)).expect("a file");
    for format in ["text", "json"] {
        let arguments = [
            "--log-level=trace",
            &format!("--log-format={format}"),
            "--credential-header=x-own",
            "--durable-get=/feed",
            &format!("--url-signing-key-file={}", keys.display()),
        ];
        let (mock, mut process) = process(Script::text("planted-output"), &arguments).await;
        let client = process.client().await;
        let bare = client.clone();
        let client = client
            .with("authorization", "Bearer planted-bearer")
            .with("x-api-key", "planted-key")
            .with("x-own", "planted-own")
            .with("cookie", "planted-cookie")
            .with("idempotency-key", "planted-idempotency");
        let prompt = |text: &str| {
            format!(
                r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"planted-prompt {text}"}}]}}"#
            )
        };
        let path = Dialect::OpenAiChat.path();
        let response = client.send("POST", path, &prompt("a")).await;
        let id = response.id();
        let url = response.header("x-streamweld-resume-url").expect("a URL");
        let (url, capability) = (
            url.to_owned(),
            url.split_once("cap=r.").expect("it").1.to_owned(),
        );
        let (body, end) = response.all().await;
        assert_eq!(end, End::Proper);
        assert!(texts(&body).contains("planted-output"));
        wait_end(&client, &id).await;
        client.events(&id).await.all().await;
        assert_eq!(bare.get(&url).await.status, 200);
        for (method, target) in [
            ("GET", format!("{url}&last_event_id=99")),
            ("GET", format!("{url}x")),
            ("POST", url.replace("/events", "/stop")),
            ("DELETE", url.clone()),
        ] {
            bare.send(method, &target, "").await.all().await;
        }
        let page = bare.with("origin", "https://app.example");
        let asks = page.with("access-control-request-method", "GET");
        asks.send("OPTIONS", &url, "").await.all().await;
        // Refusals, failures, a broken client, a body that is nobody's, a stop, what is passed through.
        client.send("POST", path, &prompt("b")).await.all().await;
        bare.events(&id).await.all().await;
        bare.with("last-event-id", "planted-foreign")
            .chat()
            .await
            .all()
            .await;
        mock.push_script(error.clone());
        ask(&bare, Dialect::OpenAiChat).await.all().await;
        mock.push_script(Script::error(500));
        bare.send("POST", path, &prompt("c")).await.all().await;
        mock.push_script(Script::tokens(20).rst_after(3));
        bare.send("POST", path, &prompt("d")).await.all().await;
        bare.with("x-streamweld-orphan-policy", "planted-policy")
            .chat()
            .await
            .all()
            .await;
        bare.with("x-streamweld-events", "planted-events")
            .chat()
            .await
            .all()
            .await;
        bare.send("PUT", "/echo/planted-path?planted-query=1", "planted-body")
            .await
            .all()
            .await;
        bare.get("/feed?planted-query=1").await.all().await;
        Wire::open(&bare, "POST / HTTP/1.1\r\nplanted-line\r\n\r\n")
            .await
            .rest()
            .await;
        mock.shutdown().await;
        assert_eq!(client.get("/planted-path?planted-query").await.status, 502);
        process.signal("TERM");
        let (status, output) = process.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(output.contains(&id), "the id is what logs speak of");
        let lines: Vec<_> = output
            .lines()
            .filter(|line| line.contains("planted") || line.contains(&capability))
            .collect();
        assert!(lines.is_empty(), "{format}: {lines:#?}");
    }
}
