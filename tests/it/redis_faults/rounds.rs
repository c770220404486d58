//! Rounds without a fault but those of clients: begin at one replica, be cut anywhere, go on at the other, with many
//! generations at once over one Redis. The choices follow from the number of the round.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{Client, End, Over, PairSetup, Way, numbered, state};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::PATH;
use crate::rounds::{Dice, read};

const ROUNDS: u64 = 300;
/// How many rounds run at once.
const ABREAST: usize = 24;

fn script() -> Script {
    Script::tokens(400).id("fixed")
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_cut_go_on_at_the_other_replica_to_the_byte() {
    let pair = PairSetup::new(Over::Redis, script())
        .keep_requests(1)
        .start()
        .await;
    let live = Arc::new(AtomicUsize::new(0));
    let room = Arc::new(Semaphore::new(ABREAST));
    let mut rounds = JoinSet::new();
    for number in 0..ROUNDS {
        let place = Arc::clone(&room).acquire_owned().await.expect("open");
        let clients = [&pair.one.client, &pair.other.client].map(Clone::clone);
        let live = Arc::clone(&live);
        rounds.spawn(async move {
            round(number, clients, &live).await;
            drop(place);
        });
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
    assert_eq!(pair.mock.recorder().count() as u64, ROUNDS);
    let live = live.load(Ordering::Relaxed);
    assert!(
        live > 10,
        "the rounds are about generations that run: {live}"
    );
}

async fn round(number: u64, clients: [Client; 2], live: &AtomicUsize) {
    let mut dice = Dice(number);
    let mut at = dice.up_to(1);
    let tokens = dice.up_to(200) + 40;
    let question =
        format!(r#"{{"model":"m","stream":true,"max_tokens":{tokens},"user":"round {number}"}}"#);
    let ask = Ask::read(Dialect::OpenAiChat, question.as_bytes(), 1);
    let events = script().expected(&ask);

    let response = clients[at].send("POST", PATH, &question).await;
    assert_eq!(
        response.header("x-streamweld-durability"),
        Some("durable; level=async")
    );
    let id = response.id();
    let expected = numbered(&id, &events);
    let (mut held, mut count) = read(response.body, dice.up_to(events.len()), &mut dice).await;
    if number % 3 == 0 && state(&clients[at], &id).await["terminal"].is_null() {
        live.fetch_add(1, Ordering::Relaxed);
    }
    loop {
        at = 1 - at;
        let seq = if count == 0 { 0 } else { count + 1 };
        let way = Way::ALL[dice.up_to(Way::ALL.len() - 1)];
        let cursor = format!("{id}:{seq}");
        let response = way.resume(&clients[at], &cursor, (PATH, &question)).await;
        if response.status == 204 {
            break;
        }
        assert_eq!(response.status, 200, "round {number}: {way:?} at {cursor}");
        let stays = dice.up_to(2) == 0;
        let most = if stays { usize::MAX } else { dice.up_to(60) };
        let (more, read) = read(response.body, most, &mut dice).await;
        held.extend(more);
        count += read;
        if stays {
            break;
        }
    }
    assert!(held == expected, "round {number}: it differs");
    let (body, end) = clients[1 - at].events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    assert!(body == expected, "round {number}: a read at once differs");
}
