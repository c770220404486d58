//! Sessions that end without their generation, and clients that leave.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{End, Setup, wait_seq, wait_state};

use super::{Form, ask};

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_hears_of_the_shutdown_and_who_is_not_is_cut() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "never");
    let mut harness = Setup::new(script).start().await;
    let (client, first) = (harness.client.clone(), harness.client.durable_chat().await);
    let id = first.id();
    wait_seq(&client, &id, 6).await;
    let mut sessions = Vec::new();
    for form in [Form::Events, Form::Batch, Form::Lines, Form::Json] {
        let wait = if form == Form::Json {
            "&tail=0&wait=60"
        } else {
            ""
        };
        let response = ask(&client, &id, &format!("{}{wait}", form.query())).await;
        sessions.push((form, response));
    }
    let untold = ask(&client, &id, "count=100").await;
    wait_state(&client, &id, |state| state["readers"] == 6).await;
    harness.begin_shutdown();
    for (form, response) in sessions {
        let (body, end) = response.all().await;
        let seen = form.read(&body);
        // The generation ends with its server, which holds no other.
        assert_eq!(end, End::Proper, "{form:?}");
        let reason = seen.reason();
        let code = &seen.told("closing")["terminal"]["code"];
        assert!(
            reason == "server_shutdown" || (reason == "end_of_stream" && code == "shutdown"),
            "{form:?} {reason} {code}"
        );
    }
    drop(untold.all().await);
    harness.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_left_is_no_reader_any_more() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "end");
    let harness = Setup::new(script)
        .config(|config| config.edge.heartbeat = Duration::from_millis(50))
        .start()
        .await;
    let (client, first) = (&harness.client, harness.client.durable_chat().await);
    let id = first.id();
    wait_seq(client, &id, 6).await;
    for form in Form::ALL {
        let wait = if form == Form::Json {
            "&tail=0&wait=60"
        } else {
            ""
        };
        let response = ask(client, &id, &format!("{}{wait}", form.query())).await;
        wait_state(client, &id, |state| state["readers"] == 2).await;
        response.leave().await;
        wait_state(client, &id, |state| state["readers"] == 1).await;
    }
    harness.mock.gates().release("end");
    assert_eq!(first.all().await.1, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_too_old_is_told_and_comes_back() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "end");
    let harness = Setup::new(script.clone())
        .config(|config| config.edge.session_max_age = Some(Duration::from_millis(300)))
        .start()
        .await;
    let (client, first) = (&harness.client, harness.client.durable_chat().await);
    let id = first.id();
    wait_seq(client, &id, 6).await;
    for form in [Form::Events, Form::Batch, Form::Lines] {
        let (body, end) = ask(client, &id, form.query()).await.all().await;
        let text = String::from_utf8_lossy(&body);
        assert_eq!(
            text.contains("\nretry: 1000\n"),
            form != Form::Lines,
            "{text}"
        );
        let seen = form.read(&body);
        assert_eq!((seen.seqs(), end), (vec![2, 3, 4, 5, 6], End::Proper));
        assert_eq!(seen.told("session")["max_age_ms"], 300);
        assert_eq!((seen.reason(), seen.has("live")), ("max_age", true));
        assert_eq!(seen.told("closing")["next"], format!("{id}:6"));
    }
    // Who is not told must not take a part for the whole.
    let (_, end) = ask(client, &id, "count=100").await.all().await;
    assert_ne!(end, End::Proper);
    // Nor is a plain reader one.
    let plain = client.events(&id).await;
    harness.mock.gates().release("end");
    assert_eq!(plain.all().await.1, End::Proper);
    assert_eq!(first.all().await.1, End::Proper);
}
