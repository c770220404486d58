//! Stopping what another replica runs.

use std::time::{Duration, Instant};

use streamweld_mock::{Outcome, Script};
use streamweld_server::Config;
use streamweld_tests::{
    CHAT, Client, End, Over, Pair, Response, blocks, patience, wait_end, wait_state,
};
use tokio::time::sleep;

use super::{PATH, begin, gated, short_hold, stop};

over_both! {
    a_stop_at_the_other_replica_is_a_stop
    an_operator_shows_and_stops_what_another_replica_owns
}

async fn a_stop_at_the_other_replica_is_a_stop(over: Over) {
    let pair = Pair::start(
        over,
        Script::text("Good morning to you").gate_after(3, "go"),
    )
    .await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, mut first) = begin(&pair, one, 3).await;
    let mut second = other.events(&id).await;
    second.body.blocks(3).await;
    let stopped = stop(other, &id).await;
    assert_eq!(stopped.status, 200);
    let recorder = pair.mock.recorder().with_deadline(Duration::from_secs(1));
    let ending = recorder.wait_closed(0).await.expect("within a second");
    assert!(
        matches!(ending.outcome, Outcome::ClientClosed | Outcome::ClientReset),
        "{ending:?}"
    );
    let answer = stopped.json().await;
    assert_eq!(answer["object"], "streamweld.stop");
    assert_eq!(answer["status"], "stopped");
    assert_eq!(answer["text"], "Good morning");
    assert_eq!(answer["terminal"]["seq"], 5);
    assert_eq!(answer["usage"]["completion_tokens"], 2);
    for client in [one, other] {
        assert_eq!(stop(client, &id).await.json().await, answer);
        assert_eq!(wait_end(client, &id).await["status"], "stopped");
    }
    let rest = first.body.rest().await;
    assert_eq!(rest.1, End::Proper);
    assert_eq!(blocks(&rest.0).len(), 2, "a finish and the sentinel");
    assert_eq!(second.body.rest().await, rest);

    // What is over stays over, from wherever it is stopped.
    pair.mock.set_script(Script::tokens(3));
    let response = one.send("POST", PATH, &CHAT.replace("hi", "ho")).await;
    let done = response.id();
    response.all().await;
    wait_end(one, &done).await;
    let late = (409, "already_terminal".to_owned());
    assert_eq!(stop(other, &done).await.error_code().await, late);
}

async fn an_operator_shows_and_stops_what_another_replica_owns(over: Over) {
    let pair = Pair::start(over, gated(40, 10)).await;
    let mine = pair.one.client.with("authorization", "Bearer mine");
    let (id, first) = begin(&pair, &mine, 10).await;
    let (one, other) = (&pair.one.admin, &pair.other.admin);
    let list = async |admin: &Client| {
        let list = admin.get("/admin/streams?status=streaming").await;
        list.json().await["data"].as_array().expect("a list").len()
    };
    assert_eq!((list(one).await, list(other).await), (1, 0));
    let path = format!("/admin/streams/{id}");
    let shown = other.get(&path).await.json().await;
    assert_eq!(shown["status"], "streaming");
    assert_eq!(shown["owner_alive"], true);
    assert_eq!(shown["last_seq"], 11);
    let stopped = other.send("POST", &format!("{path}/stop"), "").await;
    let stopped = stopped.json().await;
    assert_eq!(stopped["status"], "stopped");
    assert!(stopped.get("text").is_none(), "{stopped}");
    first.all().await;
    let control = mine.with("x-streamweld-events", "control");
    let (body, _) = control.events(&id).await.all().await;
    let last = blocks(&body).pop().and_then(|block| block.data);
    assert!(last.expect("data").contains(r#""by":"admin""#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_the_owner_does_not_hear_is_no_answer_for_ever() {
    let pair = Pair::with(Over::Link, gated(40, 10), short_hold).await;
    let (id, first) = begin(&pair, &pair.one.client, 10).await;
    pair.link().lose_orders();
    let answer = stop(&pair.other.client, &id).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    let refused = (503, "journal_unavailable".to_owned());
    assert_eq!(answer.error_code().await, refused);
    assert_eq!(stop(&pair.one.client, &id).await.status, 200);
    assert_eq!(stop(&pair.other.client, &id).await.status, 200);
    first.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_an_owner_says_so() {
    let pair = Pair::start(Over::Link, gated(40, 10)).await;
    let other = &pair.other.client;
    let (id, _first) = begin(&pair, &pair.one.client, 10).await;
    let refused = (503, "owner_lost".to_owned());
    // One that waits for it is told as soon as it is lost.
    pair.link().lose_orders();
    let waits = other.request("POST", &format!("/v1/streams/{id}/stop"), "");
    let waits = other.begin(&waits).await;
    // It has been found, so that it is about to wait.
    wait_state(&pair.one.client, &id, |state| state["readers"] == 1).await;
    pair.link().lose(0);
    let answer = patience(Response::read(waits)).await.expect("an answer");
    assert_eq!(answer.error_code().await, refused);
    let answer = stop(other, &id).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.error_code().await, refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_a_journal_says_so() {
    let pair = Pair::with(Over::Link, gated(40, 10), short_hold).await;
    let (id, first) = begin(&pair, &pair.one.client, 10).await;
    pair.link().out_of_reach(1, true);
    let refused = (503, "journal_unavailable".to_owned());
    let answer = stop(&pair.other.client, &id).await;
    assert_eq!(answer.error_code().await, refused);
    pair.link().out_of_reach(1, false);
    assert_eq!(stop(&pair.other.client, &id).await.status, 200);
    first.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finding_and_stopping_hold_a_caller_for_one_time_together() {
    const HOLD: Duration = Duration::from_secs(4);
    let hold = |config: &mut Config| config.edge.hold = HOLD;
    let pair = Pair::with(Over::Link, gated(40, 10), hold).await;
    let (id, first) = begin(&pair, &pair.one.client, 10).await;
    pair.link().lose_orders();
    pair.link().out_of_reach(1, true);
    let (begun, back) = (Instant::now(), sleep(HOLD * 3 / 4));
    let found_late = async {
        back.await;
        pair.link().out_of_reach(1, false);
    };
    let (answer, ()) = tokio::join!(stop(&pair.other.client, &id), found_late);
    let refused = (503, "journal_unavailable".to_owned());
    assert_eq!(answer.error_code().await, refused);
    assert!(begun.elapsed() < HOLD * 3 / 2, "{:?}", begun.elapsed());
    assert_eq!(stop(&pair.one.client, &id).await.status, 200);
    first.all().await;
}
