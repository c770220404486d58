//! Replicas that are killed at each point between an event and its readers: real processes over a real Redis.
//!
//! A relay between the replica and Redis makes the world stand still at one command; then the process is killed.
//! Whatever stands in Redis is what another replica shows, to the byte, and nobody has seen an id that does not stand.

use std::sync::Arc;
use std::time::Duration;

use streamweld_journal_redis::testing::Server;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{
    Block, Client, End, Halt, Process, Response, Tap, blocks, ends, is_command, patience, wait_seq,
    wait_state,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Reading, key, whole};

/// When a replica is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Its append has not reached Redis.
    BeforeAppend,
    /// Its append stands, and it does not know.
    Appended,
    /// It has just been told.
    Told,
    /// Its own readers have the event, those elsewhere do not.
    Shown,
    /// All readers have it.
    Published,
    /// Its end has not reached Redis.
    BeforeEnd,
    /// Its end stands, and it does not know.
    Ended,
}

impl Point {
    const ALL: [Self; 7] = [
        Self::BeforeAppend,
        Self::Appended,
        Self::Told,
        Self::Shown,
        Self::Published,
        Self::BeforeEnd,
        Self::Ended,
    ];

    /// Makes the world stand still there, as far as that takes the world. What the replica does for answers of others, whose
    /// owners are killed as well, is not meant.
    fn set(self, tap: &Tap, id: &str) {
        let (halt, name) = match self {
            Self::BeforeAppend => (Halt::Before, "XADD"),
            Self::Appended => (Halt::Unanswered, "XADD"),
            Self::Told => (Halt::Answered, "XADD"),
            Self::Shown => (Halt::Before, "PUBLISH"),
            Self::Published => return,
            // Ends are scripts, and a running generation has no other.
            Self::BeforeEnd => (Halt::Before, "EVALSHA"),
            Self::Ended => (Halt::Unanswered, "EVALSHA"),
        };
        let id = id.to_owned();
        tap.halt(halt, move |it| {
            is_command(it, name) && memchr::memmem::find(it, id.as_bytes()).is_some()
        });
    }

    /// Of `events` that the backend has sent, one after the other, how many stand.
    fn stands(self, events: usize) -> usize {
        match self {
            Self::BeforeAppend => events - 1,
            _ => events,
        }
    }
}

const TOKENS: usize = 8;
/// As many events: the role, the words, the finish. The sentinel goes with the end.
const EVENTS: usize = TOKENS + 2;

/// What all rounds share.
struct Ground {
    mock: Mock,
    redis: Server,
    survivor: Client,
}

fn replica(mock: &Mock, journal: &str) -> Process {
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal={journal}");
    Process::serve(&[&backend, &journal, "--presence-lease=4s"])
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_shows_just_what_a_killed_one_has_left() {
    let mock = Mock::start(Script::new()).await.expect("a port");
    let redis = Server::new().await;
    let mut survivor = replica(&mock, &redis.url());
    let ground = Arc::new(Ground {
        survivor: survivor.client().await,
        mock,
        redis,
    });
    // Redis knows the scripts from here on, the one of the end too.
    let warm = ground.survivor.chat().await;
    assert_eq!(warm.all().await.1, End::Proper);
    let mut rounds = JoinSet::new();
    for point in Point::ALL {
        let at: &[usize] = match point {
            Point::BeforeEnd | Point::Ended => &[EVENTS],
            _ => &[2, 3, 7],
        };
        for &events in at {
            rounds.spawn(round(Arc::clone(&ground), point, events));
        }
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
}

async fn round(ground: Arc<Ground>, point: Point, events: usize) {
    let what = format!("{point:?} with event {events}");
    let tap = Tap::start(&ground.redis.address(), Duration::ZERO).await;
    let mut victim = replica(&ground.mock, &tap.url());
    // A gate of its own, because a killed replica leaves an answer behind that still waits at it.
    let gate = format!("{point:?} {events}");
    let script = Script::tokens(TOKENS).id("fixed").step_gate(&gate);
    let client = victim.client().await;
    let response = ask(&client, &script).await;
    let id = response.id();
    let whole = whole(&script, &id);
    let mut first = Reading::begin(response, 0).await;
    let mut there = Reading::begin(ground.survivor.events(&id).await, 0).await;
    // Each event is a batch of its own; when the first is here, the owner knows of its reader elsewhere.
    for seq in 2..events as u64 + 1 {
        ground.mock.gates().step(&gate);
        first.more(1).await;
        there.more(1).await;
        wait_seq(&ground.survivor, &id, seq).await;
    }
    point.set(&tap, &id);
    ground.mock.gates().step(&gate);
    match point {
        Point::BeforeAppend | Point::Told => tap.halted().await,
        Point::Appended => {
            tap.halted().await;
            stand(&ground.redis, &id, events + 1).await;
        }
        Point::Shown => {
            tap.halted().await;
            first.more(1).await;
        }
        Point::Published => {
            first.more(1).await;
            there.more(1).await;
        }
        Point::BeforeEnd | Point::Ended => {
            first.more(1).await;
            there.more(1).await;
            // The sentinel.
            ground.mock.gates().step(&gate);
            tap.halted().await;
        }
    }
    victim.signal("KILL");
    victim.ended().await;

    // Its own client holds no more than what stands, and no end.
    let stands = point.stands(events);
    let (held, end) = first.rest().await;
    assert_ne!(end, End::Proper, "{what}: a part is no whole");
    let shown = blocks(&held);
    let seen = shown.iter().take_while(|block| block.id.is_some()).count();
    // On a busy machine its journal may have counted as away by then.
    let is_bare = |block: &Block| block.id.is_none();
    assert!(shown[seen..].iter().all(is_bare), "{what}: its client");
    assert_eq!(shown[..seen], blocks(&whole)[..seen], "{what}: its client");
    assert!(seen <= stands, "{what}: an id that does not stand");

    if point == Point::Ended {
        assert!(there.rest().await == (whole.clone(), End::Proper), "{what}");
        let state = wait_state(&ground.survivor, &id, |it| !it["terminal"].is_null()).await;
        assert_eq!(state["status"], "done", "{what}");
        let late = ground.survivor.events(&id).await;
        assert!(late.all().await == (whole, End::Proper), "{what}");
        return;
    }
    let prefix = &whole[..ends(&whole)[stands - 1]];
    let missing = stands - blocks(&there.held).len();
    there.more(missing).await;
    assert!(there.held == prefix, "{what}: who was there");
    let late = Reading::begin(ground.survivor.events(&id).await, stands).await;
    assert!(late.held == prefix, "{what}: who comes late");
    let back = ground
        .survivor
        .with("last-event-id", &format!("{id}:{}", seen + 1));
    let back = Reading::begin(back.events(&id).await, stands - seen).await;
    let kept = seen.checked_sub(1).map_or(0, |last| ends(&whole)[last]);
    assert!(
        [&whole[..kept], &back.held].concat() == prefix,
        "{what}: who comes back"
    );

    // It has one end, which all of them are told.
    let state = wait_state(&ground.survivor, &id, |it| !it["terminal"].is_null()).await;
    assert_eq!(state["terminal"]["code"], "owner_lost", "{what}");
    for reading in [there, late, back] {
        let shown = blocks(&reading.held).len();
        let (held, end) = reading.rest().await;
        assert_eq!(end, End::Proper, "{what}");
        let [form] = &blocks(&held)[shown..] else {
            panic!("{what}: more than an end")
        };
        let data = form.data.as_deref().expect("data");
        assert!(data.contains("owner_lost"), "{what}: {data}");
    }
}

async fn ask(client: &Client, script: &Script) -> Response {
    let script = serde_json::to_string(script).expect("a script");
    client.with("x-mock-script", &script).chat().await
}

/// Waits until the log has so many records.
async fn stand(redis: &Server, id: &str, records: usize) {
    let log = key(id, "log");
    let stands = async {
        while redis.cli(&["XLEN", &log]).await != records.to_string() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(stands).await;
}
