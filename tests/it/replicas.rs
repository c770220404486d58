//! Several replicas over one journal (protocol.md 8.5): to a client it makes no difference which of them answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use streamweld_generation::OrphanPolicy;
use streamweld_mock::{Ask, Dialect, Outcome, Script};
use streamweld_server::Config;
use streamweld_tests::{
    CHAT, Client, End, Over, Pair, Response, Way, blocks, ends, metric, numbered, patience, state,
    wait_end, wait_seq, wait_state,
};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const PATH: &str = "/v1/chat/completions";
const KEY: &str = "idempotency-key";

/// Each of these stories is told over journals that are linked in this process, and over a real Redis.
macro_rules! over_both {
    ($($story:ident)*) => {
        mod linked {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(Over::Link).await;
                }
            )*
        }

        mod redis {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(Over::Redis).await;
                }
            )*
        }
    };
}

over_both! {
    a_cut_reader_goes_on_at_the_other_replica_to_the_byte
    every_way_of_resuming_is_the_same_on_both
    many_read_on_both_and_see_the_same
    an_end_looks_the_same_on_both
    strangers_are_told_nothing_on_either
    a_stop_at_the_other_replica_is_a_stop
    an_operator_shows_and_stops_what_another_replica_owns
    a_reader_at_the_other_replica_keeps_a_cancel_away
    the_last_reader_that_leaves_the_other_replica_begins_the_wait
    one_key_on_both_at_once_is_one_request
    a_use_at_the_other_replica_waits_for_the_first_event
    a_use_at_the_other_replica_is_dispatched_when_the_key_is_free
    the_key_is_free_at_the_other_replica_while_the_answer_is_degraded
    another_body_is_refused_at_the_other_replica_too
    a_use_that_waits_is_refused_when_its_replica_shuts_down
}

/// Answers of so many words that stand still after `events` events, until the gate `go` opens.
fn gated(tokens: usize, events: usize) -> Script {
    Script::tokens(tokens).id("fixed").gate_after(events, "go")
}

/// What an uninterrupted reader of an answer to [`CHAT`] is given.
fn whole(script: &Script, id: &str) -> Vec<u8> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    numbered(id, &script.expected(&ask))
}

/// Short enough to be waited for.
fn short_hold(config: &mut Config) {
    config.edge.hold = Duration::from_millis(200);
}

async fn stop(client: &Client, id: &str) -> Response {
    let path = format!("/v1/streams/{id}/stop");
    client.send("POST", &path, "").await
}

/// Begins an answer at the first replica and reads so many events. Gives its id and its reader.
async fn begin(pair: &Pair, client: &Client, events: usize) -> (String, Response) {
    let mut response = client.chat().await;
    assert_eq!(response.status, 200);
    let id = response.id();
    response.body.blocks(events).await;
    wait_seq(client, &id, events as u64 + 1).await;
    assert_eq!(pair.mock.recorder().count(), 1);
    (id, response)
}

async fn a_cut_reader_goes_on_at_the_other_replica_to_the_byte(over: Over) {
    const GATE: usize = 100;
    for (turn, cut) in [1, 2, 7, 50, 99, GATE].into_iter().enumerate() {
        let script = gated(300, GATE);
        let pair = Pair::start(over, script.clone()).await;
        let (one, other) = (&pair.one.client, &pair.other.client);
        let again = (PATH, CHAT);
        let mut response = one.chat().await;
        let id = response.id();
        let expected = whole(&script, &id);
        let borders = ends(&expected);

        // What it holds for sure are the first blocks; a part of the next may have come.
        let seen = response.body.blocks(cut).await;
        assert!(expected.starts_with(&seen));
        response.leave().await;
        let mut held = expected[..borders[cut - 1]].to_vec();

        // While it runs, at the other one; then, before it goes on, back at the first.
        let at = |blocks: usize| format!("{id}:{}", blocks + 1);
        if cut < GATE {
            let way = Way::ALL[turn % Way::ALL.len()];
            let mut response = way.resume(other, &at(cut), again).await;
            assert_eq!((response.status, response.id()), (200, id.clone()));
            held.extend(response.body.blocks(GATE - cut).await);
            response.leave().await;
        }
        assert_eq!(held.len(), borders[GATE - 1]);
        let mut response = Way::Header.resume(other, &at(GATE), again).await;
        pair.mock.gates().release("go");
        held.extend(response.body.blocks(20).await);
        let (came, _) = (ends(&held).len(), response.leave().await);
        held.truncate(borders[came - 1]);
        let response = Way::Again.resume(one, &at(came), again).await;
        let (rest, end) = match response.status {
            204 => (Vec::new(), End::Proper),
            _ => response.all().await,
        };
        held.extend(rest);
        assert_eq!(end, End::Proper);
        assert!(held == expected, "cut after {cut}");
        assert_eq!(pair.mock.recorder().count(), 1);
    }
}

async fn every_way_of_resuming_is_the_same_on_both(over: Over) {
    let script = gated(40, 10);
    let pair = Pair::start(over, script.clone()).await;
    let (id, first) = begin(&pair, &pair.one.client, 10).await;
    let expected = whole(&script, &id);
    let from = ends(&expected)[3];
    let cursor = format!("{id}:5");
    let mut running = Vec::new();
    for client in [&pair.one.client, &pair.other.client] {
        for way in Way::ALL {
            running.push(way.resume(client, &cursor, (PATH, CHAT)).await);
        }
    }
    pair.mock.gates().release("go");
    first.all().await;
    for response in running {
        let durability = response.header("x-streamweld-durability");
        assert!(durability.is_some_and(|it| it.starts_with("durable")));
        assert_eq!(response.id(), id);
        let (rest, end) = response.all().await;
        assert_eq!(end, End::Proper);
        assert!(rest == expected[from..]);
    }
    for client in [&pair.one.client, &pair.other.client] {
        let last = wait_end(client, &id).await["last_seq"].clone();
        for way in Way::ALL {
            let response = way.resume(client, &cursor, (PATH, CHAT)).await;
            assert!(response.all().await.0 == expected[from..]);
            let behind = format!("{id}:{last}");
            let response = way.resume(client, &behind, (PATH, CHAT)).await;
            assert_eq!(response.status, 204);
        }
    }
    assert_eq!(pair.mock.recorder().count(), 1);
}

async fn many_read_on_both_and_see_the_same(over: Over) {
    const READERS: usize = 40;
    let script = gated(500, 20);
    let pair = Pair::start(over, script.clone()).await;
    let (id, first) = begin(&pair, &pair.one.client, 20).await;
    let expected = whole(&script, &id);
    let mut readers = Vec::new();
    for turn in 0..READERS {
        let client = [&pair.one.client, &pair.other.client][turn % 2].clone();
        let id = id.clone();
        readers.push(tokio::spawn(
            async move { client.events(&id).await.all().await },
        ));
    }
    let there = |state: &Value| state["readers"].as_u64() >= Some(2);
    wait_state(&pair.one.client, &id, there).await;
    pair.mock.gates().release("go");
    for reader in readers {
        let (body, end) = patience(reader).await.expect("no panic");
        assert_eq!(end, End::Proper);
        assert!(body == expected);
    }
    first.all().await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_ahead_of_this_replica_is_waited_for() {
    let script = gated(40, 10).gate_after(20, "more");
    let pair = Pair::with(Over::Link, script.clone(), short_hold).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, 10).await;
    let mut there = other.events(&id).await;
    there.body.blocks(10).await;
    pair.link().hold_copies(true);
    pair.mock.gates().release("go");
    wait_seq(one, &id, 21).await;
    // What this client has read at the first replica is on its way to the other one.
    let ahead = other.with("last-event-id", &format!("{id}:21"));
    let response = ahead.events(&id).await;
    assert_eq!(response.header("retry-after"), Some("1"));
    let refused = (503, "journal_unavailable".to_owned());
    assert_eq!(response.error_code().await, refused);
    // What nobody has read is no place, however long one waits.
    let never = other.with("last-event-id", &format!("{id}:22"));
    let refused = (409, "cursor_ahead".to_owned());
    assert_eq!(never.events(&id).await.error_code().await, refused);
    let later = format!("{id}:21~2");
    let never = other.with("last-event-id", &later);
    let refused = (409, "journal_regressed".to_owned());
    assert_eq!(never.events(&id).await.error_code().await, refused);

    let request = ahead.request("GET", &format!("/v1/streams/{id}/events"), "");
    let waits = ahead.begin(&request).await;
    pair.link().hold_copies(false);
    let response = patience(Response::read(waits)).await.expect("an answer");
    assert_eq!(response.status, 200);
    pair.mock.gates().release("more");
    let expected = whole(&script, &id);
    assert!(response.all().await.0 == expected[ends(&expected)[19]..]);
    assert_eq!(there.body.rest().await.1, End::Proper);
    assert_eq!(first.all().await.1, End::Proper);
}

/// How an answer ends for those who have read it from its start at each replica, and who come behind it.
async fn check_end(
    over: Over,
    script: Script,
    events: usize,
    end: impl AsyncFnOnce(&Pair, &str),
) -> Value {
    let pair = Pair::start(over, script).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, events).await;
    let control = |client: &Client| client.with("x-streamweld-events", "control");
    let mut running = Vec::new();
    for client in [one, other] {
        running.push((client.events(&id).await, control(client).events(&id).await));
    }
    end(&pair, &id).await;
    let mut seen = Vec::new();
    for (plain, control) in running {
        seen.push((plain.all().await, control.all().await));
    }
    first.all().await;
    assert_eq!(seen[0], seen[1]);
    let states = [wait_end(one, &id).await, wait_end(other, &id).await];
    assert_eq!(states[0], states[1]);
    assert_eq!(states[0]["owner_alive"], false);
    for client in [one, other] {
        let plain = client.events(&id).await.all().await;
        assert_eq!(
            (plain, control(client).events(&id).await.all().await),
            seen[0]
        );
        let behind = client.with("last-event-id", &format!("{id}:{}", states[0]["last_seq"]));
        assert_eq!(behind.events(&id).await.status, 204);
        assert_eq!(behind.chat().await.status, 204);
    }
    let [state, _] = states;
    state
}

async fn an_end_looks_the_same_on_both(over: Over) {
    let go = async |pair: &Pair, _: &str| pair.mock.gates().release("go");
    let done = check_end(over, gated(40, 10), 10, go).await;
    assert_eq!(done["status"], "done");
    let failed = check_end(over, gated(40, 10).error_after(20), 10, go).await;
    assert_eq!(failed["terminal"]["code"], "upstream_error");
    let cut = check_end(over, gated(40, 10).rst_after(20), 10, go).await;
    assert_eq!(cut["terminal"]["code"], "truncated");
    let at = async |pair: &Pair, id: &str| {
        assert_eq!(stop(&pair.other.client, id).await.status, 200);
    };
    let stopped = check_end(over, gated(40, 10), 10, at).await;
    assert_eq!(stopped["status"], "stopped");
}

async fn strangers_are_told_nothing_on_either(over: Over) {
    let pair = Pair::start(over, gated(40, 10)).await;
    let mine = |client: &Client| client.with("authorization", "Bearer mine");
    let (id, first) = begin(&pair, &mine(&pair.one.client), 10).await;
    let unknown = (404, "stream_not_found".to_owned());
    for client in [&pair.one.client, &pair.other.client] {
        let path = format!("/v1/streams/{id}");
        for stranger in [client.clone(), client.with("authorization", "Bearer x")] {
            assert_eq!(stranger.get(&path).await.error_code().await, unknown);
            assert_eq!(stranger.events(&id).await.error_code().await, unknown);
            assert_eq!(stop(&stranger, &id).await.error_code().await, unknown);
            let again = stranger.with("last-event-id", &format!("{id}:3"));
            assert_eq!(again.chat().await.error_code().await, unknown);
        }
        assert_eq!(mine(client).get(&path).await.status, 200);
    }
    pair.mock.gates().release("go");
    assert_eq!(first.all().await.1, End::Proper);
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

async fn a_reader_at_the_other_replica_keeps_a_cancel_away(over: Over) {
    let script = gated(40, 10);
    let change = |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::Cancel;
    let pair = Pair::with(over, script.clone(), change).await;
    let one = &pair.one.client;
    let (id, first) = begin(&pair, one, 10).await;
    let second = pair.other.client.events(&id).await;
    wait_state(one, &id, |state| state["readers"] == 2).await;
    first.leave().await;
    wait_state(one, &id, |state| state["readers"] == 1).await;
    pair.mock.gates().release("go");
    assert!(second.all().await == (whole(&script, &id), End::Proper));
    assert_eq!(wait_end(one, &id).await["status"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_asks_for_the_state_keeps_no_cancel_away() {
    let change = |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::Cancel;
    let pair = Pair::with(Over::Redis, gated(40, 10), change).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, 10).await;
    let asks = async {
        loop {
            assert_eq!(state(other, &id).await["stream_id"], id);
            assert_eq!(
                other.with("authorization", "x").events(&id).await.status,
                404
            );
        }
    };
    // They ask before, meanwhile and after.
    let asked = timeout(Duration::from_millis(500), asks).await;
    assert!(asked.is_err());
    assert_eq!(state(one, &id).await["readers"], 1);
    first.leave().await;
    let ended = wait_state(other, &id, |state| state["status"] == "error").await;
    assert_eq!(ended["terminal"]["code"], "orphan_cancelled");
}

async fn the_last_reader_that_leaves_the_other_replica_begins_the_wait(over: Over) {
    const AFTER: Duration = Duration::from_millis(50);
    let change =
        |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::CancelAfter(AFTER);
    let pair = Pair::with(over, gated(40, 10), change).await;
    let one = &pair.one.client;
    let (id, first) = begin(&pair, one, 10).await;
    let second = pair.other.client.events(&id).await;
    let third = pair.other.client.events(&id).await;
    wait_state(one, &id, |state| state["readers"] == 2).await;
    first.leave().await;
    second.leave().await;
    // The time itself is what this is about.
    sleep(AFTER * 4).await;
    assert_eq!(state(one, &id).await["status"], "streaming");
    let left = Instant::now();
    third.leave().await;
    let ended = wait_end(one, &id).await;
    assert_eq!(ended["terminal"]["code"], "orphan_cancelled");
    assert!(left.elapsed() >= AFTER);
    let ending = pair.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_shows_on_both_where_it_stands() {
    let pair = Pair::start(Over::Link, gated(40, 10)).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, 10).await;
    let readers = [other.events(&id).await, other.events(&id).await];
    let mut here = wait_state(one, &id, |state| state["readers"] == 2).await;
    let mut there = state(other, &id).await;
    assert_eq!(here["owner_alive"], true);
    assert_eq!(there["readers"], 2);
    assert_eq!(there["status"], "streaming");
    // How many read is each replica's own; everything else is the same.
    for state in [&mut here, &mut there] {
        state["readers"] = json!(null);
    }
    assert_eq!(here, there);
    assert_eq!(metric(&pair.one.admin, "streamweld_readers").await, 1);
    assert_eq!(metric(&pair.other.admin, "streamweld_readers").await, 2);
    pair.link().lose(0);
    let there = state(other, &id).await;
    assert_eq!(there["owner_alive"], false);
    assert_eq!(there["status"], "streaming");
    for reader in readers {
        assert_eq!(reader.all().await.1, End::Fin, "it is to come back");
    }
    pair.mock.gates().release("go");
    first.all().await;
    // Its end stands, whoever was taken for lost.
    wait_end(one, &id).await;
    assert_eq!(wait_end(other, &id).await, state(one, &id).await);
}

/// A use of the key at this replica, whose answer is left to come.
async fn used(client: &Client, path: &str, body: &str) -> TcpStream {
    let client = client.with(KEY, "k");
    client.begin(&client.request("POST", path, body)).await
}

async fn answer(stream: TcpStream) -> (String, Vec<u8>) {
    let response = patience(Response::read(stream)).await.expect("an answer");
    assert_eq!(response.status, 200);
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (id, body)
}

/// Nothing has been answered for longer than it takes to look.
async fn assert_waits(stream: &TcpStream) {
    let mut byte = [0];
    let peeked = timeout(Duration::from_millis(250), stream.peek(&mut byte)).await;
    assert!(peeked.is_err(), "it was answered");
}

async fn one_key_on_both_at_once_is_one_request(over: Over) {
    for path in [PATH, "/generic"] {
        let pair = Pair::start(over, Script::tokens(100).head_gate("head")).await;
        let mut uses = Vec::new();
        for turn in 0..40 {
            let client = [&pair.one.client, &pair.other.client][turn % 2];
            uses.push(used(client, path, CHAT).await);
        }
        pair.mock.recorder().wait_requests(1).await.expect("one");
        assert_waits(&uses[0]).await;
        assert_waits(&uses[1]).await;
        pair.mock.gates().release("head");
        let mut answers = Vec::new();
        for used in uses {
            answers.push(answer(used).await);
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(pair.mock.recorder().count(), 1);
        // And later, when it is over.
        for client in [&pair.one.client, &pair.other.client] {
            let later = answer(used(client, path, CHAT).await).await;
            assert_eq!(later, answers[0]);
        }
        assert_eq!(pair.mock.recorder().count(), 1);
    }
}

async fn a_use_at_the_other_replica_waits_for_the_first_event(over: Over) {
    let pair = Pair::start(over, Script::tokens(20).gate_after(0, "first")).await;
    let first = used(&pair.one.client, PATH, CHAT).await;
    let first = patience(Response::read(first)).await.expect("a head");
    let second = used(&pair.other.client, PATH, CHAT).await;
    assert_waits(&second).await;
    pair.mock.gates().release("first");
    assert_eq!(answer(second).await, (first.id(), first.all().await.0));
    assert_eq!(pair.mock.recorder().count(), 1);
}

async fn a_use_at_the_other_replica_is_dispatched_when_the_key_is_free(over: Over) {
    for path in [PATH, "/generic"] {
        let pair = Pair::start(over, Script::tokens(20)).await;
        pair.mock.push_script(Script::error(503).head_gate("head"));
        let first = used(&pair.one.client, path, CHAT).await;
        pair.mock.recorder().wait_requests(1).await.expect("sent");
        let second = used(&pair.other.client, path, CHAT).await;
        assert_waits(&second).await;
        assert_eq!(pair.mock.recorder().count(), 1);
        pair.mock.gates().release("head");
        let first = patience(Response::read(first)).await.expect("an answer");
        assert_eq!(first.status, 503);
        answer(second).await;
        let request = pair.mock.recorder().request(1).expect("recorded");
        assert_eq!(request.body, CHAT.as_bytes());
    }
}

async fn the_key_is_free_at_the_other_replica_while_the_answer_is_degraded(over: Over) {
    // No log gets room in this one.
    let change = |config: &mut Config| config.journal.total = 1;
    let pair = Pair::with(over, gated(20, 3), change).await;
    let mut uses = Vec::new();
    for client in [&pair.one.client, &pair.other.client] {
        let response = patience(Response::read(used(client, PATH, CHAT).await)).await;
        let response = response.expect("a head");
        assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
        uses.push(response);
    }
    pair.mock.gates().release("go");
    for response in uses {
        assert_eq!(response.all().await.1, End::Proper);
    }
    assert_eq!(pair.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_owner_died_frees_the_key() {
    const CLAIM: Duration = Duration::from_secs(1);
    let change = |config: &mut Config| config.journal.claim = CLAIM;
    let pair = Pair::with(Over::Link, Script::tokens(20), change).await;
    pair.mock.push_script(Script::tokens(20).head_gate("head"));
    let _first = used(&pair.one.client, "/generic", CHAT).await;
    pair.mock.recorder().wait_requests(1).await.expect("sent");
    let second = used(&pair.other.client, "/generic", CHAT).await;
    // While it is renewed it stands, however long that is.
    sleep(CLAIM * 3 / 2).await;
    assert_eq!(pair.mock.recorder().count(), 1);
    pair.link().out_of_reach(0, true);
    answer(second).await;
    assert_eq!(pair.mock.recorder().count(), 2);
}

async fn another_body_is_refused_at_the_other_replica_too(over: Over) {
    let pair = Pair::start(over, gated(40, 10)).await;
    let mine = pair.one.client.with(KEY, "k");
    let (id, first) = begin(&pair, &mine, 10).await;
    let theirs = pair.other.client.with(KEY, "k");
    let refused = (422, "idempotency_key_reused".to_owned());
    let body = CHAT.replace("hi", "ho");
    let answered = theirs.send("POST", PATH, &body).await;
    assert_eq!(answered.error_code().await, refused);
    pair.mock.gates().release("go");
    first.all().await;
    wait_end(&pair.one.client, &id).await;
    let answered = theirs.send("POST", PATH, &body).await;
    assert_eq!(answered.error_code().await, refused);
    assert_eq!(theirs.chat().await.id(), id);
    assert_eq!(pair.mock.recorder().count(), 1);
}

async fn a_use_that_waits_is_refused_when_its_replica_shuts_down(over: Over) {
    let mut pair = Pair::start(over, Script::tokens(20).head_gate("head")).await;
    let first = used(&pair.one.client, "/generic", CHAT).await;
    pair.mock.recorder().wait_requests(1).await.expect("sent");
    let second = used(&pair.other.client, "/generic", CHAT).await;
    assert_waits(&second).await;
    pair.other.begin_shutdown();
    let second = patience(Response::read(second)).await.expect("an answer");
    let refused = (503, "shutting_down".to_owned());
    assert_eq!(second.error_code().await, refused);
    pair.mock.gates().release("head");
    answer(first).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_answer_lost_its_owner_says_so() {
    let pair = Pair::start(Over::Link, gated(40, 10)).await;
    let mine = pair.one.client.with(KEY, "k");
    let (_id, _first) = begin(&pair, &mine, 10).await;
    pair.link().lose(0);
    let refused = (503, "owner_lost".to_owned());
    let answered = pair.other.client.with(KEY, "k").chat().await;
    assert_eq!(answered.error_code().await, refused);
    assert_eq!(pair.mock.recorder().count(), 1);
}
