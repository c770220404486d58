//! What clients do (rows 16 to 23).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use streamweld_mock::{Dialect, Outcome, Script, Writes};
use streamweld_tests::{Block, End, Harness, Setup, ask, blocks, patience, question, reset};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{reaches, stop};

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_reader_that_leaves_is_no_stop() {
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).gate_after(3, "left")).await;
        let id = leave(&harness, "continue", rude).await;
        harness.mock.gates().release("left");
        reaches(&harness.client, &id, "done").await;
        let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
        assert_eq!(ending.outcome, Outcome::Finished);
        let (replay, end) = harness.client.events(&id).await.all().await;
        assert_eq!((blocks(&replay).len(), end), (11, End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_cancel_closes_the_connection_to_the_backend_within_a_second() {
    for rude in [false, true] {
        // Of a few tries the best counts: this machine may have been busy.
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let harness = Harness::start(Script::tokens(8).stall_after(3)).await;
            let id = leave(&harness, "cancel", rude).await;
            let left = Instant::now();
            let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
            best = best.min(left.elapsed());
            assert_ne!(ending.outcome, Outcome::Finished);
            let state = reaches(&harness.client, &id, "error").await;
            assert_eq!(state["terminal"]["code"], "orphan_cancelled");
            let (replay, end) = harness.client.events(&id).await.all().await;
            assert_eq!((blocks(&replay).len(), end), (4, End::Proper));
        }
        assert!(best < Duration::from_secs(1), "{best:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_reader_that_comes_back_in_time_ends_the_wait() {
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).gate_after(3, "left")).await;
        let id = leave(&harness, "cancel_after=1h", rude).await;
        reaches(&harness.client, &id, "streaming").await;
        harness.mock.gates().release("left");
        let back = harness
            .client
            .with("last-event-id", &format!("{id}:4"))
            .events(&id)
            .await;
        let (body, end) = back.all().await;
        assert_eq!((blocks(&body).len(), end), (8, End::Proper));
    }
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).stall_after(3)).await;
        let left = Instant::now();
        let id = leave(&harness, "cancel_after=300ms", rude).await;
        let state = reaches(&harness.client, &id, "error").await;
        assert!(left.elapsed() >= Duration::from_millis(300));
        assert_eq!(state["terminal"]["code"], "orphan_cancelled");
        let recorder = harness.mock.recorder();
        recorder.wait_open_connections(0).await.expect("is closed");
    }
}

/// Reads three events and leaves. Gives the id.
async fn leave(harness: &Harness, policy: &str, rude: bool) -> String {
    let client = harness.client.with("x-streamweld-orphan-policy", policy);
    let mut response = ask(&client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    let stream = response.body.into_stream();
    if rude {
        reset(stream);
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn row_17_a_slow_reader_holds_back_nobody_and_misses_nothing() {
    // More than the buffers of two sockets hold.
    let script = Script::tokens(60_000).writes(Writes::Batch(50));
    let harness = Harness::start(script).await;
    let mut slow = harness
        .client
        .post_slowly("/v1/chat/completions", &question())
        .await;
    let id = slow.id();
    // The producer and the others are done before the slow one has begun.
    let ending = harness
        .mock
        .recorder()
        .with_deadline(Duration::from_secs(30))
        .wait_closed(0)
        .await
        .expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
    let (whole, end) = harness.client.events(&id).await.all().await;
    assert_eq!((blocks(&whole).len(), end), (60_003, End::Proper));
    let state = reaches(&harness.client, &id, "done").await;
    assert_eq!(state["readers"], 0, "a reader of what has ended is none");
    let (late, end) = slow.body.rest().await;
    assert_eq!(end, End::Proper);
    assert!(late == whole, "the slow reader was shown something else");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_18_a_reader_that_has_stopped_is_closed_and_can_resume() {
    let script = Script::tokens(60_000)
        .writes(Writes::Batch(50))
        .gate_after(60_000, "end");
    let harness = Setup::new(script)
        .config(|config| config.edge.write_timeout = Duration::from_millis(1500))
        .start()
        .await;
    let stopped = harness
        .client
        .post_slowly("/v1/chat/completions", &question())
        .await;
    let id = stopped.id();
    patience(async {
        let state = format!("/v1/streams/{id}");
        while harness.client.get(&state).await.json().await["readers"] != 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    harness.mock.gates().release("end");
    // What had been written before is still there, perhaps torn, and its last whole block is a cursor.
    let (had, end) = stopped.all().await;
    assert_ne!(end, End::Proper);
    let text = String::from_utf8_lossy(&had).into_owned();
    let whole = &text[..text.rfind("\n\n").map_or(0, |at| at + 2)];
    let had = blocks(whole.as_bytes());
    let cursor = had.last().and_then(|block| block.id.clone());
    let cursor = cursor.unwrap_or_else(|| format!("{id}:0"));
    let back = harness.client.with("last-event-id", &cursor);
    let (rest, end) = back.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let all = [had, blocks(&rest)].concat();
    let seqs: Vec<u64> = all.iter().map(Block::seq).collect();
    assert_eq!(seqs, (2..60_005).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_a_head_that_takes_too_long_closes_its_connection() {
    let harness = Setup::new(Script::tokens(2))
        .config(|config| config.edge.header_timeout = Duration::from_millis(400))
        .start()
        .await;
    for begun in [
        "",
        "G",
        "PRI * HTTP/2",
        "GET /v1/models HTTP/1.1\r\n",
        "GET /v1/models HTTP/1.1\r\nhost: x\r\nx-slow: ",
    ] {
        let mut stream = TcpStream::connect(harness.client.addr)
            .await
            .expect("connects");
        stream.write_all(begun.as_bytes()).await.expect("is sent");
        let mut answer = Vec::new();
        // Closed or reset, perhaps after a 408 or a GOAWAY.
        let closed = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        assert!(closed.await.is_ok(), "still open after {begun:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_a_head_that_trickles_in_is_cut_at_the_same_deadline() {
    let harness = Setup::new(Script::tokens(2))
        .config(|config| config.edge.header_timeout = Duration::from_millis(400))
        .start()
        .await;
    let mut stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let (mut read, mut write) = stream.split();
    let trickle = async {
        let mut head = String::from("GET /v1/models HTTP/1.1\r\nx-slow: ");
        for _ in 0..10_000 {
            head.push('x');
        }
        for byte in head.bytes() {
            if write.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = trickle => panic!("it was let finish"),
        closed = patience(read.read_to_end(&mut answer)) => drop(closed),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_idle_connections_do_not_matter_to_others() {
    let harness = Harness::start(Script::tokens(4)).await;
    let mut idle = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(harness.client.addr)
            .await
            .expect("connects");
        if number % 2 == 0 {
            let begun = b"POST /v1/chat/completions HTTP/1.1\r\nx-slow: ";
            stream.write_all(begun).await.expect("is sent");
        }
        idle.push(stream);
    }
    for _ in 0..20 {
        let (_, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
        assert_eq!(end, End::Proper);
    }
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_20_many_readers_that_resume_at_once_all_see_the_same() {
    let harness = Harness::start(Script::tokens(60).gate_after(20, "join")).await;
    let mut first = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = first.id();
    let mut expected = first.body.blocks(20).await;
    let mut readers = JoinSet::new();
    for number in 0..300_u64 {
        let client = harness
            .client
            .with("last-event-id", &format!("{id}:{}", number % 22));
        let id = id.clone();
        readers.spawn(async move { (number % 22, client.events(&id).await.all().await) });
        if number == 150 {
            harness.mock.gates().release("join");
        }
    }
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    expected.extend_from_slice(&rest);
    let expected = blocks(&expected);
    assert_eq!(expected.len(), 63);
    while let Some(reader) = readers.join_next().await {
        let (after, (body, end)) = reader.expect("no panic");
        assert_eq!(end, End::Proper);
        let rest: Vec<Block> = expected
            .iter()
            .filter(|block| block.seq() > after)
            .cloned()
            .collect();
        assert!(blocks(&body) == rest, "after {after}");
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_21_bad_cursors_get_definite_answers() {
    let harness = Harness::start(Script::tokens(4)).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        ids.push(response.id());
        drop(response.all().await);
    }
    let (id, other) = (&ids[0], &ids[1]);
    for (cursor, status, code) in [
        (format!("{id}:900"), 409, "cursor_ahead"),
        ("900".to_owned(), 409, "cursor_ahead"),
        (format!("{id}:18446744073709551615"), 409, "cursor_ahead"),
        (format!("{id}:18446744073709551616"), 400, "invalid_cursor"),
        (format!("{id}:-1"), 400, "invalid_cursor"),
        (format!("{id}:01"), 400, "invalid_cursor"),
        (format!("{id}:"), 400, "invalid_cursor"),
        (format!("{id}:3~1"), 400, "invalid_cursor"),
        (format!("{id}:3~2"), 409, "journal_regressed"),
        (format!("{}:3", id.to_uppercase()), 400, "invalid_cursor"),
        ("text".to_owned(), 400, "invalid_cursor"),
        (String::new(), 400, "invalid_cursor"),
        (format!("{other}:3"), 400, "cursor_mismatch"),
    ] {
        let client = harness.client.with("last-event-id", &cursor);
        let error = client.events(id).await.error_code().await;
        assert_eq!(error, (status, code.to_owned()), "{cursor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_22_the_same_idempotency_key_fifty_times_is_one_request() {
    let harness = Harness::start(Script::tokens(8).head_gate("head")).await;
    let client = harness.client.with("idempotency-key", "k");
    let mut readers = JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        readers.spawn(async move {
            let response = client.chat().await;
            (response.id(), response.all().await)
        });
    }
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("comes");
    harness.mock.gates().release("head");
    let mut ids = BTreeSet::new();
    let mut bodies = BTreeSet::new();
    while let Some(reader) = readers.join_next().await {
        let (id, (body, end)) = reader.expect("no panic");
        assert_eq!(end, End::Proper);
        assert_eq!(blocks(&body).len(), 11);
        ids.insert(id);
        bodies.insert(body);
    }
    assert_eq!((ids.len(), bodies.len()), (1, 1));
    assert_eq!(recorder.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_23_a_stop_that_races_with_the_end_gives_one_terminal() {
    let harness = Harness::start(Script::tokens(2).gate_after(4, "end")).await;
    for round in 0..40 {
        harness.mock.gates().close("end");
        let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let mut body = response.body.blocks(4).await;
        let mut stops = JoinSet::new();
        for _ in 0..4 {
            let (client, id) = (harness.client.clone(), id.clone());
            stops.spawn(async move { stop(&client, &id).await });
        }
        harness.mock.gates().release("end");
        let mut answers = Vec::new();
        while let Some(answer) = stops.join_next().await {
            answers.push(answer.expect("no panic"));
        }
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        assert_eq!(end, End::Proper);
        let shown = blocks(&body);
        let sentinels = shown
            .iter()
            .filter(|block| block.data.as_deref() == Some("[DONE]"));
        assert_eq!(sentinels.count(), 1, "round {round}: {shown:#?}");
        // All answers tell of the one terminal.
        let state = harness
            .client
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        let mut told = String::new();
        for (status, answer) in &answers {
            match state["status"].as_str() {
                Some("done") => {
                    assert_eq!(
                        (*status, &answer["error"]["code"]),
                        (409, &json!("already_terminal"))
                    );
                }
                Some("stopped") => {
                    assert_eq!(
                        (*status, &answer["terminal"]),
                        (200, &answers[0].1["terminal"])
                    );
                    assert_eq!(answer["terminal"]["seq"], state["terminal"]["seq"]);
                }
                other => panic!("{other:?}"),
            }
            write!(told, "{status} ").expect("a string takes it");
        }
        // After the end they are what they were.
        let again = stop(&harness.client, &id).await;
        assert_eq!(again.0, answers[0].0, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_request_that_resumes_is_read_and_dropped() {
    let harness = Harness::start(Script::tokens(4)).await;
    let first = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = first.id();
    let (expected, _) = first.all().await;
    // An image or two, more than the buffers of two sockets hold; the client sends all of it before it reads.
    let body = format!(r#"{{"stream":true,"image":"{}"}}"#, "x".repeat(24 << 20));
    for (after, status) in [(0, 200), (8, 204), (900, 409)] {
        let client = harness
            .client
            .with("last-event-id", &format!("{id}:{after}"));
        let response = patience(client.send("POST", "/v1/chat/completions", &body)).await;
        assert_eq!(response.status, status);
        let (shown, end) = response.all().await;
        assert_eq!(end, End::Proper);
        if status == 200 {
            assert_eq!(shown, expected);
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}
