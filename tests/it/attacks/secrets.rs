//! What is confided to a proxy, and where it must not be: attacks 18 and 19. The log has a story of its own
//! (`shutdown::nothing_confided_is_written_at_any_level`); here is all else that operators read.

use std::fs;
use std::path::Path;

use streamweld_mock::{Dialect, Script};
use streamweld_tests::{End, Process, wait_end};

use super::process;

#[tokio::test(flavor = "multi_thread")]
async fn row_18_nothing_confided_is_shown_to_operators() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (keys, token) = (folder.join("row-18-keys"), folder.join("row-18-token"));
    fs::write(&keys, "planted-".repeat(4)).expect("a file");
    fs::write(&token, "planted-admin-token").expect("a file");
    let arguments = [
        format!("--url-signing-key-file={}", keys.display()),
        format!("--request-key-file={}", keys.display()),
        format!("--admin-token-file={}", token.display()),
        "--log-level=trace".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mock, mut process) = process(Script::text("planted-output and more"), &arguments).await;
    let client = process
        .client()
        .await
        .with("authorization", "Bearer planted-bearer")
        .with("x-api-key", "planted-key")
        .with("cookie", "planted-cookie")
        .with("user-agent", "planted-agent");
    let admin = process.admin().await;
    let operator = admin.with("authorization", "Bearer planted-admin-token");
    let mut feed = operator.get("/admin/watch").await;
    assert_eq!(feed.status, 200);
    let body = r#"{"model":"m","stream":true,"user":"planted-user","tools":[{"planted-tool":1}],
        "messages":[{"role":"user","content":"planted-prompt"}]}"#;
    let path = Dialect::OpenAiChat.path();
    let keyed = client.with("idempotency-key", "planted-idempotency");
    let response = keyed.send("POST", path, body).await;
    let id = response.id();
    let url = response.header("x-streamweld-resume-url").expect("a URL");
    let capability = url.split_once("cap=r.").expect("it has one").1.to_owned();
    assert_eq!(response.all().await.1, End::Proper);
    wait_end(&client, &id).await;
    // One that fails with words of its own, and one to which nobody answers.
    mock.push_script(Script::answer(500, "planted-failure"));
    let other = client.with("idempotency-key", "planted-other");
    let failed = other
        .send("POST", path, &body.replace("\"m\"", "\"m2\""))
        .await;
    assert_eq!(failed.status, 500);
    failed.all().await;
    let mut shown = vec![(
        "/admin/watch".to_owned(),
        String::from_utf8_lossy(&feed.body.blocks(3).await).into_owned(),
    )];
    feed.leave().await;
    let one = format!("/admin/streams/{id}");
    for path in [
        "/metrics",
        "/admin/overview",
        "/admin/streams",
        &one,
        "/admin/backends",
        "/admin/backends/default",
        "/console",
        "/console/app.js",
    ] {
        let answer = operator.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8_lossy(&answer.all().await.0).into_owned();
        assert!(!text.is_empty());
        shown.push((path.to_owned(), text));
    }
    for refused in [admin.get(&one).await, operator.get("/admin/planted").await] {
        let text = String::from_utf8_lossy(&refused.all().await.0).into_owned();
        shown.push(("a refusal".to_owned(), text));
    }
    mock.shutdown().await;
    let away = client.with("idempotency-key", "planted-third");
    let away = away
        .send("POST", path, &body.replace("\"m\"", "\"m3\""))
        .await;
    assert_eq!(away.status, 502);
    let text = String::from_utf8_lossy(&away.all().await.0).into_owned();
    shown.push(("an error".to_owned(), text));
    process.signal("TERM");
    let (_, output) = process.ended().await;
    shown.push(("the log".to_owned(), output));
    for (what, text) in shown {
        for secret in ["planted", &capability] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{what}");
        }
    }
}

/// What a setting holds that is a secret is shown by no command, whatever is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn row_18_settings_are_shown_without_their_secrets() {
    let variables = [
        ("STREAMWELD_BACKEND", "http://127.0.0.1:1"),
        (
            "STREAMWELD_JOURNAL",
            "redis://planted-user:planted-password@127.0.0.1:1/0",
        ),
    ];
    for (command, variables, code) in [
        (&["config", "show"][..], &variables[..], 0),
        (&["check-config"], &variables, 0),
        (
            &["check-config"],
            &[
                (
                    "STREAMWELD_BACKEND",
                    "http://planted-user:planted-password@127.0.0.1:1",
                ),
                (
                    "STREAMWELD_JOURNAL",
                    "redis://:planted-password@127.0.0.1:port/0",
                ),
            ],
            2,
        ),
    ] {
        let (status, output) = Process::run_with(command, variables).ended().await;
        assert_eq!(status.code(), Some(code), "{command:?}: {output}");
        assert!(!output.contains("planted"), "{command:?}: {output}");
    }
}
