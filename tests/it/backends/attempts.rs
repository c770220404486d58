//! Who is asked, and who is asked next.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{FullBacklog, Raw, Script};
use streamweld_tests::{End, events, metric, patience, texts, wait_end};
use tokio::time::Instant;

use super::{Several, large, nowhere, only_after_the_others};

const PATH: &str = "/v1/chat/completions";

/// `a` first, whatever is drawn, and `b` after it.
async fn in_order(a: Script, b: Script) -> Several {
    Several::with(vec![a, b], |config| {
        only_after_the_others(&mut config.backends[1], &mut config.fleet);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn load_goes_to_each_by_its_weight() {
    let held = || Script::tokens(3).head_gate("go");
    let several = Several::with(vec![held(), held()], |config| {
        config.backends[1].weight = 3.try_into().expect("not zero");
    })
    .await;
    let [a, b] = &several.mocks[..] else {
        panic!("two");
    };
    let mut clients = Vec::new();
    for count in 1..=40 {
        let client = several.client().clone();
        clients.push(tokio::spawn(async move { client.chat().await.all().await }));
        // One after the other, so that each is sent by what is in flight.
        let sent = async {
            while several.asked().iter().sum::<usize>() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        patience(sent).await;
    }
    let asked = several.asked();
    assert!((9..=11).contains(&asked[0]), "{asked:?}");
    assert_eq!(several.shown("a").await["in_flight"], asked[0]);
    assert_eq!(several.shown("b").await["generations"], asked[1]);
    for (name, count) in [("a", asked[0]), ("b", asked[1])] {
        let line = format!(r#"streamweld_backend_in_flight{{backend="{name}"}}"#);
        assert_eq!(metric(several.admin(), &line).await, count as i64);
    }
    a.gates().release("go");
    b.gates().release("go");
    for client in clients {
        let (body, end) = client.await.expect("no panic");
        assert_eq!((texts(&body).is_empty(), end), (false, End::Proper));
    }
    for (name, count) in [("a", asked[0]), ("b", asked[1])] {
        let line = format!(r#"streamweld_attempts_total{{backend="{name}",outcome="answered"}}"#);
        assert_eq!(metric(several.admin(), &line).await, count as i64);
        several
            .wait_shown(name, |shown| shown["in_flight"] == 0)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_refuses_is_followed_by_another() {
    let several = Several::with(vec![Script::new(), Script::text("Good day")], |config| {
        config.backends[0].url = nowhere().parse().expect("a URL");
        only_after_the_others(&mut config.backends[1], &mut config.fleet);
    })
    .await;
    let response = several.client().chat().await;
    assert_eq!(response.status, 200);
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!((texts(&body), end), ("Good day".to_owned(), End::Proper));
    let state = wait_end(several.client(), &id).await;
    assert_eq!(state["attempts"], 2);
    assert_eq!(state["backends"], json!(["a", "b"]));
    assert_eq!(state["migrations"], 0);
    assert_eq!(several.asked(), [0, 1]);
    let refused = r#"streamweld_attempts_total{backend="a",outcome="connect_refused"}"#;
    assert_eq!(metric(several.admin(), refused).await, 1);
    // One refusal is enough not to be asked again at once.
    let shown = several.shown("a").await;
    assert_eq!(shown["state"], "quarantined");
    assert_eq!(shown["last_failure"]["class"], "connect_refused");
    let quarantined = r#"streamweld_backend_state{backend="a",state="quarantined"}"#;
    assert_eq!(metric(several.admin(), quarantined).await, 1);
    let up = r#"streamweld_backend_state{backend="a",state="up"}"#;
    assert_eq!(metric(several.admin(), up).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_through_without_a_body_is_asked_of_another_too() {
    let several = Several::with(vec![Script::new(), Script::new()], |config| {
        config.backends[0].url = nowhere().parse().expect("a URL");
        only_after_the_others(&mut config.backends[1], &mut config.fleet);
    })
    .await;
    assert_eq!(several.client().get("/v1/models").await.status, 200);
    assert_eq!(several.asked(), [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_never_comes_is_asked_for_elsewhere() {
    for raw in [Raw::new().fin(), Raw::new().rst()] {
        let several = in_order(Script::raw(raw), Script::text("Good day")).await;
        let (body, end) = several.client().chat().await.all().await;
        assert_eq!((texts(&body), end), ("Good day".to_owned(), End::Proper));
        assert_eq!(several.asked(), [1, 1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_of_all_that_refuse_is_passed_on_whole() {
    let busy = |name: &str, after: &str| {
        Script::answer(503, json!({"from": name}))
            .header("retry-after", after)
            .header("x-from", name)
    };
    let several = in_order(busy("a", "7"), busy("b", "9")).await;
    let response = several.client().chat().await;
    assert_eq!(response.status, 503);
    assert_eq!(response.header("retry-after"), Some("9"));
    assert_eq!(response.header("x-from"), Some("b"));
    assert_eq!(response.json().await, json!({"from": "b"}));
    assert_eq!(several.asked(), [1, 1]);
    let failed = r#"streamweld_attempts_total{backend="b",outcome="server_error"}"#;
    assert_eq!(metric(several.admin(), failed).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_are_asked_than_may_be() {
    let busy = || Script::error(503);
    let several = Several::with(vec![busy(), busy(), busy()], |config| {
        config.migration.attempts = 2.try_into().expect("not zero");
    })
    .await;
    assert_eq!(several.client().chat().await.status, 503);
    assert_eq!(several.asked().iter().sum::<usize>(), 2);
    assert!(several.asked().iter().all(|&asked| asked <= 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_do_more_than_be_answered_is_not_done_twice() {
    for first in [Script::error(503), Script::raw(Raw::new().fin())] {
        let several = in_order(first, Script::tokens(3)).await;
        let response = several.client().send("POST", "/generic", "{}").await;
        assert!(response.status >= 500, "{}", response.status);
        assert_eq!(several.asked(), [1, 0]);
    }
    // Where nobody can have seen it, it was not done at all.
    let several = Several::with(vec![Script::new(), Script::tokens(3)], |config| {
        config.backends[0].url = nowhere().parse().expect("a URL");
        only_after_the_others(&mut config.backends[1], &mut config.fleet);
    })
    .await;
    let response = several.client().send("POST", "/generic", "{}").await;
    assert_eq!(response.status, 200);
    assert_eq!(several.asked(), [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_4xx_is_passed_on_at_once() {
    for status in [400, 401, 404, 422, 429] {
        let refused = Script::answer(status, json!({"why": "yours"})).header("retry-after", "3");
        let several = in_order(refused, Script::tokens(3)).await;
        let response = several.client().chat().await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("retry-after"), Some("3"));
        assert_eq!(response.json().await, json!({"why": "yours"}));
        assert_eq!(several.asked(), [1, 0], "{status}");
        let counted = r#"streamweld_attempts_total{backend="a",outcome="client_error"}"#;
        assert_eq!(metric(several.admin(), counted).await, 1);
        assert_eq!(several.shown("a").await["last_failure"], json!(null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_to_keep_goes_to_one_alone() {
    let several = Several::with(vec![Script::error(503), Script::tokens(3)], |config| {
        only_after_the_others(&mut config.backends[1], &mut config.fleet);
        config.edge.max_kept_body = 1 << 10;
    })
    .await;
    let response = several.client().send("POST", PATH, &large(64 << 10)).await;
    assert_eq!(response.status, 503);
    assert_eq!(several.asked(), [1, 0]);
    // One that fits goes on.
    let response = several.client().send("POST", PATH, &large(100)).await;
    let (body, end) = response.all().await;
    assert_eq!((events(&body).is_empty(), end), (false, End::Proper));
    assert_eq!(several.asked()[1], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_a_full_accept_queue_costs_the_connect_timeout_and_the_next_answers() {
    let backlog = FullBacklog::bind().expect("a port");
    let url = format!("http://{}", backlog.addr()).parse().expect("a URL");
    let several = Several::with(
        vec![Script::new(), Script::text("Good day")],
        move |config| {
            config.backends[0].url = url;
            only_after_the_others(&mut config.backends[1], &mut config.fleet);
            config.upstream.connect_timeout = Duration::from_millis(300);
        },
    )
    .await;
    let begun = Instant::now();
    let response = several.client().chat().await;
    let waited = begun.elapsed();
    let (body, end) = response.all().await;
    assert_eq!((texts(&body), end), ("Good day".to_owned(), End::Proper));
    // Far below what a kernel gives a handshake.
    let bounds = Duration::from_millis(300)..Duration::from_secs(10);
    assert!(bounds.contains(&waited), "{waited:?}");
    let late = r#"streamweld_attempts_total{backend="a",outcome="connect_timeout"}"#;
    assert_eq!(metric(several.admin(), late).await, 1);
}
