//! What Redis is asked to do, counted by Redis itself. The table in docs/journal.md is these tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Epoch, Journal, Outcome, Reader, Refusal, Seq, Step, StreamId, Tail, View, Window, Word,
};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal, Timing};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::connect::{config, connect_with};
use crate::follow::{find, next_order, shows};
use crate::writer::Writer;

/// Commands that were called, also those inside of scripts, since [`forget`]; without those of the test itself.
async fn calls(server: &Server) -> BTreeMap<String, u64> {
    let stats = server.cli(&["INFO", "commandstats"]).await;
    let of_line = |line: &str| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = rest.split_once(',')?;
        Some((command.to_owned(), calls.parse().ok()?))
    };
    let all = stats.lines().filter_map(of_line);
    all.filter(|(command, calls)| {
        *calls > 0 && !command.starts_with("config") && !command.starts_with("info")
    })
    .collect()
}

async fn forget(server: &Server) {
    assert_eq!(server.cli(&["CONFIG", "RESETSTAT"]).await, "OK");
}

/// A journal that has given its sign of life, and gives none again in any test.
async fn connect(server: &Server) -> RedisJournal {
    quiet(server, config()).await
}

async fn quiet(server: &Server, config: Config) -> RedisJournal {
    let lease = Duration::from_secs(7200);
    let journal = connect_with(server, Config { lease, ..config }).await;
    let name = format!("{:032x}", journal.replica().0);
    until("it has looked", async || {
        let till = ["ZSCORE", "streamweld:{presence}:replicas", &name];
        server.cli(&till).await.len() > 1
    })
    .await;
    journal
}

/// Waits until what this journal has sent before, whether or not anybody waits for it, has been done: Redis handles
/// the commands of one connection in their order.
async fn settle(journal: &RedisJournal) {
    let unknown = StreamId::generate(SystemTime::now());
    assert_eq!(journal.tail(unknown).await, Ok(Tail::None));
}

/// A reader that stays until it has seen the last event.
fn read(readers: &mut JoinSet<()>, window: &Arc<Window>) {
    let view = View {
        ids: true,
        control: true,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    readers.spawn(async move {
        let mut text = String::new();
        while !text.contains("data: last\n") {
            match reader.next(1 << 20).await {
                Step::Run { bytes, .. } => text += std::str::from_utf8(&bytes).unwrap(),
                end => panic!("{end:?}"),
            }
        }
    });
}

/// What it costs that so many batches are read by so many readers at the writer's replica and at another one.
async fn cost(batches: u64, here: usize, there: usize) -> BTreeMap<String, u64> {
    let server = Server::new().await;
    let (writing, following) = (connect(&server).await, connect(&server).await);
    loop {
        let began = Instant::now();
        let writer = Writer::opened(&writing).await;
        let mut readers = JoinSet::new();
        let mut parts = Vec::new();
        if there > 0 {
            let (window, follow) = find(&following, writer.id()).await;
            next_order(&writing).await;
            read(&mut readers, &window);
            parts.push(follow);
            shows(&window, 1).await;
        }
        writer.stage("to warm up");
        assert_eq!(writer.append().await, Outcome::Yes);
        forget(&server).await;
        for _ in 0..here {
            read(&mut readers, &writer.window);
        }
        for _ in 1..there {
            let (window, follow) = find(&following, writer.id()).await;
            read(&mut readers, &window);
            parts.push(follow);
        }
        for batch in 0..batches {
            writer.stage(&format!("event {batch}"));
            let last = batch + 1 == batches;
            writer.stage(if last { "last" } else { "event" });
            assert_eq!(writer.append().await, Outcome::Yes);
        }
        let all = timeout(Duration::from_secs(10), readers.join_all());
        all.await.expect("every reader sees the last event");
        let calls = calls(&server).await;
        // Otherwise something that comes every five seconds may be among them.
        if began.elapsed() < Duration::from_secs(4) {
            return calls;
        }
    }
}

async fn check_cost(here: usize, there: usize, expected: &[(&str, u64)]) {
    let cost = cost(50, here, there).await;
    let cost: Vec<_> = cost.iter().map(|(name, calls)| (&**name, *calls)).collect();
    assert_eq!(cost, expected, "{here} readers here and {there} there");
}

#[tokio::test]
async fn a_batch_is_one_command_and_local_readers_none() {
    check_cost(0, 0, &[("xadd", 50)]).await;
    check_cost(100, 0, &[("xadd", 50)]).await;
}

#[tokio::test]
async fn a_follower_costs_one_publish_for_each_batch_and_its_readers_none() {
    check_cost(0, 1, &[("publish", 50), ("xadd", 50)]).await;
    check_cost(100, 100, &[("publish", 50), ("xadd", 50)]).await;
}

/// A look-up, a registration, what stands, and a word of the writer for those who came in between.
#[tokio::test]
async fn the_first_reader_elsewhere_costs_a_handful() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let begin = async || {
        let writer = Writer::opened(&here).await;
        forget(&server).await;
        let part = find(&there, writer.id()).await;
        next_order(&here).await;
        until("it has looked again", async || {
            calls(&server).await.get("xrange") == Some(&2)
        })
        .await;
        settle(&here).await;
        (writer, part)
    };
    // After that Redis knows the scripts.
    let _first = begin().await;
    let _second = begin().await;
    let calls = calls(&server).await;
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, calls)| (&**name, *calls))
        .collect();
    let expected = [
        ("evalsha", 1),
        ("exists", 2),
        ("get", 1),
        ("hmget", 2),
        ("pexpire", 1),
        // In the script, and of the writer.
        ("publish", 2),
        ("subscribe", 1),
        ("time", 1),
        // Before it is registered, and after.
        ("xrange", 2),
        // Of this test.
        ("xrevrange", 1),
        ("zadd", 1),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn what_is_refused_is_not_published() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    // Where the log stands is published when a follower comes.
    settle(&here).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    forget(&server).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::No(Refusal::Full));
    settle(&here).await;
    let calls = calls(&server).await;
    assert!(!calls.contains_key("publish"), "{calls:?}");
    assert_eq!(window.committed(), Seq::FIRST);
}

/// Idle ones cost nothing at all; a replica asks for a sign of life on each of its three connections.
#[tokio::test]
async fn an_idle_generation_costs_nothing() {
    let server = Server::new().await;
    let ping = Duration::from_millis(100);
    let timing = Timing {
        ping,
        ..config().timing
    };
    let journal = quiet(&server, Config { timing, ..config() }).await;
    let mut writers = Vec::new();
    for _ in 0..20 {
        writers.push(Writer::opened(&journal).await);
    }
    forget(&server).await;
    let began = Instant::now();
    until("signs of life are asked for", async || {
        calls(&server)
            .await
            .get("ping")
            .is_some_and(|calls| *calls >= 30)
    })
    .await;
    let (took, mut calls) = (began.elapsed(), calls(&server).await);
    let pings = calls.remove("ping").unwrap_or_default();
    assert_eq!(calls, BTreeMap::new());
    let most = 3 * (took.as_millis() / ping.as_millis() + 2);
    assert!(u128::from(pings) <= most, "{pings} in {took:?}");
}

/// Once for all that it writes, and for all the others.
#[tokio::test]
async fn a_replica_costs_one_script_six_times_in_each_lease() {
    let server = Server::new().await;
    let lease = Duration::from_millis(1200);
    let mut journals = Vec::new();
    for _ in 0..3 {
        journals.push(connect_with(&server, Config { lease, ..config() }).await);
    }
    let mut writers = Vec::new();
    for _ in 0..20 {
        writers.push(Writer::opened(&journals[0]).await);
    }
    forget(&server).await;
    let began = Instant::now();
    until("they have looked for some leases", async || {
        calls(&server)
            .await
            .get("evalsha")
            .is_some_and(|calls| *calls >= 60)
    })
    .await;
    let (took, mut calls) = (began.elapsed(), calls(&server).await);
    calls.remove("ping");
    let looks = calls["evalsha"];
    let most = 3 * (took.as_millis() * 6 / lease.as_millis() + 2);
    assert!(u128::from(looks) <= most, "{looks} in {took:?}");
    let each = ["evalsha", "time", "zadd", "zrangebyscore", "zscore"];
    let mut expected: BTreeMap<_, _> = each.map(|name| (name.to_owned(), looks)).into();
    expected.insert("pexpire".to_owned(), 2 * looks);
    assert_eq!(calls, expected);
}

/// All that have ended since the last look go off the list together.
#[tokio::test]
async fn an_opening_and_an_end_cost_a_handful() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let write = async || {
        let writer = Writer::opened(&journal).await;
        writer.stage_terminal();
        assert_eq!(writer.finish().await, Outcome::Yes);
    };
    write().await;
    forget(&server).await;
    write().await;
    let calls = calls(&server).await;
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, calls)| (&**name, *calls))
        .collect();
    let expected = [
        // The request that it answered, if one was kept.
        ("del", 1),
        ("evalsha", 2),
        // Whether somebody follows, or it was there before.
        ("exists", 2),
        ("hget", 1),
        ("hset", 2),
        ("pexpire", 5),
        ("sadd", 1),
        ("set", 1),
        ("xadd", 2),
        ("xrevrange", 1),
    ];
    assert_eq!(calls, expected);
}

/// Each follower registers and looks every five seconds.
#[tokio::test]
async fn an_idle_follower_costs_one_script_and_one_look_each_time() {
    const COUNT: u64 = 20;
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let (mut writers, mut parts) = (Vec::new(), Vec::new());
    let began = Instant::now();
    for _ in 0..COUNT {
        let writer = Writer::opened(&here).await;
        parts.push(find(&there, writer.id()).await);
        next_order(&here).await;
        writers.push(writer);
    }
    let all = async |command: &str| calls(&server).await.get(command).copied().unwrap_or(0);
    until("each has looked", async || all("xrange").await >= 2 * COUNT).await;
    // Where each stands was published for its follower.
    settle(&here).await;
    forget(&server).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?} to begin");
    until("each has registered again", async || {
        all("evalsha").await >= COUNT
    })
    .await;
    until("and looked", async || all("xrange").await >= COUNT).await;
    let mut calls = calls(&server).await;
    calls.remove("ping");
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, calls)| (&**name, *calls))
        .collect();
    let script = ["evalsha", "exists", "hmget", "pexpire", "publish"];
    let mut expected: Vec<_> = script.map(|name| (name, COUNT)).to_vec();
    expected.extend(["time", "xrange", "zadd"].map(|name| (name, COUNT)));
    assert_eq!(calls, expected);
}

/// The last publish before the backend falls silent comes to nothing; followers do not have to look for it.
#[tokio::test]
async fn a_publish_that_was_refused_is_made_good_in_silence() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    let began = Instant::now();
    server.cli(&["ACL", "SETUSER", "default", "-publish"]).await;
    forget(&server).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    until("the publish is refused", async || {
        let stats = server.cli(&["INFO", "commandstats"]).await;
        stats.lines().any(|line| {
            line.starts_with("cmdstat_publish:calls=0") && !line.contains("rejected_calls=0")
        })
    })
    .await;
    assert_eq!(window.committed(), Seq::FIRST);
    server.cli(&["ACL", "SETUSER", "default", "+publish"]).await;
    shows(&window, 2).await;
    let (took, calls) = (began.elapsed(), calls(&server).await);
    // Before it was time to look.
    assert!(!calls.contains_key("evalsha"), "{took:?}: {calls:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}

/// What has to be known, and the change of the writer; what is appended then costs what it always does.
#[tokio::test]
async fn a_take_over_costs_a_handful() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let take_over = async || {
        let writer = Writer::opened(&here).await;
        let request = Bytes::from_static(b"request");
        let id = writer.id();
        forget(&server).await;
        assert_eq!(here.keep_request(id, request.clone()).await, Ok(()));
        let keep = calls(&server).await;
        for round in 0..20 {
            writer.stage_beside("text", "beside");
            assert_eq!(writer.append().await, Outcome::Yes);
            assert_eq!(writer.window.committed(), Seq::new(round + 2));
        }
        forget(&server).await;
        assert_eq!(there.kept_request(id).await, Ok(Some(request)));
        assert_eq!(there.beside(id, Seq::new(21)).await.unwrap().len(), 20);
        let next = Writer::adopting(&there, id, 2, Seq::new(21)).await;
        until("it has looked what waits for it", async || {
            calls(&server).await.get("evalsha") == Some(&2)
        })
        .await;
        settle(&there).await;
        let adopt = calls(&server).await;
        forget(&server).await;
        next.stage("of the new writer");
        assert_eq!(next.append().await, Outcome::Yes);
        (keep, adopt, calls(&server).await)
    };
    // After that Redis knows the scripts.
    take_over().await;
    let (keep, adopt, append) = take_over().await;
    let all = [keep, adopt, append].map(|calls| calls.into_iter().collect::<Vec<_>>());
    let expected: [&[(&str, u64)]; 3] = [
        &[("evalsha", 1), ("exists", 1), ("set", 1)],
        &[
            ("evalsha", 2),
            ("exists", 1),
            ("get", 1),
            ("hmget", 2),
            ("hset", 1),
            ("pexpire", 4),
            ("publish", 1),
            ("sadd", 1),
            ("time", 1),
            ("xadd", 1),
            ("xrange", 1),
            // The other is of this test.
            ("xrevrange", 2),
            ("zrangebyscore", 1),
        ],
        &[("xadd", 1)],
    ];
    let expected = expected.map(|calls| {
        let calls = calls
            .iter()
            .map(|(name, calls)| ((*name).to_owned(), *calls));
        calls.collect::<Vec<_>>()
    });
    assert_eq!(all, expected);
}

#[tokio::test]
async fn replicas_that_talk_cost_a_command_for_each_word() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let talk = async || {
        forget(&server).await;
        assert_eq!(here.replicas().await, Ok(vec![there.replica()]));
        let id = StreamId::generate(SystemTime::now());
        let epoch = Epoch::FIRST;
        let said = here.say(there.replica(), id, Word::Considers { epoch });
        assert_eq!(said.await, Ok(()));
        calls(&server).await
    };
    talk().await;
    let calls = talk().await;
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, calls)| (&**name, *calls))
        .collect();
    let script = [("evalsha", 1), ("publish", 1), ("time", 1)];
    assert_eq!(calls, [&script[..], &[("zrangebyscore", 1)]].concat());
}
