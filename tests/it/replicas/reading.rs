//! Reading what another replica writes.

use serde_json::Value;
use streamweld_mock::Script;
use streamweld_tests::{
    CHAT, Client, End, Over, Pair, Response, Way, ends, patience, wait_end, wait_seq, wait_state,
};

use super::{PATH, begin, gated, short_hold, stop, whole};

over_both! {
    a_cut_reader_goes_on_at_the_other_replica_to_the_byte
    every_way_of_resuming_is_the_same_on_both
    many_read_on_both_and_see_the_same
    an_end_looks_the_same_on_both
    strangers_are_told_nothing_on_either
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
