//! What is not retained any more.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{
    CHAT, Client, End, Harness, Response, Setup, Way, blocks, get_slowly, patience, state,
    wait_end, wait_seq,
};

use super::CHAT_PATH;

/// A generation that has outgrown its ring, held before its end.
async fn outgrown() -> (Harness, Response, u64) {
    let script = Script::tokens(1_000).gate_after(1_000, "end");
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 32 << 10)
        .start()
        .await;
    let first = harness.client.chat().await;
    let id = first.id();
    wait_seq(&harness.client, &id, 1_001).await;
    let earliest = state(&harness.client, &id).await["earliest_seq"]
        .as_u64()
        .expect("a number");
    assert!(earliest > 500, "{earliest}");
    (harness, first, earliest)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_left_the_ring_is_refused_and_not_skipped() {
    let (harness, first, mut earliest) = outgrown().await;
    let id = first.id();
    for ended in [false, true] {
        if ended {
            harness.mock.gates().release("end");
            wait_end(&harness.client, &id).await;
            earliest = state(&harness.client, &id).await["earliest_seq"]
                .as_u64()
                .expect("a number");
        }
        for way in Way::ALL {
            for seq in [0, 1, 2, earliest - 2] {
                let answer = way
                    .resume(&harness.client, &format!("{id}:{seq}"), (CHAT_PATH, CHAT))
                    .await;
                assert_eq!(
                    answer.error_code().await,
                    (410, "cursor_expired".to_owned()),
                    "{way:?} after {seq} of {earliest}, ended: {ended}"
                );
            }
            let cursor = format!("{id}:{}", earliest - 1);
            let mut kept = way
                .resume(&harness.client, &cursor, (CHAT_PATH, CHAT))
                .await;
            assert_eq!(kept.status, 200);
            let shown = blocks(&kept.body.blocks(1).await);
            assert_eq!(shown[0].seq(), earliest);
        }
        let start = harness.client.events(&id).await;
        assert_eq!(start.error_code().await, (410, "cursor_expired".to_owned()));
    }
}

/// Large events behind small ones, in a dialect without a closing event: what is lost is then all that there was.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_is_never_taken_for_nothing_left() {
    let script = Script::tokens(3).huge_event_after(3, 64 << 10);
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 16 << 10)
        .start()
        .await;
    let response = harness.client.send("POST", "/generic", "{}").await;
    let id = response.id();
    response.all().await;
    let state = state(&harness.client, &id).await;
    assert_eq!(state["status"], "done");
    assert_eq!(state["last_seq"], 6);
    assert_eq!(state["earliest_seq"], 6, "the terminal alone is left");
    for way in Way::ALL {
        for (seq, status) in [(0, 410), (3, 410), (4, 410), (5, 204), (6, 204)] {
            let cursor = format!("{id}:{seq}");
            let answer = way
                .resume(&harness.client, &cursor, ("/generic", "{}"))
                .await;
            assert_eq!(answer.status, status, "{way:?} after {seq}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_retention_overtakes_is_aborted_and_never_skipped() {
    const EVENTS: usize = 200;
    let mut script = Script::tokens(4)
        .gate_after(2, "reader")
        .gate_after(4, "end");
    for _ in 0..EVENTS {
        script = script.huge_event_after(3, 64 << 10);
    }
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 256 << 10)
        .start()
        .await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(2).await;
    let mut slow = get_slowly(&harness.client, &format!("/v1/streams/{id}/events")).await;
    assert_eq!(slow.status, 200);
    drop(first);
    harness.mock.gates().release("reader");
    let last = EVENTS as u64 + 5;
    wait_seq(&harness.client, &id, last).await;

    let (body, end) = patience(slow.body.rest()).await;
    assert_eq!(end, End::Fin, "an abort, though the generation goes on");
    assert!(slow.body.torn().is_empty(), "between blocks");
    let seqs: Vec<u64> = blocks(&body)
        .iter()
        .map(streamweld_tests::Block::seq)
        .collect();
    let reached = *seqs.last().expect("something was read");
    assert_eq!(
        seqs,
        (2..=reached).collect::<Vec<_>>(),
        "nothing is skipped"
    );
    assert!(reached < last, "it was overtaken");
    for way in Way::ALL {
        let cursor = format!("{id}:{reached}");
        let answer = way
            .resume(&harness.client, &cursor, (CHAT_PATH, CHAT))
            .await;
        assert_eq!(
            answer.error_code().await,
            (410, "cursor_expired".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_retention_the_maker_is_told_that_it_expired_and_then_that_it_never_was() {
    let harness = Setup::new(Script::tokens(3))
        .config(|config| config.journal.retention = Duration::from_secs(1))
        .start()
        .await;
    let maker = harness.client.with("authorization", "Bearer a");
    let stranger = harness.client.with("authorization", "Bearer b");
    let response = maker.chat().await;
    let id = response.id();
    response.all().await;
    assert_eq!(maker.events(&id).await.status, 200);

    let cursor = format!("{id}:0");
    let expired = (410, "stream_expired".to_owned());
    let unknown = (404, "stream_not_found".to_owned());
    // What each of the three is told by the paths of ours and by the same request again.
    let ask = async |client: &Client| {
        let path = format!("/v1/streams/{id}");
        let again = client.with("last-event-id", &cursor);
        [
            client.events(&id).await,
            client.get(&path).await,
            client.send("POST", &format!("{path}/stop"), "").await,
            again.chat().await,
        ]
    };
    let (mut told_expired, mut told_unknown) = (0, 0);
    patience(async {
        while told_unknown < 4 {
            for answer in ask(&stranger).await {
                assert_eq!(
                    answer.error_code().await,
                    unknown,
                    "a stranger is never told more"
                );
            }
            for answer in ask(&maker).await {
                match answer.status {
                    // Still there: the state and events, or a stop too late.
                    200 | 409 => assert_eq!((told_expired, told_unknown), (0, 0)),
                    410 => {
                        assert_eq!(told_unknown, 0);
                        assert_eq!(answer.error_code().await, expired);
                        told_expired += 1;
                    }
                    _ => {
                        assert_eq!(answer.error_code().await, unknown);
                        told_unknown += 1;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(told_expired >= 4);
}
