//! What a level of durability costs: batches appended by some generations at once, with a server and a replica of it on
//! this machine. Prints a line for each level.
//!
//! `cargo run --release -p streamweld-journal-redis --example levels [generations] [batches]`
#![allow(clippy::print_stdout, reason = "it is what this is for")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Epoch, Journal, Kind, Level, Open, Outcome, StreamId, Window, WindowConfig,
};
use streamweld_journal_redis::testing::{Fsync, Setup};
use streamweld_journal_redis::{Config, RedisJournal, Target};
use tokio::task::JoinSet;
use tokio::time::Instant;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |it| it.parse());
    let (generations, batches) = (number(50)?, number(400)?);
    let primary = Setup::new().append_only(Fsync::Always).start().await;
    let replica = Setup::new().replica_of(&primary).start().await;
    replica.wait_replicating().await;
    println!("{generations} generations, {batches} batches each");
    for level in ["async", "replicated:1", "fsync"] {
        let level: Level = level.parse()?;
        let config = Config {
            level,
            ..Config::default()
        };
        let journal = Arc::new(RedisJournal::start(Target::parse(&primary.url())?, config));
        journal.connected(Duration::from_secs(10)).await?;
        journal.examined(Duration::from_secs(10)).await;
        if journal.level() != Some(level) {
            println!("{level:>14}: not with this server");
            continue;
        }
        let began = Instant::now();
        let mut writers = JoinSet::new();
        for _ in 0..generations {
            writers.spawn(write(Arc::clone(&journal), batches));
        }
        let mut times = writers.join_all().await.concat();
        let took = began.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |part: usize| times.get((times.len() * part / 100).min(times.len() - 1));
        println!(
            "{:>14}: {:>7.0} appends/s, half within {:?}, 99 of 100 within {:?}",
            level.to_string(),
            f64::from(u32::try_from(times.len())?) / took,
            at(50).copied().unwrap_or_default(),
            at(99).copied().unwrap_or_default(),
        );
    }
    Ok(())
}

/// One generation; gives how long each of its appends took.
async fn write(journal: Arc<RedisJournal>, batches: usize) -> Vec<Duration> {
    let now = SystemTime::now();
    let id = StreamId::generate(now);
    let window = Window::new(id, Epoch::FIRST, now, WindowConfig::default());
    let stage = |kind| {
        window.stage(SystemTime::now()).push(kind, |out| {
            out.extend_from_slice(b"data: some words of an answer\n");
        })
    };
    let owner = Open { access: [0; 32] };
    window.commit(stage(Kind::Open));
    let opened = journal.open(&window, &owner, now).await;
    assert_eq!(opened, Outcome::Yes, "it opens");
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        let last = stage(Kind::Event);
        let began = Instant::now();
        let outcome = journal.append(&window, window.committed(), last).await;
        assert_eq!(outcome, Outcome::Yes, "it stands");
        times.push(began.elapsed());
        window.commit(last);
    }
    times
}
