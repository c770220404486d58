//! What is heard over a connection that comes and goes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_journal_redis::feed::{Feed, Heard, Kind, Link, Login, Options, Subscription};
use streamweld_journal_redis::testing::{Server, Setup, until};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

fn feed(server: &Server, options: Options) -> Feed {
    feed_with(server, options, None)
}

fn feed_with(server: &Server, options: Options, password: Option<&str>) -> Feed {
    let address: Arc<str> = server.address().into();
    let login = password.map(|password| Login {
        username: None,
        password: password.to_owned(),
    });
    Feed::new(options, move || {
        let (address, login) = (Arc::clone(&address), login.clone());
        async move {
            let stream = TcpStream::connect(&*address).await?;
            let moved = Box::pin(std::future::pending());
            io::Result::Ok(Link {
                stream,
                login,
                moved,
            })
        }
    })
}

async fn next(subscription: &mut Subscription) -> Heard {
    let heard = timeout(Duration::from_secs(15), subscription.next()).await;
    heard.expect("in time").expect("the feed is there")
}

/// A subscription that stands.
async fn subscribe(feed: &Feed, channel: &'static str) -> Subscription {
    let mut subscription = feed.subscribe(channel);
    assert_eq!(next(&mut subscription).await, Heard::Renewed);
    subscription
}

fn message(text: &str) -> Heard {
    Heard::Message(Bytes::copy_from_slice(text.as_bytes()))
}

async fn publish(server: &Server, channel: &str, text: &str) {
    server.cli(&["PUBLISH", channel, text]).await;
}

#[tokio::test]
async fn messages_arrive_in_their_order() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    let script = "for i = 1, 500 do redis.call('PUBLISH', 'a', i) end";
    server.cli(&["EVAL", script, "0"]).await;
    for number in 1..=500 {
        assert_eq!(next(&mut a).await, message(&number.to_string()));
    }
}

#[tokio::test]
async fn a_large_message_of_any_bytes_arrives_whole() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    let script = r"redis.call('PUBLISH', 'a', string.rep('\0\r\n\255', 2097152))";
    server.cli(&["EVAL", script, "0"]).await;
    let expected = Bytes::from(b"\0\r\n\xff".repeat(2 << 20));
    assert!(next(&mut a).await == Heard::Message(expected));
}

#[tokio::test]
async fn two_listen_to_one_channel() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut one = subscribe(&feed, "a").await;
    let mut two = subscribe(&feed, "a").await;
    let mut other = subscribe(&feed, "b").await;
    publish(&server, "a", "x").await;
    publish(&server, "b", "y").await;
    assert_eq!(next(&mut one).await, message("x"));
    assert_eq!(next(&mut two).await, message("x"));
    assert_eq!(next(&mut other).await, message("y"));
    assert_eq!(server.cli(&["PUBSUB", "NUMSUB", "a"]).await, "a\n1");
}

#[tokio::test]
async fn the_last_one_leaves_the_channel() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let one = subscribe(&feed, "a").await;
    let mut two = subscribe(&feed, "a").await;
    drop(one);
    publish(&server, "a", "x").await;
    assert_eq!(next(&mut two).await, message("x"));
    drop(two);
    until("the channel is left", async || {
        server.cli(&["PUBSUB", "CHANNELS"]).await.is_empty()
    })
    .await;
    // The connection stays good for others.
    let mut again = subscribe(&feed, "a").await;
    publish(&server, "a", "y").await;
    assert_eq!(next(&mut again).await, message("y"));
}

#[tokio::test]
async fn a_killed_connection_is_made_again() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    for round in ["x", "y", "z"] {
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        assert_eq!(next(&mut a).await, Heard::Renewed);
        publish(&server, "a", round).await;
        assert_eq!(next(&mut a).await, message(round));
    }
}

#[tokio::test]
async fn another_connection_is_made_when_asked_for() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    feed.renew();
    assert_eq!(next(&mut a).await, Heard::Renewed);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found() {
    let mut server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    server.kill();
    until("the loss is seen", async || !feed.is_connected()).await;
    // Those who come and go meanwhile do no harm.
    drop(feed.subscribe("b"));
    let mut late = feed.subscribe("c");
    server.restart().await;
    assert_eq!(next(&mut a).await, Heard::Renewed);
    assert_eq!(next(&mut late).await, Heard::Renewed);
    publish(&server, "a", "x").await;
    assert_eq!(next(&mut a).await, message("x"));
    assert_eq!(server.cli(&["PUBSUB", "CHANNELS"]).await.lines().count(), 2);
}

/// The server keeps its connections, but says nothing: as with a flow that is cut on its way.
#[tokio::test]
async fn silence_is_noticed() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    server.pause();
    let since = Instant::now();
    until("the silence is seen", async || !feed.is_connected()).await;
    assert!(since.elapsed() < Duration::from_secs(10));
    server.resume();
    assert_eq!(next(&mut a).await, Heard::Renewed);
    publish(&server, "a", "x").await;
    assert_eq!(next(&mut a).await, message("x"));
}

#[tokio::test]
async fn a_quiet_connection_is_kept() {
    let server = Server::new().await;
    let options = Options {
        idle: Duration::from_millis(20),
        ..Options::default()
    };
    let feed = feed(&server, options);
    // In both of the modes that a connection has: with a subscription and without.
    let pings = async || {
        let stats = server.cli(&["INFO", "commandstats"]).await;
        let (_, calls) = stats.split_once("cmdstat_ping:calls=").unwrap_or_default();
        let calls = calls.split(',').next().unwrap_or_default();
        calls.parse::<u32>().unwrap_or_default()
    };
    let before = pings().await;
    until("it was probed", async || pings().await > before + 5).await;
    let mut a = subscribe(&feed, "a").await;
    let before = pings().await;
    until("it was probed", async || pings().await > before + 5).await;
    publish(&server, "a", "x").await;
    assert_eq!(next(&mut a).await, message("x"));
    let stats = server.cli(&["INFO", "commandstats"]).await;
    assert!(stats.contains("cmdstat_subscribe:calls=1,"), "{stats}");
}

#[tokio::test]
async fn a_slow_one_is_told_and_holds_up_nobody() {
    let server = Server::new().await;
    let options = Options {
        mailbox_messages: 100,
        ..Options::default()
    };
    let feed = feed(&server, options);
    let mut slow = subscribe(&feed, "a").await;
    let mut fast = subscribe(&feed, "a").await;
    for round in 0..5 {
        let script = "for i = 1, 50 do redis.call('PUBLISH', 'a', ARGV[1] * 50 + i) end";
        let round = round.to_string();
        server.cli(&["EVAL", script, "0", &round]).await;
        for number in 1..=50 {
            let number = round.parse::<u32>().expect("a number") * 50 + number;
            assert_eq!(next(&mut fast).await, message(&number.to_string()));
        }
    }
    // 250 messages: after 100 and again after 100 more than fit it was emptied.
    assert_eq!(next(&mut slow).await, Heard::Renewed);
    let mut last = 0;
    while last < 250 {
        let Heard::Message(text) = next(&mut slow).await else {
            panic!("it was told already");
        };
        let number = String::from_utf8_lossy(&text).parse().expect("a number");
        assert!(last == 0 || number == last + 1);
        last = number;
    }
}

#[tokio::test]
async fn a_thousand_channels_are_one_connection() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut all: Vec<_> = (0..1000)
        .map(|number| feed.subscribe(format!("channel-{number}")))
        .collect();
    for subscription in &mut all {
        assert_eq!(next(subscription).await, Heard::Renewed);
    }
    let clients = server.cli(&["CLIENT", "LIST", "TYPE", "pubsub"]).await;
    assert_eq!(clients.lines().count(), 1, "{clients}");
    assert!(clients.contains(" sub=1000 "), "{clients}");
    let others = server.cli(&["CLIENT", "LIST", "TYPE", "normal"]).await;
    // The one that asks.
    assert_eq!(others.lines().count(), 1, "{others}");
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    for subscription in &mut all {
        assert_eq!(next(subscription).await, Heard::Renewed);
    }
    publish(&server, "channel-999", "x").await;
    assert_eq!(next(&mut all[999]).await, message("x"));
    drop(all);
    until("the channels are left", async || {
        server.cli(&["PUBSUB", "CHANNELS"]).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn sharded_channels_are_heard() {
    let server = Server::new().await;
    let options = Options {
        kind: Kind::Sharded,
        ..Options::default()
    };
    let feed = feed(&server, options);
    let mut a = subscribe(&feed, "a").await;
    server.cli(&["SPUBLISH", "a", "x"]).await;
    assert_eq!(next(&mut a).await, message("x"));
    drop(a);
    until("the channel is left", async || {
        server.cli(&["PUBSUB", "SHARDCHANNELS"]).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn the_right_password_is_needed() {
    let server = Setup::new().password("right").start().await;
    let good = feed_with(&server, Options::default(), Some("right"));
    let mut a = subscribe(&good, "a").await;
    for password in [None, Some("wrong")] {
        let bad = feed_with(&server, Options::default(), password);
        let mut subscription = bad.subscribe("a");
        let heard = timeout(Duration::from_millis(300), subscription.next()).await;
        assert!(heard.is_err() && !bad.is_connected());
    }
    publish(&server, "a", "x").await;
    assert_eq!(next(&mut a).await, message("x"));
}

#[tokio::test]
async fn a_message_above_the_limit_is_a_renewal() {
    let server = Server::new().await;
    let options = Options {
        message_bytes: 1000,
        ..Options::default()
    };
    let feed = feed(&server, options);
    let mut a = subscribe(&feed, "a").await;
    publish(&server, "a", &"x".repeat(1001)).await;
    assert_eq!(next(&mut a).await, Heard::Renewed);
    publish(&server, "a", &"x".repeat(1000)).await;
    assert_eq!(next(&mut a).await, message(&"x".repeat(1000)));
}

#[tokio::test]
async fn a_feed_that_is_dropped_ends_its_subscriptions_and_its_connection() {
    let server = Server::new().await;
    let feed = feed(&server, Options::default());
    let mut a = subscribe(&feed, "a").await;
    drop(feed);
    let end = timeout(Duration::from_secs(5), a.next()).await;
    assert_eq!(end.expect("in time"), None);
    until("the connection is closed", async || {
        server
            .cli(&["CLIENT", "LIST", "TYPE", "pubsub"])
            .await
            .is_empty()
    })
    .await;
}
