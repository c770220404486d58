//! The scripts and commands in Redis, and the memory journal, which decides by `streamweld_journal::rules`: whatever is
//! asked of them in whatever order, they answer alike.
//!
//! Three replicas write one log as they please. In Redis each has a journal of its own; in memory they share one. What a
//! replica does not know any more it reads back first, as an owner does: an outcome that is unknown, a last entry that is
//! another than the expected one, or another writer, is only what it seemed like from there.

use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use streamweld_journal::{
    Adoption, Epoch, Journal, Kind, Memory, Open, Outcome, Refusal, Seq, StreamId, Tail,
    TerminalParts, Window, WindowConfig,
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
    /// From this place, in place of the writer that stands or of itself.
    Adopt(i64, Of),
    /// What it asked for last, as if there had been no answer.
    AdoptAgain,
    Tail,
    /// It takes itself for the owner under an epoch that nobody has.
    Imagine,
}

/// Whom a replica means to replace.
#[derive(Clone, Copy, Debug)]
enum Of {
    Writer,
    Itself,
}

/// Mostly what an owner would ask for, by whoever it is.
fn asks() -> impl Strategy<Value = Vec<(usize, Ask)>> {
    let place = || prop_oneof![4 => Just(0_i64), 1 => -2..=2_i64];
    let ask = prop_oneof![
        2 => Just(Ask::Open),
        24 => (place(), 1_u64..=3).prop_map(|(after, count)| Ask::Append(after, count)),
        1 => place().prop_map(Ask::Finish),
        8 => (place(), prop_oneof![4 => Just(Of::Writer), 1 => Just(Of::Itself)])
            .prop_map(|(last, of)| Ask::Adopt(last, of)),
        3 => Just(Ask::AdoptAgain),
        4 => Just(Ask::Tail),
        1 => Just(Ask::Imagine),
    ];
    prop::collection::vec((0..REPLICAS, ask), 1..60)
}

/// A replica over either journal.
struct Replica {
    epoch: Epoch,
    /// What it asked for last.
    adoption: Option<Adoption>,
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
        Self {
            epoch,
            adoption: None,
            window,
        }
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
        Ask::Adopt(..) | Ask::AdoptAgain => match replica.adoption {
            Some(adoption) => Told::Changed(journal.adopt(window.id(), adoption, now).await),
            None => Told::Opened(false),
        },
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
            Told::Changed(
                Outcome::Unknown | Outcome::No(Refusal::Unexpected { .. } | Refusal::Fenced { .. })
            )
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
    let (mut counts, mut writer, mut last) = ([0, 0], Epoch::FIRST, Seq::ZERO);
    // Nobody else comes to it, and it is above all there were.
    let fresh = |step: usize, of: u64| Epoch::new(1000 * (step as u64 + 1) + of).unwrap();
    for (step, (name, asked)) in asked.iter().enumerate() {
        let name = *name;
        let is_first = opened.is_none_or(|by| by == name);
        if here[name].epoch == Epoch::FIRST && !is_first || matches!(asked, Ask::Imagine) {
            let imagined = fresh(step, 0);
            (here[name], there[name]) = (Replica::new(id, imagined), Replica::new(id, imagined));
        }
        if let Ask::Adopt(place, of) = asked {
            let replaces = match of {
                Of::Writer => writer,
                Of::Itself => here[name].epoch,
            };
            let at = Seq::new(last.get().saturating_add_signed(*place));
            let adoption = Some(Adoption::new(replaces, at, fresh(step, 1)));
            (here[name].adoption, there[name].adoption) = (adoption, adoption);
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
            (Ask::Adopt(..) | Ask::AdoptAgain, Told::Changed(Outcome::Yes)) => {
                let adoption = here[name].adoption;
                let epoch = adoption.expect("it was asked for").epoch();
                for replica in [&mut here[name], &mut there[name]] {
                    *replica = Replica::new(id, epoch);
                    replica.adoption = adoption;
                }
                counts[0] += 1;
            }
            (_, Told::Changed(Outcome::Yes)) => counts[1] += 1,
            _ => {}
        }
        let stands = ask(&memory, &here[name], Ask::Tail, last).await;
        if let Told::Stands(Some((by, stands, _))) = stands {
            (writer, last) = (by, stands);
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
