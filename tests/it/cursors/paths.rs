//! Paths, methods and parameters of ours, and the one shape of their errors.

use streamweld_tests::{CHAT, End};

use super::{UNKNOWN, ended, expected};

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_are_not_ours_are_the_backends() {
    let (harness, id) = ended().await;
    let paths = [
        "/v1/streams",
        "/v1/streams/",
        "/v1/streams/lookup",
        "/v1/streams/abc/events",
        &format!("/v1/streams/{id}0"),
        &format!("/v1/streams/{}/events", &id[1..]),
        &format!("/v2/streams/{id}"),
        &format!("/V1/streams/{id}"),
        &format!("//v1/streams/{id}"),
        &format!("/v1//streams/{id}"),
        "/v1/streams/watch/x",
    ];
    for (forwarded, path) in (1..).zip(paths) {
        let answer = harness.client.get(path).await;
        assert_eq!(answer.status, 404, "the mock's own");
        assert_eq!(
            answer.json().await["error"]["type"],
            "not_found_error",
            "{path}"
        );
        let seen = harness
            .mock
            .recorder()
            .request(forwarded)
            .expect("was forwarded");
        assert_eq!(seen.target, path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_below_an_id_that_do_not_exist_are_ours_and_not_found() {
    let (harness, id) = ended().await;
    for path in [
        format!("/v1/streams/{id}/nothing"),
        format!("/v1/streams/{id}/"),
        format!("/v1/streams/{id}/events/"),
        format!("/v1/streams/{id}/Events"),
        format!("/v1/streams/{id}/stop/now"),
        format!("/v1/streams/{id}//events"),
        format!("/v1/streams/{UNKNOWN}/nothing"),
        format!("/v1/streams/{}/nothing", id.to_uppercase()),
        "/v1/streams/watch".to_owned(),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let answer = harness.client.send(method, &path, "").await;
            assert_eq!(
                answer.error_code().await,
                expected(404, "not_found"),
                "{method} {path}"
            );
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_a_path_lacks_is_told_which_it_has() {
    let (harness, id) = ended().await;
    for (path, allowed) in [
        (format!("/v1/streams/{id}"), "GET"),
        (format!("/v1/streams/{id}/events"), "GET"),
        (format!("/v1/streams/{id}/stop"), "POST"),
        // The method is looked at first: it does not depend on who asks, or for what.
        (format!("/v1/streams/{UNKNOWN}/stop"), "POST"),
    ] {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND",
        ] {
            if method == allowed {
                continue;
            }
            let answer = harness.client.send(method, &path, "").await;
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
            assert_eq!(
                answer.error_code().await,
                expected(405, "method_not_allowed")
            );
        }
    }
    for target in [
        "/",
        "/v1/chat/completions",
        "/v1/streams/lookup",
        &format!("/v1/streams/{id}"),
    ] {
        let answer = harness.client.send("TRACE", target, "").await;
        let allow = answer
            .header("allow")
            .expect("says what is allowed")
            .to_owned();
        assert!(allow.contains("GET") && !allow.contains("TRACE") && !allow.contains("CONNECT"));
        assert_eq!(
            answer.error_code().await,
            expected(405, "method_not_allowed")
        );
    }
    let connect = harness
        .client
        .raw(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n")
        .await;
    assert!(connect.header("allow").is_some());
    assert_eq!(
        connect.error_code().await,
        expected(405, "method_not_allowed")
    );
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_asked_for_in_one_word() {
    let (harness, id) = ended().await;
    let events = format!("/v1/streams/{id}/events");
    let invalid = expected(400, "invalid_parameter");
    for word in ["", "all", "Control", "control,all", "true"] {
        let client = harness.client.with("x-streamweld-events", word);
        let resumes = client.with("last-event-id", &format!("{id}:1"));
        for answer in [
            client.get(&events).await,
            client.chat().await,
            resumes.chat().await,
            harness.client.get(&format!("{events}?events={word}")).await,
        ] {
            assert_eq!(answer.error_code().await, invalid, "{word:?}");
        }
    }
    let both = harness
        .client
        .with("x-streamweld-events", "control")
        .with("x-streamweld-events", "all");
    assert_eq!(both.get(&events).await.error_code().await, invalid);
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "nothing was sent to the backend"
    );
    // On the data path the query may be the backend's.
    let answer = harness
        .client
        .with("x-other", "1")
        .send("POST", "/v1/completions?events=all", CHAT)
        .await;
    assert_eq!(answer.status, 200);
    let seen = harness.mock.recorder().request(1).expect("was forwarded");
    assert_eq!(seen.target, "/v1/completions?events=all");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_ours_has_one_shape() {
    let (harness, id) = ended().await;
    let cursor = |text: &str| harness.client.with("last-event-id", text);
    let ahead = format!("{id}:99");
    for (answer, about) in [
        (cursor(&ahead).events(&id).await, Some(&*id)),
        (cursor(&ahead).chat().await, Some(&*id)),
        (harness.client.events(UNKNOWN).await, Some(UNKNOWN)),
        (
            harness.client.events("8zzzzzzzzzzzzzzzzzzzzzzzzz").await,
            None,
        ),
        (
            harness
                .client
                .get(&format!("/v1/streams/{id}/nothing"))
                .await,
            None,
        ),
        (
            harness
                .client
                .send("PUT", &format!("/v1/streams/{id}"), "")
                .await,
            None,
        ),
        (
            harness
                .client
                .send("POST", &format!("/v1/streams/{id}/stop"), "")
                .await,
            Some(&*id),
        ),
    ] {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let request = answer
            .header("x-streamweld-request-id")
            .expect("an id")
            .to_owned();
        assert!(is_ulid(&request), "{request}");
        let body = answer.json().await;
        assert_eq!(body.as_object().expect("an object").len(), 1);
        let error = body["error"].as_object().expect("an object");
        let mut members: Vec<_> = error.keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(
            members,
            ["code", "message", "request_id", "stream_id", "type"]
        );
        assert_eq!(error["type"], "streamweld_error");
        assert_eq!(error["request_id"], request, "the header's");
        assert_eq!(error["stream_id"].as_str(), about);
        assert!(!error["message"].as_str().expect("a message").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_a_request_id_of_its_own() {
    let (harness, id) = ended().await;
    let mut ids = Vec::new();
    let over = harness.client.with("last-event-id", &format!("{id}:12"));
    for answer in [
        harness.client.chat().await,
        harness.client.events(&id).await,
        harness.client.events(&id).await,
        over.events(&id).await,
        harness.client.get(&format!("/v1/streams/{id}")).await,
        harness.client.get("/v1/models").await,
        harness.client.get("/not/there").await,
        harness.client.events(UNKNOWN).await,
        harness.admin.get("/livez").await,
    ] {
        let id = answer
            .header("x-streamweld-request-id")
            .expect("an id")
            .to_owned();
        assert!(is_ulid(&id), "{id}");
        ids.push(id);
        assert_eq!(answer.all().await.1, End::Proper);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 9);
}

fn is_ulid(text: &str) -> bool {
    text.len() == 26
        && text.as_bytes()[0] <= b'7'
        && text
            .bytes()
            .all(|byte| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&byte))
}
