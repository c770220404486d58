//! Pages in a browser on the machine of an operator, or of a client: attacks 22 and 23.

use streamweld_mock::Script;
use streamweld_server::config::Secret;
use streamweld_tests::{Client, Setup, Wire, wait_end};

use super::start;

async fn status(admin: &Client, request: &str) -> u16 {
    let answer = Wire::open(admin, request).await.rest().await;
    answer[9..12].parse().expect("a status")
}

/// Names that are rebound to loopback, and pages of others, by whatever writing of them.
#[tokio::test(flavor = "multi_thread")]
async fn row_23_only_the_console_itself_acts_without_a_token() {
    let harness = start().await;
    let paths = [
        "GET /admin/overview",
        "GET /admin/watch",
        "POST /admin/drain",
    ];
    for host in [
        "rebound.example:9090",
        "localhost.rebound.example",
        "localhost@rebound.example",
        "rebound.example#localhost",
        "127.0.0.1.rebound.example:9090",
        "0.0.0.0:9090",
        "127.1",
        "2130706433",
        "0x7f000001",
        "127.000.000.001",
        "[::ffff:192.0.2.1]:9090",
        "[::]",
        "localhost.",
        "local",
        "",
    ] {
        for path in paths {
            let request = format!(
                "{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            assert_eq!(
                status(&harness.admin, &request).await,
                403,
                "{host:?} {path}"
            );
        }
    }
    for origin in [
        "http://rebound.example",
        "http://localhost",
        "http://localhost:9091",
        "http://127.0.0.1:9090",
        "http://localhost:9090.rebound.example",
        "http://rebound.example/localhost:9090",
        "http://user@localhost:9090",
        "ftp://localhost:9090",
        "file://localhost:9090",
        "localhost:9090",
        "null",
        "",
        "http://localhost:9090\r\norigin: http://rebound.example",
    ] {
        for path in paths {
            let request = format!(
                "{path} HTTP/1.1\r\nhost: localhost:9090\r\norigin: {origin}\r\nconnection: close\r\n\
                 content-length: 0\r\n\r\n"
            );
            assert_eq!(
                status(&harness.admin, &request).await,
                403,
                "{origin:?} {path}"
            );
        }
    }
    // Where the target names the host, that one counts.
    let absolute = "GET http://rebound.example/admin/overview HTTP/1.1\r\nhost: localhost\r\n\
                    connection: close\r\n\r\n";
    assert_eq!(status(&harness.admin, absolute).await, 403);
    let console = "GET /admin/overview HTTP/1.1\r\nhost: localhost:9090\r\n\
                   origin: http://localhost:9090\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&harness.admin, console).await, 200);
    assert_eq!(
        harness.admin.get("/readyz").await.status,
        200,
        "no drain has begun"
    );
}

/// No page of another origin is ever told that it may read what operators read.
#[tokio::test(flavor = "multi_thread")]
async fn row_23_no_answer_to_operators_is_for_other_origins() {
    let harness = Setup::new(Script::tokens(3))
        .config(|config| {
            config.admin_token = Secret::new("the-token".to_owned());
            config.edge.cors_origins = vec!["https://app.example".parse().expect("an origin")];
        })
        .start()
        .await;
    let page = harness.admin.with("origin", "https://app.example");
    let operator = page.with("authorization", "Bearer the-token");
    for (client, path, expected) in [
        (&page, "/admin/streams", 401),
        (&operator, "/admin/streams", 200),
        (&operator, "/admin/overview", 200),
        (&page, "/metrics", 200),
        (&page, "/console", 200),
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, expected, "{path}");
        let told = answer
            .headers
            .iter()
            .find(|(name, _)| name.starts_with("access-control-"));
        assert_eq!(told, None, "{path}");
        answer.all().await;
    }
    let asks = page
        .with("access-control-request-method", "POST")
        .with("access-control-request-headers", "authorization");
    let answer = asks.send("OPTIONS", "/admin/drain", "").await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    // Nor may it be shown in a frame of another.
    let console = harness.admin.get("/console").await;
    let policy = console.header("content-security-policy").expect("a policy");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
}

/// What is somebody's own is kept by no cache on the way, in whichever way it is read.
#[tokio::test(flavor = "multi_thread")]
async fn row_22_nothing_about_an_answer_is_kept_by_caches() {
    let script = Script::tokens(3).header("cache-control", "public, max-age=3600");
    let harness = Setup::new(script).start().await;
    let client = harness.client.with("authorization", "Bearer a");
    let first = client.chat().await;
    let id = first.id();
    let read = "no-cache, no-store, no-transform";
    assert_eq!(first.header("cache-control"), Some(read));
    first.all().await;
    wait_end(&client, &id).await;
    let again = client.with("last-event-id", &format!("{id}:1"));
    for answer in [client.events(&id).await, again.chat().await] {
        assert_eq!(answer.header("cache-control"), Some(read));
    }
    let path = format!("/v1/streams/{id}");
    let stop = format!("{path}/stop");
    for answer in [
        client.get(&path).await,
        client.send("POST", &stop, "").await,
        harness.client.get(&path).await,
        harness.admin.get(&format!("/admin/streams/{id}")).await,
        harness.admin.get("/admin/streams").await,
        harness.admin.get("/admin/overview").await,
    ] {
        let kept = answer.header("cache-control");
        assert_eq!(kept, Some("no-store"), "{}", answer.status);
    }
}
