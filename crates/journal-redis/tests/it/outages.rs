//! A server that is away, silent, new or closed to us.

use std::time::{Duration, SystemTime};

use streamweld_journal::{Claim, Journal, Outcome, Seq, StreamId, Tail, Unreachable};
use streamweld_journal_redis::testing::{Server, Setup};
use streamweld_journal_redis::{ConnectError, RedisJournal, Target};

use crate::connect::{config, connect, connect_to};
use crate::writer::Writer;

#[tokio::test]
async fn an_append_without_an_answer_is_never_doubled() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    writer.stage("a");
    server.pause();
    assert_eq!(writer.append().await, Outcome::Unknown);
    // Nothing more is sent before the tail is known.
    assert_eq!(writer.append().await, Outcome::Unknown);
    assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
    server.resume();
    // It had been sent, on the connection that the tail is read on: so it stands.
    writer.stands(2, false).await;
    writer.window.commit(Seq::new(2));
    writer.stage("b");
    assert_eq!(writer.append().await, Outcome::Yes);
    writer.stands(3, false).await;
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "3");
}

#[tokio::test]
async fn a_finish_without_an_answer_stands() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    // The script is known to the server.
    let other = Writer::opened(&journal).await;
    other.stage_terminal();
    assert_eq!(other.finish().await, Outcome::Yes);
    let writer = Writer::opened(&journal).await;
    writer.stage_terminal();
    server.pause();
    assert_eq!(writer.finish().await, Outcome::Unknown);
    server.resume();
    writer.stands(2, true).await;
    assert_eq!(journal.usage().live, 0);
}

#[tokio::test]
async fn a_new_connection_appends_nothing_before_the_tail_is_read() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    writer.stands(1, false).await;
    assert_eq!(writer.append().await, Outcome::Yes);
    writer.stands(2, false).await;
}

#[tokio::test]
async fn a_cut_connection_is_made_anew_before_anybody_calls() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    let clients = async || server.cli(&["INFO", "stats"]).await;
    let made = |stats: String| -> u64 {
        let line = stats
            .lines()
            .find(|line| line.starts_with("total_connections_received:"));
        line.unwrap()
            .trim()
            .split(':')
            .next_back()
            .unwrap()
            .parse()
            .unwrap()
    };
    let before = made(clients().await);
    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    // The kill and each look are connections of their own; the two links make two more.
    let mut looks = 0;
    loop {
        looks += 1;
        if made(clients().await) >= before + 1 + looks + 2 {
            break;
        }
        assert!(looks < 500, "nobody connects");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    journal.connected(Duration::from_secs(1)).await.unwrap();
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    writer.stands(1, false).await;
    assert_eq!(writer.append().await, Outcome::Yes);
}

#[tokio::test]
async fn appends_survive_connections_that_are_killed_again_and_again() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    for round in 0..200 {
        if round % 10 == 0 {
            server.cli(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        }
        writer.stage(&format!("event {round}"));
        while writer.append().await != Outcome::Yes {
            let Tail::Last { last, digest, .. } = writer.tail().await else {
                panic!("it stands")
            };
            assert_eq!(writer.window.digest(last), Some(digest));
            writer.window.commit(last);
            if last == writer.window.received() {
                break;
            }
        }
    }
    writer.stands(201, false).await;
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "201");
}

#[tokio::test]
async fn a_server_that_forgot_everything_is_seen() {
    let mut server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.restart().await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    assert_eq!(writer.tail().await, Tail::None);
    // New generations go on there.
    Writer::opened(&journal).await;
}

#[tokio::test]
async fn a_frozen_server_is_left_for_a_new_connection() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    server.pause();
    let id = StreamId::generate(SystemTime::now());
    for _ in 0..3 {
        assert_eq!(journal.tail(id).await, Err(Unreachable));
    }
    let until = Duration::from_millis(100);
    assert_eq!(journal.connected(until).await, Err(ConnectError::TimedOut));
    server.resume();
    journal.connected(Duration::from_secs(5)).await.unwrap();
    assert_eq!(journal.tail(id).await, Ok(Tail::None));
}

#[tokio::test]
async fn one_wave_of_timeouts_is_one() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let id = StreamId::generate(SystemTime::now());
    server.pause();
    let wave: [_; 5] = std::array::from_fn(|_| journal.tail(id));
    let [a, b, c, d, e] = wave;
    let answers = tokio::join!(a, b, c, d, e);
    assert_eq!(answers.4, Err(Unreachable));
    // The connection is still believed in.
    journal.connected(Duration::from_millis(1)).await.unwrap();
    server.resume();
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    let server = Setup::new()
        .password("the-right-secret")
        .unix_socket()
        .start()
        .await;
    let socket = server.socket();
    for (query, expected) in [
        ("?pass=the-wrong-secret", ConnectError::Credentials),
        ("", ConnectError::Credentials),
    ] {
        let url = format!("redis+unix://{}{query}", socket.display());
        let journal = RedisJournal::start(Target::parse(&url).unwrap(), config());
        let error = journal.connected(Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error, expected);
        let told = format!("{error} {error:?} {journal:?}");
        assert!(
            !told.contains("secret") && !told.contains("redis+unix"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_password_that_was_changed_is_read_again() {
    let server = Setup::new()
        .password("first-secret")
        .unix_socket()
        .start()
        .await;
    let file = server.socket().with_file_name("password");
    std::fs::write(&file, "first-secret\n").unwrap();
    let url = format!("redis+unix://{}", server.socket().display());
    let target = Target::parse(&url).unwrap();
    let journal = connect_to(target.with_password_file(file.clone()), config()).await;
    let auth = ["-a", "first-secret", "--no-auth-warning"];
    server
        .cli(
            &[
                &auth[..],
                &["CONFIG", "SET", "requirepass", "second-secret"],
            ]
            .concat(),
        )
        .await;
    let auth = ["-a", "second-secret", "--no-auth-warning"];
    server
        .cli(&[&auth[..], &["CLIENT", "KILL", "TYPE", "normal"]].concat())
        .await;
    let (id, now) = (StreamId::generate(SystemTime::now()), SystemTime::now());
    assert_eq!(journal.claim([1; 32], id, now).await, Err(Unreachable));
    std::fs::write(&file, "second-secret\n").unwrap();
    journal.connected(Duration::from_secs(5)).await.unwrap();
    assert_eq!(journal.claim([1; 32], id, now).await, Ok(Claim::Won));
}

#[tokio::test]
async fn a_demoted_server_is_left() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    server.cli(&["REPLICAOF", "NO", "ONE"]).await;
    writer.stands(1, false).await;
    assert_eq!(writer.append().await, Outcome::Yes);
}
