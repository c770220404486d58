//! A thousand rounds: drop the reader after a random event while the backend writes as fast as it can, come back by
//! each of the three ways, and again where the dice say so. No gap, no duplicate, byte-equal to an uninterrupted read,
//! and to what the mock is known to say.
//!
//! The choices follow from the number of the round, so that a round that fails can be run again alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use streamweld_mock::{Ask, Dialect, MockConfig, Script};
use streamweld_tests::{Body, Client, End, Harness, Setup, Way, ends, numbered, state};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const ROUNDS: u64 = 1_000;
/// How many rounds run at once.
const ABREAST: usize = 24;
const PATH: &str = "/v1/chat/completions";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_dropped_readers_come_back_to_the_same_bytes() {
    let harness = Setup::new(script())
        .mock(MockConfig {
            default: script(),
            keep_requests: 1,
            ..MockConfig::default()
        })
        .start()
        .await;
    let story = Arc::new(Story::new(&harness));
    let room = Arc::new(Semaphore::new(ABREAST));
    let mut rounds = JoinSet::new();
    for round in 0..ROUNDS {
        let place = Arc::clone(&room).acquire_owned().await.expect("open");
        let story = Arc::clone(&story);
        rounds.spawn(async move {
            story.round(round).await;
            drop(place);
        });
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
    assert_eq!(
        harness.mock.recorder().count() as u64,
        ROUNDS,
        "nothing was asked twice"
    );
    let live = story.live.load(Ordering::Relaxed);
    assert!(
        live > 10,
        "the rounds are about generations that run: {live} of 100"
    );
}

fn script() -> Script {
    Script::tokens(400).id("fixed")
}

struct Story {
    client: Client,
    /// In how many of the rounds that looked the generation still ran when its reader came back.
    live: AtomicUsize,
}

impl Story {
    fn new(harness: &Harness) -> Self {
        Self {
            client: harness.client.clone(),
            live: AtomicUsize::new(0),
        }
    }

    async fn round(&self, round: u64) {
        let mut dice = Dice(round);
        let tokens = dice.up_to(200) + 40;
        let question = format!(
            r#"{{"model":"m","stream":true,"max_tokens":{tokens},"user":"round {round}"}}"#
        );
        let ask = Ask::read(Dialect::OpenAiChat, question.as_bytes(), 1);
        let events = script().expected(&ask);

        let response = self.client.send("POST", PATH, &question).await;
        let id = response.id();
        let expected = numbered(&id, &events);
        let (seen, count) = read(response.body, dice.up_to(events.len()), &mut dice).await;
        assert_eq!(
            seen,
            &expected[..seen.len()],
            "round {round}, before the drop"
        );
        if round % 10 == 0 && state(&self.client, &id).await["terminal"].is_null() {
            self.live.fetch_add(1, Ordering::Relaxed);
        }

        let query = [Way::Query, Way::CamelQuery][dice.up_to(1)];
        let ways = [Way::Header, query, Way::Again];
        let mut comers = JoinSet::new();
        for way in ways {
            let (client, id, question) = (self.client.clone(), id.clone(), question.clone());
            let mut dice = Dice(dice.roll());
            let mut whole = seen.clone();
            comers.spawn(async move {
                let (mut way, mut count) = (way, count);
                loop {
                    // Without an event seen, the start is where it stood.
                    let seq = if count == 0 { 0 } else { count + 1 };
                    let cursor = format!("{id}:{seq}");
                    let response = way.resume(&client, &cursor, (PATH, &question)).await;
                    if response.status == 204 {
                        return whole;
                    }
                    assert_eq!(response.status, 200, "{way:?} at {cursor}");
                    let stays = dice.up_to(2) > 0;
                    let most = if stays { usize::MAX } else { dice.up_to(60) };
                    let (more, read) = read(response.body, most, &mut dice).await;
                    whole.extend_from_slice(&more);
                    count += read;
                    way = ways[dice.up_to(2)];
                    if stays {
                        return whole;
                    }
                }
            });
        }
        // The mock tells beforehand what that is; that a reader sees just this is looked at now and then.
        if round % 4 == 0 {
            let (uninterrupted, end) = self.client.events(&id).await.all().await;
            assert_eq!(end, End::Proper);
            assert!(
                uninterrupted == expected,
                "round {round}: the uninterrupted read differs"
            );
        }
        while let Some(whole) = comers.join_next().await {
            assert!(
                whole.expect("comes back") == expected,
                "round {round}: a resumed read differs"
            );
        }
    }
}

/// Reads at most so many events and leaves, politely or not; what came in the same chunk behind them is forgotten, as
/// by a client that was killed there. Gives the bytes, and how many events they are.
pub(crate) async fn read(mut body: Body, events: usize, dice: &mut Dice) -> (Vec<u8>, usize) {
    let (mut all, mut count) = (Vec::new(), 0);
    while count < events {
        let Some(chunk) = body.chunk().await else {
            assert_eq!(body.end(), Some(End::Proper));
            return (all, count);
        };
        // A chunk holds whole blocks only.
        let ends = ends(&chunk);
        assert_eq!(ends.last(), Some(&chunk.len()));
        let taken = ends.len().min(events - count);
        if taken > 0 {
            all.extend_from_slice(&chunk[..ends[taken - 1]]);
        }
        count += taken;
    }
    leave(body, dice);
    (all, count)
}

/// Leaves, politely or not.
pub(crate) fn leave(body: Body, dice: &mut Dice) {
    let stream = body.into_stream();
    if dice.up_to(1) == 0 {
        let rude = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        rude.expect("a socket can be reset");
    }
}

/// SplitMix64: even choices from a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 to `most`, both included.
    pub(crate) fn up_to(&mut self, most: usize) -> usize {
        (self.roll() % (most as u64 + 1)) as usize
    }
}
