//! What operators ask of backends, and how they are refused.

use serde_json::json;
use streamweld_mock::Script;
use streamweld_server::config::Secret;
use streamweld_tests::{Over, Pair, state};

use super::{Several, held_at};

#[tokio::test(flavor = "multi_thread")]
async fn backends_are_listed_and_shown() {
    let held = || Script::tokens(9).gate_after(2, "go");
    let several = Several::with(vec![held(), held()], |config| {
        config.backends[0].group = Some("g".to_owned());
        config.backends[0].weight = 1000.try_into().expect("not zero");
    })
    .await;
    let (_, _response) = held_at(&several, "a").await;
    let list = several.admin().get("/admin/backends").await.json().await;
    assert_eq!(list["object"], "list");
    let names: Vec<_> = list["data"].as_array().expect("a list").iter().collect();
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&json!("a"), &json!("b"))
    );
    let (mut shown, mut listed) = (several.shown("a").await, names[0].clone());
    listed["examined"] = shown["examined"].clone();
    // Counted back from now, so that it may be a moment apart.
    for since in [shown["since"].take(), listed["since"].take()] {
        let since = since.as_str().expect("a time");
        assert!(since.ends_with('Z') && since.contains('T'), "{since}");
    }
    assert_eq!(shown, listed);
    let busy = shown["in_flight"].take();
    assert_eq!(busy, shown["generations"].take());
    assert!(busy.as_u64() >= Some(1), "{busy}");
    // It may have been looked at meanwhile, and is no engine.
    let examined = shown["examined"].take();
    assert!(
        examined.is_null() || examined["engine"].is_null(),
        "{examined}"
    );
    let expected = json!({"object": "streamweld.backend", "name": "a", "engine": "unknown", "family": "unknown",
        "group": "g", "migration": "exact", "weight": 1000, "state": "up", "since": null, "in_flight": null,
        "generations": null, "leaving": false, "last_failure": null, "examined": null});
    assert_eq!(shown, expected);
    assert_eq!(several.shown("b").await["migration"], "off");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_changes_nothing() {
    let several = Several::start(vec![Script::tokens(3)]).await;
    let admin = several.admin();
    for (method, path, status, code) in [
        ("GET", "/admin/backends/x", 404, "backend_not_found"),
        ("POST", "/admin/backends/x/drain", 404, "backend_not_found"),
        (
            "POST",
            "/admin/backends/x/undrain",
            404,
            "backend_not_found",
        ),
        (
            "POST",
            "/admin/backends/%ff/drain",
            404,
            "backend_not_found",
        ),
        (
            "POST",
            "/admin/backends/a/drain?wait=1s",
            400,
            "invalid_parameter",
        ),
        (
            "POST",
            "/admin/streams/01arz3ndektsv4rrffq69g5fav/migrate?dryrun=true",
            400,
            "invalid_parameter",
        ),
        ("GET", "/admin/streams?state=done", 400, "invalid_parameter"),
        (
            "POST",
            "/admin/backends/a/drain?timeout=1",
            400,
            "invalid_parameter",
        ),
        (
            "POST",
            "/admin/backends/a/drain?timeout=11m",
            400,
            "invalid_parameter",
        ),
        (
            "POST",
            "/admin/backends/a/drain?timeout=",
            400,
            "invalid_parameter",
        ),
        ("GET", "/admin/backends/a/drain", 405, "method_not_allowed"),
        (
            "GET",
            "/admin/backends/a/undrain",
            405,
            "method_not_allowed",
        ),
        ("POST", "/admin/backends", 405, "method_not_allowed"),
        ("DELETE", "/admin/backends/a", 405, "method_not_allowed"),
        ("POST", "/admin/backends/a/kill", 404, "not_found"),
        ("GET", "/admin/streams/x/migrate", 405, "method_not_allowed"),
        ("POST", "/admin/streams/x/migrate", 400, "invalid_stream_id"),
        (
            "POST",
            "/admin/streams/01jcv5t0q4e8x2m7n9p3r6s1ab/migrate",
            404,
            "stream_not_found",
        ),
        (
            "POST",
            "/admin/streams/01jcv5t0q4e8x2m7n9p3r6s1ab/migrate?dry_run=1",
            400,
            "invalid_parameter",
        ),
    ] {
        let answer = admin.send(method, path, "").await.error_code().await;
        assert_eq!(answer, (status, code.to_owned()), "{method} {path}");
    }
    assert_eq!(several.shown("a").await["state"], "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_for_who_is_no_operator() {
    let several = Several::with(vec![Script::tokens(3)], |config| {
        config.admin_token = Secret::new("the-token".to_owned());
    })
    .await;
    for path in [
        "/admin/backends/a/drain",
        "/admin/backends/a/undrain",
        "/admin/streams/x/migrate",
    ] {
        let answer = several
            .admin()
            .send("POST", path, "")
            .await
            .error_code()
            .await;
        assert_eq!(answer, (401, "unauthorized".to_owned()), "{path}");
    }
    let operator = several.admin().with("authorization", "Bearer the-token");
    let shown = operator.get("/admin/backends/a").await.json().await;
    assert_eq!(shown["state"], "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_does_not_move() {
    let several = Several::start(vec![Script::tokens(3), Script::tokens(3)]).await;
    let response = several.client().chat().await;
    let id = response.id();
    response.all().await;
    streamweld_tests::wait_end(several.client(), &id).await;
    for query in ["", "?dry_run=true", "?dry_run=false"] {
        let path = format!("/admin/streams/{id}/migrate{query}");
        let answer = several
            .admin()
            .send("POST", &path, "")
            .await
            .error_code()
            .await;
        assert_eq!(answer, (409, "already_terminal".to_owned()), "{query}");
    }
    assert_eq!(state(several.client(), &id).await["status"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_replica_runs_is_moved_there_only() {
    let pair = Pair::start(Over::Link, Script::tokens(9).gate_after(2, "go")).await;
    let mut response = pair.one.client.durable_chat().await;
    let id = response.id();
    response.body.blocks(2).await;
    for query in ["", "?dry_run=true"] {
        let path = format!("/admin/streams/{id}/migrate{query}");
        let answer = pair
            .other
            .admin
            .send("POST", &path, "")
            .await
            .error_code()
            .await;
        assert_eq!(answer, (409, "not_owner".to_owned()), "{query}");
    }
    assert_eq!(state(&pair.one.client, &id).await["status"], "streaming");
}
