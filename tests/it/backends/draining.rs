//! Emptying a backend, and taking that back.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::Script;
use streamweld_server::config::DialectRoute;
use streamweld_tests::{Client, End, patience, texts};

use super::{Several, held_at};

fn held() -> Script {
    Script::text("Good morning to you").gate_after(2, "go")
}

async fn post(admin: &Client, path: &str) -> Value {
    let response = admin.send("POST", path, "").await;
    assert_eq!(response.status, 200, "{path}");
    response.json().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_drained_gets_nothing_new_until_it_is_undrained() {
    let several = Several::start(vec![Script::tokens(3), Script::tokens(3)]).await;
    let expected = json!({"object": "streamweld.drain", "backend": "a", "drained": true, "moved": 0,
                          "left": 0, "ended": 0, "remaining": [], "other_requests": 0, "warning": null});
    for _ in 0..2 {
        let drained = post(several.admin(), "/admin/backends/a/drain").await;
        assert_eq!(drained, expected);
    }
    assert_eq!(several.shown("a").await["state"], "draining");
    for _ in 0..10 {
        assert_eq!(several.client().chat().await.all().await.1, End::Proper);
    }
    assert_eq!(several.asked(), [0, 10]);
    for _ in 0..2 {
        let undrained = post(several.admin(), "/admin/backends/a/undrain").await;
        assert_eq!(undrained["object"], "streamweld.backend");
        assert_eq!(undrained["state"], "up");
    }
    let asked_again = async {
        while several.asked()[0] == 0 {
            several.client().chat().await.all().await;
        }
    };
    patience(asked_again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_leave_is_told_and_runs_on_to_its_end() {
    let several = Several::start(vec![held(), held()]).await;
    let (id, mut response) = held_at(&several, "a").await;
    let generations = several.shown("a").await["generations"].clone();
    // Again and again, it is the same one that is told, and it is not cut.
    for _ in 0..3 {
        let told = post(several.admin(), "/admin/backends/a/drain?timeout=100ms").await;
        assert_eq!(told["drained"], false);
        assert_eq!(told["moved"], 0);
        let remaining = told["remaining"].as_array().expect("a list");
        let ids: Vec<_> = remaining
            .iter()
            .map(|one| one["stream_id"].as_str())
            .collect();
        assert_eq!(json!(ids.len()), generations);
        assert!(ids.contains(&Some(id.as_str())), "{told}");
        for one in remaining {
            let reason = one["reason"].as_str().expect("a reason");
            assert!(!reason.is_empty() && one["gates"].is_array(), "{one}");
        }
        assert_eq!(several.shown("a").await["state"], "draining");
    }
    let waits = post(several.admin(), "/admin/backends/a/drain");
    let goes_on = async {
        several.mocks[0].gates().release("go");
        response.body.rest().await
    };
    let (told, (rest, end)) = tokio::join!(waits, goes_on);
    assert_eq!(
        (told["drained"].clone(), &told["remaining"]),
        (json!(true), &json!([]))
    );
    assert_eq!((&told["moved"], &told["left"]), (&json!(0), &json!(0)));
    let rest = texts(&rest);
    assert_eq!(
        (rest.ends_with(" morning to you"), end),
        (true, End::Proper),
        "{rest}"
    );
    assert_eq!(several.shown("a").await["in_flight"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_its_head_is_given_to_another_at_once() {
    let late = || Script::tokens(3).head_gate("head");
    let several = Several::start(vec![late(), late()]).await;
    let client = several.client().clone();
    let asking = tokio::spawn(async move { client.chat().await.all().await });
    let asked = async |both: bool| {
        while !several.asked().contains(&1) || (both && several.asked() != [1, 1]) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(asked(false)).await;
    let first = several.asked();
    let at = first.iter().position(|&asked| asked == 1).expect("one");
    let path = format!("/admin/backends/{}/drain", ["a", "b"][at]);
    let (told, ()) = tokio::join!(post(several.admin(), &path), patience(asked(true)));
    assert_eq!(told["drained"], json!(true));
    assert_eq!((&told["moved"], &told["left"]), (&json!(1), &json!(0)));
    several.mocks[1 - at].gates().release("head");
    let (_, end) = asking.await.expect("no panic");
    assert_eq!(end, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_generation_is_counted_apart() {
    let several = Several::with(vec![held()], |config| {
        let path = "/v1/chat/completions".to_owned();
        let route = DialectRoute::new(path, DialectRoute::NONE);
        config.generation.dialects = vec![route.expect("a route")];
    })
    .await;
    let mut response = several.client().chat().await;
    response.body.blocks(2).await;
    let told = post(several.admin(), "/admin/backends/a/drain?timeout=0s").await;
    assert_eq!(
        (told["drained"].clone(), told["other_requests"].clone()),
        (json!(false), json!(1))
    );
    assert_eq!(told["remaining"], json!([]));
    let waits = post(several.admin(), "/admin/backends/a/drain");
    let goes_on = async {
        several.mocks[0].gates().release("go");
        response.body.rest().await.1
    };
    let (told, end) = tokio::join!(waits, goes_on);
    assert_eq!((told["drained"].clone(), end), (json!(true), End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_is_taken_back_is_answered_at_once() {
    let several = Several::start(vec![held(), held()]).await;
    let (_, _response) = held_at(&several, "a").await;
    let waits = post(several.admin(), "/admin/backends/a/drain?timeout=10m");
    let taken_back = async {
        several
            .wait_shown("a", |shown| shown["state"] == "draining")
            .await;
        post(several.admin(), "/admin/backends/a/undrain").await
    };
    let (told, backend) = tokio::join!(patience(waits), taken_back);
    assert_eq!(told["drained"], false);
    let warning = told["warning"].as_str().expect("a warning");
    assert!(warning.contains("taken back"), "{warning}");
    assert_eq!(backend["state"], "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_one_may_be_drained_and_that_is_told() {
    let several = Several::start(vec![Script::tokens(3), Script::tokens(3)]).await;
    assert_eq!(
        post(several.admin(), "/admin/backends/a/drain").await["warning"],
        json!(null)
    );
    let told = post(several.admin(), "/admin/backends/b/drain").await;
    let warning = told["warning"].as_str().expect("a warning");
    assert!(warning.contains("no other backend is up"), "{warning}");
    assert_eq!(told["drained"], true);
    for (method, path, body) in [
        ("POST", "/v1/chat/completions", streamweld_tests::CHAT),
        ("GET", "/v1/models", ""),
    ] {
        let response = several.client().send(method, path, body).await;
        assert_eq!(response.header("retry-after"), Some("1"));
        let answer = response.error_code().await;
        assert_eq!(answer, (503, "backend_unavailable".to_owned()), "{path}");
    }
    assert_eq!(several.asked(), [0, 0]);
}
