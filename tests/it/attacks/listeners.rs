//! What is for operators is not at the data port: attack 30.

use streamweld_tests::Process;

use super::start;

#[tokio::test(flavor = "multi_thread")]
async fn row_30_nothing_of_operators_is_on_the_data_listener() {
    let harness = start().await;
    for path in [
        "/livez",
        "/readyz",
        "/metrics",
        "/console",
        "/admin/streams",
        "/admin/overview",
        "/admin/watch",
        "/admin/backends",
        "/admin/drain",
    ] {
        for method in ["GET", "POST"] {
            let count = harness.mock.recorder().count();
            harness.client.send(method, path, "").await.all().await;
            let seen = harness.mock.recorder().request(count);
            assert_eq!(seen.expect("it is the backend's").target, path);
        }
    }
    // And nothing of clients on the other: it neither forwards nor reads.
    let count = harness.mock.recorder().count();
    for path in ["/v1/models", "/v1/chat/completions", "/echo"] {
        assert_eq!(harness.admin.get(path).await.status, 404, "{path}");
    }
    let id = "01arz3ndektsv4rrffq69g5fav";
    let events = format!("/v1/streams/{id}/events");
    assert_eq!(harness.admin.get(&events).await.status, 404);
    assert_eq!(harness.mock.recorder().count(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_30_both_listeners_are_on_loopback_unless_told() {
    let shown = Process::run(&["config", "show", "--backend=http://127.0.0.1:1"]);
    let (status, output) = shown.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
    for line in [
        "listen = \"127.0.0.1:8080\"",
        "admin_listen = \"127.0.0.1:9090\"",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
}
