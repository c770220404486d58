//! The scripts and commands in Redis, and the memory journal, which decides by `streamweld_journal::rules`: whatever is
//! asked of them in whatever order, they answer alike.
//!
//! Three replicas write one log as they please. In Redis each has a journal of its own; in memory they share one. What a
//! replica does not know any more it reads back first, as an owner does: an outcome that is unknown, or a last entry that
//! is another than the expected one, is only what it seemed like from there.

use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use streamweld_journal::{
    Epoch, Journal, Kind, Memory, Open, Outcome, Refusal, Seq, StreamId, Tail, TerminalParts,
    Window, WindowConfig,
};
use streamweld_journal_redis::RedisJournal;
use streamweld_journal_redis::testing::Server;

use crate::connect::connect;

const REPLICAS: usize = 3;
/// Entries of a window before its terminal.
const ENTRIES: u64 = 40;

/// What a replica asks for. Places are told from the last entry: 0 is that one, -1 the one before.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Open,
    /// Behind this place, so many.
    Append(i64, u64),
    Finish(i64),
    /// From this place, to so much higher an epoch than its own; 0 is its own.
    Adopt(i64, u32),
    Tail,
    /// It takes itself for the owner under an epoch that nobody has.
    Imagine,
}

/// Mostly what an owner would ask for, by whoever it is.
fn asks() -> impl Strategy<Value = Vec<(usize, Ask)>> {
    let place = || prop_oneof![4 => Just(0_i64), 1 => -2..=2_i64];
    let ask = prop_oneof![
        2 => Just(Ask::Open),
        24 => (place(), 1_u64..=3).prop_map(|(after, count)| Ask::Append(after, count)),
        1 => place().prop_map(Ask::Finish),
        8 => (place(), 0_u32..=3).prop_map(|(last, above)| Ask::Adopt(last, above)),
        4 => Just(Ask::Tail),
        1 => Just(Ask::Imagine),
    ];
    prop::collection::vec((0..REPLICAS, ask), 1..60)
}

/// A replica over either journal.
struct Replica {
    epoch: Epoch,
    window: Arc<Window>,
}

impl Replica {
    fn new(id: StreamId, epoch: Epoch) -> Self {
        let now = SystemTime::UNIX_EPOCH;
        let window = Window::new(id, epoch, now, WindowConfig::default());
        for seq in 1..=ENTRIES {
            let kind = if seq == 1 { Kind::Open } else { Kind::Event };
            let mut staging = window.stage(now);
            staging.push(kind, |out| out.extend_from_slice(b"data: {}\n"));
        }
        let terminal = TerminalParts {
            kind: Kind::Done,
            code: None,
            lines: b"event: streamweld.done\ndata: {}\n".to_vec(),
            ending: Vec::new(),
            id_at: None,
        };
        window.stage_terminal(now, terminal);
        Self { epoch, window }
    }
}

/// What it was answered, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Opened(bool),
    Changed(Outcome<Refusal>),
    Stands(Option<(Epoch, Seq, bool)>),
}

async fn ask(journal: &dyn Journal, replica: &Replica, ask: Ask, last: Seq) -> Told {
    let (window, now) = (&replica.window, SystemTime::now());
    let at = |place: i64| last.get().saturating_add_signed(place).min(ENTRIES - 1);
    match ask {
        Ask::Open => {
            let owner = Open { access: [7; 32] };
            Told::Opened(journal.open(window, &owner, now).await == Outcome::Yes)
        }
        Ask::Append(after, count) => {
            let (after, through) = (at(after), (at(after) + count).min(ENTRIES));
            let append = journal.append(window, Seq::new(after), Seq::new(through));
            Told::Changed(append.await)
        }
        Ask::Finish(after) => Told::Changed(journal.finish(window, Seq::new(at(after)), now).await),
        Ask::Adopt(place, above) => {
            let epoch = Epoch::new(replica.epoch.get() + above).unwrap();
            Told::Changed(
                journal
                    .adopt(window.id(), Seq::new(at(place)), epoch, now)
                    .await,
            )
        }
        Ask::Tail | Ask::Imagine => Told::Stands(match journal.tail(window.id()).await.unwrap() {
            Tail::None => None,
            Tail::Last {
                epoch,
                last,
                terminal,
                ..
            } => Some((epoch, last, terminal)),
        }),
    }
}

/// Asks again after reading back, for as long as there is a doubt.
async fn ask_surely(journal: &dyn Journal, replica: &Replica, asked: Ask, last: Seq) -> Told {
    let mut told = ask(journal, replica, asked, last).await;
    for _ in 0..2 {
        let is_doubtful = matches!(
            told,
            Told::Changed(Outcome::Unknown | Outcome::No(Refusal::Unexpected { .. }))
        );
        if !is_doubtful {
            break;
        }
        _ = journal.tail(replica.window.id()).await;
        told = ask(journal, replica, asked, last).await;
    }
    told
}

async fn answer_alike(
    redis: &[RedisJournal],
    asked: &[(usize, Ask)],
) -> Result<[usize; 2], TestCaseError> {
    let memory = Memory::default();
    let id = StreamId::generate(SystemTime::now());
    let first = || Replica::new(id, Epoch::FIRST);
    let mut here: Vec<Replica> = (0..REPLICAS).map(|_| first()).collect();
    let mut there: Vec<Replica> = (0..REPLICAS).map(|_| first()).collect();
    // Only one of them may have opened it; the others have an epoch that was never the log's.
    let mut opened = None;
    let (mut counts, mut last) = ([0, 0], Seq::ZERO);
    for (step, (name, asked)) in asked.iter().enumerate() {
        let name = *name;
        let is_first = opened.is_none_or(|by| by == name);
        if here[name].epoch == Epoch::FIRST && !is_first || matches!(asked, Ask::Imagine) {
            // Nobody else comes to it by adopting.
            let imagined = Epoch::new(1000 * (step as u32 + 1)).unwrap();
            (here[name], there[name]) = (Replica::new(id, imagined), Replica::new(id, imagined));
        }
        let in_memory = ask_surely(&memory, &here[name], *asked, last).await;
        let in_redis = ask_surely(&redis[name], &there[name], *asked, last).await;
        prop_assert_eq!(
            &in_memory,
            &in_redis,
            "{:?} of {} in step {}",
            asked,
            name,
            step
        );
        match (asked, in_memory) {
            (Ask::Open, Told::Opened(true)) => opened = Some(name),
            (Ask::Adopt(_, above), Told::Changed(Outcome::Yes)) => {
                let epoch = Epoch::new(here[name].epoch.get() + above).unwrap();
                (here[name], there[name]) = (Replica::new(id, epoch), Replica::new(id, epoch));
                counts[0] += 1;
            }
            (_, Told::Changed(Outcome::Yes)) => counts[1] += 1,
            _ => {}
        }
        let stands = ask(&memory, &here[name], Ask::Tail, last).await;
        if let Told::Stands(Some((_, stands, _))) = stands {
            last = stands;
        }
        let there = ask(&redis[name], &there[name], Ask::Tail, last).await;
        prop_assert_eq!(stands, there);
    }
    Ok(counts)
}

#[test]
fn redis_and_memory_answer_alike() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_server, redis) = runtime.block_on(async {
        let server = Server::new().await;
        let mut redis = Vec::new();
        for _ in 0..REPLICAS {
            redis.push(connect(&server).await);
        }
        (server, redis)
    });
    let config = Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let counts = std::cell::Cell::new([0, 0]);
    let result = runner.run(&asks(), |asked| {
        let [adopted, changed] = runtime.block_on(answer_alike(&redis, &asked))?;
        let [before, others] = counts.get();
        counts.set([before + adopted, others + changed]);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Else hardly anything was compared.
    let [adopted, changed] = counts.get();
    assert!(
        adopted > 20 && changed > 100,
        "{adopted} adoptions, {changed} others"
    );
}
