//! What operators ask and do (protocol.md 12).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Outcome, Script};
use streamweld_server::config::Secret;
use streamweld_tests::{CHAT, Client, End, Harness, Setup, ask, blocks, patience, wait_end};

async fn text(client: &Client, path: &str) -> (u16, String) {
    let response = client.get(path).await;
    let status = response.status;
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (status, String::from_utf8(body).expect("text"))
}

/// The value of one line of the metrics; 0 where there is none.
async fn metric(harness: &Harness, line: &str) -> i64 {
    streamweld_tests::metric(&harness.admin, line).await
}

async fn ended(harness: &Harness, outcome: &str, code: &str) -> i64 {
    let line =
        format!(r#"streamweld_generations_ended_total{{outcome="{outcome}",code="{code}"}}"#);
    metric(harness, &line).await
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_answer() {
    let mut harness = Harness::start(Script::tokens(3).head_gate("head")).await;
    assert_eq!(
        text(&harness.admin, "/livez").await,
        (200, "ok\n".to_owned())
    );
    assert_eq!(
        text(&harness.admin, "/readyz").await,
        (200, "ok\n".to_owned())
    );
    assert_eq!(harness.admin.send("HEAD", "/livez", "").await.status, 200);
    for path in ["/livez", "/readyz", "/metrics"] {
        let response = harness.admin.send("POST", path, "").await;
        assert_eq!(response.header("allow"), Some("GET, HEAD"));
        let answer = response.error_code().await;
        assert_eq!(answer, (405, "method_not_allowed".to_owned()));
    }
    harness.begin_shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_404() {
    let harness = Harness::start(Script::tokens(3)).await;
    for path in [
        "/",
        "/livez/",
        "/healthz",
        "/v1/models",
        "/admin",
        "/admin/",
        "/admin/streams/x/y",
        "/admin/streams/x/stop/y",
        "/admin/config",
        "/admin/backends/x/y",
        "/admin/backends/x/drain/y",
    ] {
        let answer = harness.admin.get(path).await.error_code().await;
        assert_eq!(answer, (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(harness.mock.recorder().count(), 0, "nothing is forwarded");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_listener_is_not_the_admin_listener() {
    let harness = Harness::start(Script::tokens(3)).await;
    for path in ["/livez", "/readyz", "/metrics", "/admin/streams"] {
        assert_eq!(harness.client.get(path).await.status, 404, "{path}");
    }
    assert_eq!(harness.mock.recorder().count(), 4, "the backend's business");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_happens() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = &harness.client;
    let started =
        r#"streamweld_generations_started_total{dialect="openai_chat",durability="durable"}"#;
    assert_eq!(metric(&harness, started).await, 0);
    assert_eq!(metric(&harness, "streamweld_ready").await, 1);

    let done = ask(client, Dialect::OpenAiChat).await;
    let id = done.id();
    done.all().await;
    wait_end(client, &id).await;
    assert_eq!(ended(&harness, "done", "").await, 1);
    assert_eq!(metric(&harness, "streamweld_events_total").await, 6);
    assert_eq!(
        metric(&harness, "streamweld_readers_attached_total").await,
        1
    );
    client.events(&id).await.all().await;
    assert_eq!(
        metric(&harness, "streamweld_readers_attached_total").await,
        2
    );
    let finished = r#"streamweld_journal_generations{state="finished"}"#;
    assert_eq!(metric(&harness, finished).await, 1);

    harness.mock.push_script(Script::tokens(3).error_after(2));
    ask(client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(ended(&harness, "error", "upstream_error").await, 1);

    harness
        .mock
        .push_script(Script::tokens(3).gate_after(2, "go"));
    let running = ask(client, Dialect::OpenAiChat).await;
    let id = running.id();
    assert_eq!(metric(&harness, "streamweld_generations_running").await, 1);
    assert_eq!(metric(&harness, "streamweld_readers").await, 1);
    let live = r#"streamweld_journal_generations{state="live"}"#;
    assert_eq!(metric(&harness, live).await, 1);
    let bytes = metric(&harness, "streamweld_journal_bytes").await;
    assert!(bytes > 1_000, "{bytes}");
    client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await;
    assert_eq!(ended(&harness, "stopped", "").await, 1);
    assert_eq!(metric(&harness, live).await, 0);
    assert_eq!(metric(&harness, started).await, 3);

    client.events("01jcv5t0q4e8x2m7n9p3r6s1ab").await;
    let refused = r#"streamweld_requests_refused_total{code="stream_not_found"}"#;
    assert_eq!(metric(&harness, refused).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_what_a_scraper_reads() {
    let harness = Harness::start(Script::tokens(3)).await;
    harness.client.chat().await.all().await;
    let response = harness.admin.get("/metrics").await;
    let media = response.header("content-type").expect("a type").to_owned();
    assert!(media.starts_with("application/openmetrics-text"), "{media}");
    let (body, _) = response.all().await;
    let body = String::from_utf8(body).expect("text");
    assert!(body.ends_with("# EOF\n"));
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("name and value");
        let known = name.starts_with("streamweld_") || name.starts_with("process_");
        assert!(known, "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|state| state["stream_id"].as_str().expect("an id"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_newest_first_filtered_and_bounded() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = harness.client.with("authorization", "Bearer user");
    let empty = harness.admin.get("/admin/streams").await.json().await;
    assert_eq!(empty, json!({"object":"list","data":[]}));

    let mut made = Vec::new();
    for script in [
        Script::tokens(3),
        Script::tokens(3).error_after(2),
        Script::tokens(3).gate_after(2, "go"),
        Script::tokens(3).gate_after(2, "go"),
    ] {
        // Ids begin with their millisecond.
        tokio::time::sleep(Duration::from_millis(3)).await;
        harness.mock.push_script(script);
        let response = ask(&client, Dialect::OpenAiChat).await;
        made.push((response.id(), response));
    }
    let stopped = made[3].0.clone();
    client
        .send("POST", &format!("/v1/streams/{stopped}/stop"), "")
        .await;
    for (id, _) in &made[..2] {
        wait_end(&client, id).await;
    }
    let made: Vec<_> = made.iter().map(|(id, _)| id.as_str()).rev().collect();

    let list = |query: &'static str| {
        let admin = harness.admin.clone();
        async move {
            admin
                .get(&format!("/admin/streams{query}"))
                .await
                .json()
                .await
        }
    };
    let all = list("").await;
    assert_eq!(all["object"], "list");
    assert_eq!(ids(&all), made);
    for (status, at) in [("stopped", 0), ("streaming", 1), ("error", 2), ("done", 3)] {
        let query: &'static str = match status {
            "stopped" => "?status=stopped",
            "streaming" => "?status=streaming",
            "error" => "?status=error&limit=5",
            _ => "?limit=1&status=done",
        };
        let found = list(query).await;
        assert_eq!(ids(&found), [made[at]], "{query}");
        assert_eq!(found["data"][0]["status"], status);
    }
    assert_eq!(ids(&list("?limit=2").await), made[..2]);
    assert_eq!(ids(&list("?limit=1000").await), made);
    for bad in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?limit=",
        "?status=x",
        "?status=",
        "?older_than=5",
        "?older_than=",
        "?model=%ff",
    ] {
        let path = format!("/admin/streams{bad}");
        let answer = harness.admin.get(&path).await.error_code().await;
        assert_eq!(answer, (400, "invalid_parameter".to_owned()), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_filtered_by_model_backend_and_age() {
    let harness = Harness::start(Script::tokens(3)).await;
    let made = async |model: &str| {
        let body = CHAT.replace("\"m\"", &format!("\"{model}\""));
        let path = "/v1/chat/completions";
        let response = harness.client.send("POST", path, &body).await;
        let id = response.id();
        response.all().await;
        wait_end(&harness.client, &id).await;
        id
    };
    let list = async |query: &str| {
        let path = format!("/admin/streams?{query}");
        harness.admin.get(&path).await.json().await
    };
    let first = made("org/one two").await;
    let old = "older_than=500ms";
    let has_aged = async { while ids(&list(old).await).is_empty() {} };
    patience(has_aged).await;
    // Of some that are made just now none is as old yet, unless this machine was held up.
    let mut young = Vec::new();
    loop {
        let begun = Instant::now();
        young.push(made("other").await);
        let aged = list(old).await;
        if begun.elapsed() < Duration::from_millis(500) {
            assert!(!ids(&aged).contains(&young[young.len() - 1].as_str()));
            assert!(ids(&aged).contains(&first.as_str()));
            break;
        }
    }
    for query in [
        "model=org%2Fone%20two",
        "model=org/one%20two&backend=llm&status=done",
        "older_than=0s&model=org/one%20two",
    ] {
        assert_eq!(ids(&list(query).await), [&first], "{query}");
    }
    assert_eq!(ids(&list("backend=llm").await).len(), young.len() + 1);
    for query in [
        "model=org",
        "model=",
        "backend=l",
        "older_than=1h",
        "model=org/one%20two&status=error",
    ] {
        assert!(ids(&list(query).await).is_empty(), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_shown_without_the_users_credential() {
    let harness = Harness::start(Script::text("the secret output")).await;
    let client = harness.client.with("authorization", "Bearer user-secret");
    let response = ask(&client, Dialect::OpenAiChat).await;
    let id = response.id();
    response.all().await;
    let users = wait_end(&client, &id).await;
    let path = format!("/admin/streams/{id}");
    let (status, shown) = text(&harness.admin, &path).await;
    assert_eq!(status, 200);
    assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), users);
    for secret in ["secret", "output", "Bearer"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for (id, answer) in [
        ("01jcv5t0q4e8x2m7n9p3r6s1ab", (404, "stream_not_found")),
        ("01JCV5T0Q4E8X2M7N9P3R6S1AB", (400, "invalid_stream_id")),
        ("x", (400, "invalid_stream_id")),
    ] {
        let path = format!("/admin/streams/{id}");
        let (status, code) = harness.admin.get(&path).await.error_code().await;
        assert_eq!((status, code.as_str()), answer, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_stops_and_sees_no_text() {
    let harness = Harness::start(Script::tokens(20).gate_after(3, "go")).await;
    let client = harness.client.with("authorization", "Bearer user");
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    let path = format!("/admin/streams/{id}/stop");
    let stopped = harness.admin.send("POST", &path, "").await.json().await;
    assert_eq!(stopped["object"], "streamweld.stop");
    assert_eq!(stopped["status"], "stopped");
    assert_eq!(stopped["terminal"]["kind"], "stopped");
    assert!(stopped.get("text").is_none(), "{stopped}");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest).len(), 2, "a finish and the sentinel");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    // By whom, a control reader is told.
    let control = client.with("x-streamweld-events", "control");
    let (body, _) = control.events(&id).await.all().await;
    let last = blocks(&body).pop().expect("a block");
    assert_eq!(last.event.as_deref(), Some("streamweld.stopped"));
    assert!(last.data.expect("data").contains(r#""by":"admin""#));
    // Again it gives the same; for one that is done it is refused.
    let again = harness.admin.send("POST", &path, "").await.json().await;
    assert_eq!(again, stopped);
    let response = harness.admin.get(&path).await;
    assert_eq!(response.header("allow"), Some("POST"));
    assert_eq!(response.status, 405);
    let done = {
        harness.mock.set_script(Script::tokens(3));
        let response = ask(&client, Dialect::OpenAiChat).await;
        let id = response.id();
        response.all().await;
        wait_end(&client, &id).await;
        id
    };
    let path = format!("/admin/streams/{done}/stop");
    let answer = harness
        .admin
        .send("POST", &path, "")
        .await
        .error_code()
        .await;
    assert_eq!(answer, (409, "already_terminal".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_one_method() {
    let harness = Harness::start(Script::tokens(3)).await;
    for path in [
        "/admin/streams",
        "/admin/streams/01jcv5t0q4e8x2m7n9p3r6s1ab",
    ] {
        for method in ["POST", "DELETE", "PUT"] {
            let response = harness.admin.send(method, path, "").await;
            assert_eq!(response.header("allow"), Some("GET"));
            assert_eq!(response.status, 405, "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_pages_and_other_names_are_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    let admin = &harness.admin;
    let request =
        |fields: &str| format!("GET /admin/streams HTTP/1.1\r\n{fields}connection: close\r\n\r\n");
    for good in [
        "localhost",
        "LOCALHOST:9090",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:9090",
    ] {
        let request = request(&format!("host: {good}\r\n"));
        assert_eq!(admin.raw(request.as_bytes()).await.status, 200, "{good}");
    }
    for bad in [
        "host: evil.example\r\n",
        "host: localhost.evil.example\r\n",
        "host: 127.0.0.1.evil.example\r\n",
        "host: 192.0.2.1\r\n",
        "host: localhost:9090\r\norigin: http://localhost:8080\r\n",
        "host: localhost:9090\r\norigin: http://localhost\r\n",
        "host: localhost\r\norigin: null\r\n",
    ] {
        let answer = admin.raw(request(bad).as_bytes()).await.error_code().await;
        assert_eq!(answer, (403, "forbidden".to_owned()), "{bad}");
    }
    // A page that was loaded from here.
    let own = request("host: localhost:9090\r\norigin: http://localhost:9090\r\n");
    assert_eq!(admin.raw(own.as_bytes()).await.status, 200);
    // Probes and metrics are for everybody who reaches the listener.
    let metrics = "GET /metrics HTTP/1.1\r\nhost: pod.example\r\n\r\n";
    assert_eq!(admin.raw(metrics.as_bytes()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_token_the_token_alone_counts() {
    let setup = Setup::new(Script::tokens(3)).config(|config| {
        config.admin_token = Secret::new("the-token".to_owned());
    });
    let harness = setup.start().await;
    let path = "/admin/streams";
    for bad in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer the-token2",
        "Basic the-token",
    ] {
        let client = harness.admin.with("authorization", bad);
        let answer = client.get(path).await.error_code().await;
        assert_eq!(answer, (401, "unauthorized".to_owned()), "{bad:?}");
    }
    assert_eq!(harness.admin.get(path).await.status, 401);
    let operator = harness.admin.with("authorization", "Bearer the-token");
    assert_eq!(operator.get(path).await.status, 200);
    assert_eq!(
        operator.with("origin", "http://a").get(path).await.status,
        200
    );
    assert_eq!(harness.admin.get("/readyz").await.status, 200);
    // What is not there, and what is there in another method, is not told before that.
    assert_eq!(harness.admin.get("/admin/nothing").await.status, 401);
    assert_eq!(harness.admin.send("DELETE", path, "").await.status, 401);
}
