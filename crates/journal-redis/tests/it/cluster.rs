//! The journal over a cluster: slots that move, nodes that go, and what each costs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, Claim, Epoch, Found, Journal, Notice, Order, Ordered, Outcome, Seq, Step, StreamId,
    Tail, Unreachable,
};
use streamweld_journal_redis::feed::{self, Heard};
use streamweld_journal_redis::testing::{Cluster, Setup, until};
use streamweld_journal_redis::{Config, ConnectError, RedisJournal, Target, Timing};
use tokio::time::timeout;

use crate::adopted::taken;
use crate::connect::{config, connect_to};
use crate::elsewhere::rights;
use crate::follow::{append, find, next_order, read, shows};
use crate::presence::{REPLICAS, end, ownerless};
use crate::words::hear;
use crate::writer::Writer;

/// A journal that is connected to all nodes.
pub(crate) async fn connect(cluster: &Cluster) -> RedisJournal {
    connect_to(Target::parse(&cluster.url()).unwrap(), patient()).await
}

/// What is not there says so at once, so only a busy machine needs the time.
fn patient() -> Config {
    let timing = Timing {
        answer: Duration::from_secs(5),
        ..Timing::default()
    };
    Config { timing, ..config() }
}

/// A node that does not have the log.
async fn other(cluster: &Cluster, writer: &Writer<'_>) -> usize {
    (cluster.owner(&writer.log()).await + 1) % cluster.nodes.len()
}

#[tokio::test]
async fn an_append_goes_on_where_the_slot_has_moved() {
    let cluster = Cluster::new().await;
    let journal = connect(&cluster).await;
    let writer = Writer::opened(&journal).await;
    for round in 0..6 {
        let to = other(&cluster, &writer).await;
        cluster.move_slot(&writer.log(), to).await;
        writer.stage(&format!("event {round}"));
        // Nothing was done, and nothing is sent before the tail was read where the log is now.
        assert_eq!(writer.append().await, Outcome::Unknown);
        assert_eq!(writer.append().await, Outcome::Unknown);
        // The very first question finds it.
        let tail = journal.tail(writer.id()).await;
        assert!(matches!(tail, Ok(Tail::Last { last, .. }) if last == Seq::new(round + 1)));
        assert_eq!(writer.append().await, Outcome::Yes);
        let length = cluster.nodes[to].cli(&["XLEN", &writer.log()]).await;
        assert_eq!(length, (round + 2).to_string());
    }
    writer.stands(7, false).await;
}

#[tokio::test]
async fn what_is_one_step_anywhere_follows_the_slot_at_once() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let now = SystemTime::now();
    // Opened where it was not known to be.
    let writer = Writer::unopened(&here);
    let to = other(&cluster, &writer).await;
    cluster.move_slot(&writer.log(), to).await;
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    // Claimed.
    let (key, name) = ([9; 32], format!("streamweld:claim:{{{}}}", "09".repeat(32)));
    let to = (cluster.owner(&name).await + 1) % 3;
    cluster.move_slot(&name, to).await;
    assert_eq!(here.claim(key, writer.id(), now).await, Ok(Claim::Won));
    let taken = there.claim(key, StreamId::generate(now), now).await;
    assert!(matches!(taken, Ok(Claim::Taken { id, .. }) if id == writer.id()));
    // Ended.
    let to = other(&cluster, &writer).await;
    cluster.move_slot(&writer.log(), to).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    writer.stands(2, true).await;
}

/// Between the two ends of a move nothing is lost, doubled or made anew: it waits.
#[tokio::test]
async fn a_log_on_its_way_waits() {
    let cluster = Cluster::new().await;
    let journal = connect(&cluster).await;
    let writer = Writer::opened(&journal).await;
    let to = other(&cluster, &writer).await;
    let way = cluster.begin_move(&writer.log(), to).await;
    // It has not left yet.
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    cluster.move_keys(&way).await;
    writer.stage("b");
    for _ in 0..3 {
        assert_eq!(writer.append().await, Outcome::Unknown);
        assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
    }
    let found = connect(&cluster).await;
    let found = found.find(writer.id(), SystemTime::now()).await;
    assert!(matches!(found, Err(Unreachable)), "{found:?}");
    cluster.end_move(&way).await;
    writer.stands(2, false).await;
    assert_eq!(writer.append().await, Outcome::Yes);
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    writer.stands(4, true).await;
    let length = cluster.nodes[to].cli(&["XLEN", &writer.log()]).await;
    assert_eq!(length, "4");
}

#[tokio::test]
async fn a_follower_goes_where_its_channel_goes() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let (writer, still) = (Writer::opened(&here).await, Writer::opened(&here).await);
    let (window, _follow) = find(&there, writer.id()).await;
    let (unmoved, _follow_too) = find(&there, still.id()).await;
    next_order(&here).await;
    next_order(&here).await;
    for round in 0..6 {
        let to = other(&cluster, &writer).await;
        let way = cluster.begin_move(&writer.log(), to).await;
        writer.stage(&format!("before {round}"));
        append(&writer).await;
        cluster.move_keys(&way).await;
        cluster.end_move(&way).await;
        writer.stage(&format!("after {round}"));
        append(&writer).await;
        still.stage("meanwhile");
        append(&still).await;
        // Below the time after which a follower looks by itself.
        let both = async {
            shows(&window, 2 * round + 3).await;
            shows(&unmoved, round + 2).await;
        };
        timeout(Duration::from_secs(4), both).await.unwrap();
    }
    writer.stage_terminal();
    append_end(&writer).await;
    let (followed, end) = read(&window).await;
    assert!(matches!(end, Step::End { .. }), "{end:?}");
    assert_eq!(followed, read(&writer.window).await.0);
}

async fn append_end(writer: &Writer<'_>) {
    while writer.finish().await != Outcome::Yes {
        writer.tail().await;
    }
}

/// A feed by itself: who listens to another channel there does not even notice.
#[tokio::test]
async fn a_slot_that_goes_costs_its_own_channels_only() {
    let cluster = Cluster::new().await;
    let (stays, goes) = ("{bar}:stays", "{123}:goes");
    for channel in [stays, goes] {
        if cluster.owner(channel).await != 0 {
            cluster.move_slot(channel, 0).await;
        }
    }
    let address = cluster.nodes[0].address();
    let options = feed::Options {
        kind: feed::Kind::Sharded,
        ..feed::Options::default()
    };
    let feed = feed::Feed::new(options, move || {
        let address = address.clone();
        async move {
            let stream = tokio::net::TcpStream::connect(address).await?;
            Ok(feed::Link {
                stream,
                login: None,
                moved: Box::pin(std::future::pending()),
            })
        }
    });
    let (mut still, mut gone) = (feed.subscribe(stays), feed.subscribe(goes));
    let heard = async |subscription: &mut feed::Subscription| {
        let heard = timeout(Duration::from_secs(10), subscription.next()).await;
        heard.unwrap().unwrap()
    };
    let message = |text: &'static str| Heard::Message(bytes::Bytes::from_static(text.as_bytes()));
    assert_eq!(heard(&mut still).await, Heard::Renewed);
    assert_eq!(heard(&mut gone).await, Heard::Renewed);
    cluster.move_slot(goes, 1).await;
    cluster.nodes[1].cli(&["SPUBLISH", goes, "missed"]).await;
    cluster.nodes[0].cli(&["SPUBLISH", stays, "a"]).await;
    assert_eq!(heard(&mut still).await, message("a"));
    cluster.move_slot(goes, 0).await;
    assert_eq!(heard(&mut gone).await, Heard::Renewed);
    cluster.nodes[0].cli(&["SPUBLISH", goes, "b"]).await;
    assert_eq!(heard(&mut gone).await, message("b"));
    cluster.nodes[0].cli(&["SPUBLISH", stays, "c"]).await;
    assert_eq!(heard(&mut still).await, message("c"));
}

/// Orders have a slot that nobody else knows of: the writer hears them wherever that is.
#[tokio::test]
async fn orders_arrive_wherever_their_channel_is() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let channel = format!("streamweld:orders:{:032x}", here.replica().0);
    for _ in 0..4 {
        let writer = Writer::opened(&here).await;
        let order = Order::Stop { admin: true };
        assert_eq!(there.order(writer.id(), order).await, Ok(Ordered::Passed));
        // What was ordered before is looked for again wherever the channel was missed for a moment.
        while next_order(&here).await != (writer.id(), order) {}
        let to = (cluster.owner(&channel).await + 1) % 3;
        cluster.move_slot(&channel, to).await;
    }
}

#[tokio::test]
async fn a_node_without_a_replica_is_waited_for() {
    // It does not wait for the disk, which may be slow.
    let setup = Setup::new()
        .config("appendonly", "yes")
        .config("appendfsync", "no");
    let mut cluster = Cluster::with(setup).await;
    let journal = connect(&cluster).await;
    let mut writers = Vec::new();
    for _ in 0..20 {
        writers.push(Writer::opened(&journal).await);
    }
    cluster.notice_soon().await;
    cluster.nodes[2].kill();
    until("no slot is served", async || {
        let info = cluster.nodes[0].cli(&["CLUSTER", "INFO"]).await;
        info.contains("cluster_state:fail")
    })
    .await;
    for writer in &writers {
        writer.stage("a");
        assert_eq!(writer.append().await, Outcome::Unknown);
        assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
    }
    cluster.nodes[2].restart().await;
    for writer in &writers {
        writer.stands(1, false).await;
        append(writer).await;
        writer.stands(2, false).await;
    }
}

#[tokio::test]
async fn a_replica_that_takes_over_is_found() {
    let mut cluster = Cluster::with_replicas(Setup::new()).await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let mut writers = Vec::new();
    for _ in 0..20 {
        let writer = Writer::opened(&here).await;
        writer.stage("a");
        append(&writer).await;
        let (window, follow) = find(&there, writer.id()).await;
        next_order(&here).await;
        writers.push((writer, window, follow));
    }
    for (number, node) in cluster.nodes.iter().enumerate() {
        assert_eq!(node.cli(&["WAIT", "1", "5000"]).await, "1", "{number}");
    }
    // The first is also the only seed.
    cluster.notice_soon().await;
    cluster.nodes[0].kill();
    for (writer, window, _) in &writers {
        writer.stage("b");
        append(writer).await;
        writer.stands(3, false).await;
        shows(window, 3).await;
        writer.stage_terminal();
        append_end(writer).await;
        assert!(matches!(read(window).await.1, Step::End { .. }));
    }
}

/// What was called at each node since its statistics were reset, but for what a cluster and this test call.
async fn calls(cluster: &Cluster) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for node in &cluster.nodes {
        let stats = node.cli(&["INFO", "commandstats"]).await;
        for line in stats.lines() {
            let call = line.strip_prefix("cmdstat_").and_then(|line| {
                let (command, rest) = line.split_once(":calls=")?;
                Some((command, rest.split_once(',')?.0.parse::<u64>().ok()?))
            });
            if let Some((command, calls)) = call {
                *all.entry(command.to_owned()).or_default() += calls;
            }
        }
    }
    let not_ours = |name: &str| {
        ["config", "info", "ping"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    all.retain(|name, calls| *calls > 0 && !not_ours(name));
    all
}

/// A journal that has given its sign of life, and gives none again in any test.
async fn quiet(cluster: &Cluster) -> RedisJournal {
    let lease = Duration::from_secs(7200);
    let target = Target::parse(&cluster.url()).unwrap();
    let journal = connect_to(target, Config { lease, ..patient() }).await;
    let name = format!("{:032x}", journal.replica().0);
    let home = &cluster.nodes[cluster.owner(REPLICAS).await];
    until("it has looked", async || {
        home.cli(&["ZSCORE", REPLICAS, &name]).await.len() > 1
    })
    .await;
    journal
}

#[tokio::test]
async fn a_batch_is_still_one_command_and_no_message_to_other_nodes() {
    let cluster = Cluster::new().await;
    let (here, there) = (quiet(&cluster).await, quiet(&cluster).await);
    let alone = Writer::opened(&here).await;
    let followed = Writer::opened(&here).await;
    let (window, _follow) = find(&there, followed.id()).await;
    next_order(&here).await;
    followed.stage("to warm up");
    append(&followed).await;
    shows(&window, 2).await;
    for node in &cluster.nodes {
        node.cli(&["CONFIG", "RESETSTAT"]).await;
    }
    for round in 0..50 {
        for writer in [&alone, &followed] {
            writer.stage(&format!("event {round}"));
            assert_eq!(writer.append().await, Outcome::Yes);
        }
    }
    shows(&window, 52).await;
    let mut calls = calls(&cluster).await;
    // Of the journals themselves, now and then; of the follower's look, if five seconds are over.
    let slots = calls.remove("cluster|slots").unwrap_or_default();
    assert!(slots <= 4, "{slots}");
    if !calls.contains_key("evalsha") {
        let expected = [("spublish", 50), ("xadd", 100)];
        assert_eq!(
            calls,
            expected
                .map(|(name, calls)| (name.to_owned(), calls))
                .into()
        );
    }
    for node in &cluster.nodes {
        let info = node.cli(&["CLUSTER", "INFO"]).await;
        assert!(!info.contains("messages_publish_sent"), "{info}");
    }
}

/// Three for each replica and node, however many generations and readers there are.
#[tokio::test]
async fn connections_grow_with_nodes_only() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let mut parts = Vec::new();
    let mut writers = Vec::new();
    for _ in 0..40 {
        let writer = Writer::opened(&here).await;
        parts.push(find(&there, writer.id()).await);
        writers.push(writer);
    }
    for node in &cluster.nodes {
        let clients = node.cli(&["CLIENT", "LIST"]).await;
        // And one of this test.
        assert_eq!(clients.lines().count(), 2 * 3 + 1, "{clients}");
    }
}

#[tokio::test]
async fn seeds_are_asked_in_turn() {
    let cluster = Cluster::with(Setup::new().password("let-me-in")).await;
    let seeds = format!("127.0.0.1:1,{}", cluster.nodes[2].address());
    let target = |password: &str| {
        let url = format!("redis+cluster://:{password}@{seeds}");
        Target::parse(&url).unwrap()
    };
    let journal = connect_to(target("let-me-in"), patient()).await;
    for _ in 0..9 {
        Writer::opened(&journal).await;
    }
    let refused = RedisJournal::start(target("wrong"), config());
    let error = refused.connected(Duration::from_secs(1)).await;
    assert_eq!(error, Err(ConnectError::Credentials));
    let id = StreamId::generate(SystemTime::now());
    assert_eq!(refused.tail(id).await, Err(Unreachable));
}

#[tokio::test]
async fn a_server_that_is_no_cluster_is_told() {
    let server = Setup::new().start().await;
    let url = format!("redis+cluster://{}", server.address());
    let journal = RedisJournal::start(Target::parse(&url).unwrap(), config());
    let error = journal.connected(Duration::from_secs(1)).await;
    assert!(matches!(error, Err(ConnectError::Refused(_))), "{error:?}");
}

/// The rights that docs/journal.md tells.
#[tokio::test]
async fn the_rights_that_are_told_are_enough() {
    let cluster = Cluster::new().await;
    let (mut commands, in_a_cluster) = rights();
    commands.extend(in_a_cluster);
    let mut user = vec!["ACL", "SETUSER", "mine", "on", ">secret"];
    user.extend(["~streamweld:*", "&streamweld:*"]);
    user.extend(commands.iter().map(String::as_str));
    for node in &cluster.nodes {
        assert_eq!(node.cli(&user).await, "OK");
    }
    let url = format!("redis+cluster://mine:secret@{}", cluster.nodes[1].address());
    let target = Target::parse(&url).unwrap();
    let (here, there) = (
        connect_to(target.clone(), patient()).await,
        connect_to(target, patient()).await,
    );
    for (_, case) in streamweld_journal::conformance::CASES {
        case(&here).await;
    }
    let writer = Writer::opened(&here).await;
    let (window, follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    let to = other(&cluster, &writer).await;
    cluster.move_slot(&writer.log(), to).await;
    writer.stage("a");
    append(&writer).await;
    shows(&window, 2).await;
    drop(follow);
    writer.stage_terminal();
    append_end(&writer).await;
    let found = there.find(writer.id(), SystemTime::now()).await;
    assert!(matches!(found, Ok(Found::Here { .. })), "{found:?}");
    for node in &cluster.nodes {
        let denied = node.cli(&["ACL", "LOG"]).await;
        assert_eq!(denied, "", "{denied}");
    }
}

/// Who is alive is known at one node, and the logs lie at all of them.
#[tokio::test]
async fn what_a_dead_replica_left_is_ended_wherever_it_lies() {
    let cluster = Cluster::new().await;
    let short = Config {
        lease: Duration::from_millis(1200),
        ..patient()
    };
    let target = Target::parse(&cluster.url()).unwrap();
    let dies = connect_to(target.clone(), short.clone()).await;
    let lives = connect_to(target, short).await;
    let mut left = BTreeMap::new();
    while left.len() < cluster.nodes.len() {
        let writer = Writer::opened(&dies).await;
        let node = cluster.owner(&writer.log()).await;
        match left.entry(node) {
            Entry::Vacant(place) => _ = place.insert(writer.id()),
            Entry::Occupied(_) => {
                writer.stage_terminal();
                append_end(&writer).await;
            }
        }
    }
    drop(dies);
    let (next, now) = (Epoch::new(2).unwrap(), SystemTime::now());
    while !left.is_empty() {
        let (id, log) = ownerless(&lives).await;
        assert_eq!(log.epoch, Epoch::FIRST);
        // What is told again has its end by now.
        if left.values().any(|it| *it == id) {
            left.retain(|_, it| *it != id);
            assert_eq!(
                lives
                    .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, next), now)
                    .await,
                Outcome::Yes
            );
            let window = end(id, next, Seq::FIRST);
            assert_eq!(lives.finish(&window, Seq::FIRST, now).await, Outcome::Yes);
        }
    }
    let home = &cluster.nodes[cluster.owner(REPLICAS).await];
    until("the dead one is forgotten", async || {
        let keys = home.cli(&["KEYS", "*{presence}*"]).await;
        let lists = keys.lines().filter(|key| key.contains(":owned:")).count();
        lists == 0 && home.cli(&["ZCARD", REPLICAS]).await == "1"
    })
    .await;
    assert_eq!(lives.usage().live, 0);
}

/// The channel of a replica lies elsewhere than its logs.
#[tokio::test]
async fn a_writer_hears_that_its_log_was_taken() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    for _ in 0..5 {
        let writer = Writer::opened(&here).await;
        let (next, now) = (Epoch::new(2).unwrap(), SystemTime::now());
        let adopted = there
            .adopt(
                writer.id(),
                Adoption::new(Epoch::FIRST, Seq::FIRST, next),
                now,
            )
            .await;
        assert_eq!(adopted, Outcome::Yes);
        let told = timeout(Duration::from_secs(20), here.next_notice()).await;
        assert_eq!(told, Ok((writer.id(), Notice::Taken)));
    }
}

#[tokio::test]
async fn what_a_hand_over_needs_is_found_wherever_it_lies() {
    let cluster = Cluster::new().await;
    let (here, there) = (connect(&cluster).await, connect(&cluster).await);
    let request = bytes::Bytes::from_static(b"request");
    for _ in 0..5 {
        let writer = Writer::opened(&here).await;
        let id = writer.id();
        assert_eq!(here.keep_request(id, request.clone()).await, Ok(()));
        writer.stage_beside("a", "one");
        append(&writer).await;
        let to = other(&cluster, &writer).await;
        cluster.move_slot(&writer.log(), to).await;
        assert_eq!(there.kept_request(id).await, Ok(Some(request.clone())));
        writer.stage_beside("b", "two");
        append(&writer).await;
        let beside = there.beside(id, Seq::new(3)).await.unwrap();
        assert_eq!(beside.concat(), b"onetwo");
        let next = Writer::adopting(&there, id, 2, Seq::new(3)).await;
        next.stage("c");
        append(&next).await;
        next.stage_terminal();
        append_end(&next).await;
        assert_eq!(here.kept_request(id).await, Ok(None));
        // Until then it would be given the window of its own, which goes no further.
        assert_eq!(taken(&here).await, id);
        let (text, _) = read(&find(&here, id).await.0).await;
        assert_eq!(text, read(&next.window).await.0);
    }
    until("all are known", async || {
        here.replicas().await == Ok(vec![there.replica()])
    })
    .await;
    hear(&there, &here).await;
}
