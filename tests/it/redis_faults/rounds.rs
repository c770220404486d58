//! Rounds without a fault but those of clients: begin at one replica, be cut anywhere, go on at another, once or many
//! times, while it runs and behind its end, with many generations at once over one Redis, or over a cluster.
//!
//! The choices follow from the number of the round, so that a round that fails can be run again alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    Body, Client, End, Over, PairSetup, Way, blocks, ends, numbered, state, wait_end,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{NEVER, PATH, patient};
use crate::rounds::{Dice, leave, read};

const ROUNDS: u64 = 1_000;
/// How many rounds run at once.
const ABREAST: usize = 16;

const LONG: Duration = Duration::from_secs(20);

fn script() -> Script {
    Script::tokens(400).id("fixed")
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_cut_go_on_at_the_other_of_two_replicas_to_the_byte() {
    check(Over::Redis, 0, 0..ROUNDS / 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_cut_go_on_at_another_of_three_replicas_to_the_byte() {
    check(Over::Redis, 1, ROUNDS / 2..ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_cut_go_on_at_the_other_replica_over_a_cluster_too() {
    check(Over::Cluster, 0, ROUNDS..ROUNDS + 300).await;
}

/// Some of the rounds, with so many replicas beside two.
async fn check(over: Over, more: usize, numbers: std::ops::Range<u64>) {
    // A machine that is busy for some seconds is no fault of the journal here.
    let pair = patient(PairSetup::new(over, script()), NEVER)
        .redis(|redis| redis.timing.answer = LONG)
        .config(|config| config.edge.hold = LONG)
        .keep_requests(1)
        .more(more)
        .start()
        .await;
    let seen = Arc::new(Seen::default());
    let room = Arc::new(Semaphore::new(ABREAST));
    let mut rounds = JoinSet::new();
    for number in numbers.clone() {
        let place = Arc::clone(&room).acquire_owned().await.expect("open");
        let round = Round {
            number,
            dice: Dice(number),
            clients: pair.clients(),
            seen: Arc::clone(&seen),
        };
        rounds.spawn(async move {
            round.run().await;
            drop(place);
        });
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
    assert!(pair.mock.recorder().count() >= numbers.count());
    // That the rounds are about what they should be about.
    let Seen { live, ended, torn } = &*seen;
    for (what, count) in [("live", live), ("ended", ended), ("torn", torn)] {
        let count = count.load(Ordering::Relaxed);
        assert!(count > 50, "{count} comers found it {what}");
    }
}

/// How often a reader came back to what still ran, to what had ended, and with a piece of a block in its hands.
#[derive(Default)]
struct Seen {
    live: AtomicUsize,
    ended: AtomicUsize,
    torn: AtomicUsize,
}

struct Round {
    number: u64,
    dice: Dice,
    clients: Vec<Client>,
    seen: Arc<Seen>,
}

impl Round {
    async fn run(mut self) {
        let number = self.number;
        let mut at = self.dice.up_to(self.clients.len() - 1);
        let tokens = self.dice.up_to(200) + 40;
        let question = format!(
            r#"{{"model":"m","stream":true,"max_tokens":{tokens},"user":"round {number}"}}"#
        );
        let ask = Ask::read(Dialect::OpenAiChat, question.as_bytes(), 1);
        let events = script().expected(&ask);

        // Some are still told when their reader comes back.
        let pace = ["0ms", "0ms", "1ms"][self.dice.up_to(2)];
        let client = self.clients[at].with("x-mock-script", &format!(r#"{{"pace":"{pace}"}}"#));
        let response = loop {
            let response = client.send("POST", PATH, &question).await;
            // With every core busy an opening may take too long.
            if response.is_durable() {
                break response;
            }
        };
        let id = response.id();
        let expected = numbered(&id, &events);
        let (mut held, mut count) = self.cut(response.body, events.len(), &expected).await;
        // Some come back only when all is over.
        if self.dice.up_to(3) == 0 {
            wait_end(&self.clients[at], &id).await;
        }
        // Most once or twice, a few often.
        let mut cuts = self.dice.up_to(2) + 3 * (self.dice.up_to(9) / 9);
        loop {
            let others = self.clients.len() - 1;
            at = (at + 1 + self.dice.up_to(others - 1)) % self.clients.len();
            let client = &self.clients[at];
            if number % 3 == 0 {
                let ended = !state(client, &id).await["terminal"].is_null();
                let seen = [&self.seen.live, &self.seen.ended][usize::from(ended)];
                seen.fetch_add(1, Ordering::Relaxed);
            }
            let seq = if count == 0 { 0 } else { count + 1 };
            let way = Way::ALL[self.dice.up_to(Way::ALL.len() - 1)];
            let cursor = format!("{id}:{seq}");
            let response = way.resume(client, &cursor, (PATH, &question)).await;
            if response.status == 204 {
                break;
            }
            if response.status != 200 {
                let error = response.json().await;
                panic!("round {number}: {way:?} at {cursor}: {error}");
            }
            if cuts == 0 {
                let (rest, end) = response.all().await;
                assert_eq!(end, End::Proper, "round {number}: {way:?} at {cursor}");
                held.extend(rest);
                break;
            }
            cuts -= 1;
            let rest = &expected[held.len()..];
            let (more, events) = self.cut(response.body, 60, rest).await;
            held.extend(more);
            count += events;
        }
        assert_same(&held, &expected, &format!("round {number}"));
        // Now and then at all of them.
        let at_once = if number % 4 == 0 {
            self.clients.len()
        } else {
            1
        };
        for client in self.clients.iter().cycle().skip(at).take(at_once) {
            let (body, end) = client.events(&id).await.all().await;
            assert_eq!(end, End::Proper, "round {number}");
            assert_same(&body, &expected, &format!("round {number}, at once"));
        }
    }

    /// Reads up to so many events, or about so many bytes as they are, and breaks off. Gives what a client has of it,
    /// which ends with the last whole block, and how many events that is.
    async fn cut(&mut self, body: Body, events: usize, expected: &[u8]) -> (Vec<u8>, usize) {
        if self.dice.up_to(1) == 0 {
            let most = self.dice.up_to(events);
            return read(body, most, &mut self.dice).await;
        }
        let ends_there = ends(expected);
        let length = ends_there.get(events.max(1) - 1).or(ends_there.last());
        let most = self.dice.up_to(length.copied().unwrap_or_default());
        let mut some = read_bytes(body, most, &mut self.dice).await;
        let number = self.number;
        assert!(
            expected.starts_with(&some),
            "round {number}: a cut one differs"
        );
        let whole = ends_there.partition_point(|end| *end <= some.len());
        let last = whole.checked_sub(1).map_or(0, |last| ends_there[last]);
        if last < some.len() {
            self.seen.torn.fetch_add(1, Ordering::Relaxed);
        }
        some.truncate(last);
        (some, whole)
    }
}

/// Reads at most so many bytes and leaves; what came behind them is forgotten.
async fn read_bytes(mut body: Body, most: usize, dice: &mut Dice) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < most {
        let Some(chunk) = body.chunk().await else {
            assert_eq!(body.end(), Some(End::Proper));
            return all;
        };
        all.extend(chunk);
    }
    leave(body, dice);
    all.truncate(most);
    all
}

/// Says where they differ first, and not all that they hold.
#[track_caller]
fn assert_same(given: &[u8], expected: &[u8], what: &str) {
    if given != expected {
        let (given, expected) = (blocks(given), blocks(expected));
        let same = given
            .iter()
            .zip(&expected)
            .take_while(|(one, other)| one == other);
        let at = same.count();
        let (one, other) = (given.get(at), expected.get(at));
        panic!("{what}: event {at} is {one:?}, and not {other:?}");
    }
}
