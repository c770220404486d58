//! A journal that does not open, fails, heals, or is full, as clients see it (protocol.md 10, 8.3).

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal::faulty::{Fault, Faults, Faulty, Op};
use streamweld_journal::{Journal, Memory, Refusal};
use streamweld_mock::Dialect;
use streamweld_mock::Script;
use streamweld_tests::{
    Block, End, Harness, Response, Setup, ask, blocks, events, patience, state, wait_end, wait_seq,
    wait_state,
};

struct Story {
    harness: Harness,
    journal: Arc<Faulty<Memory>>,
    faults: Arc<Faults>,
}

/// A server on a journal that fails on demand, with little patience.
async fn start(script: Script) -> Story {
    start_with(script, |_| {}).await
}

async fn start_with(script: Script, change: impl FnOnce(&mut HealBounds)) -> Story {
    let journal = Arc::new(Faulty::new(Memory::default()));
    let faults = journal.faults();
    let mut heal = HealBounds::default();
    heal.patience = Duration::from_millis(50);
    change(&mut heal);
    let setup = Setup::new(script)
        .journal(journal.clone())
        .heal(heal)
        .config(|config| {
            config.edge.heartbeat = Duration::from_millis(20);
            config.edge.hold = Duration::from_millis(300);
        });
    Story {
        harness: setup.start().await,
        journal,
        faults,
    }
}

/// An answer whose end does not come with what is before it: what comes together is one call to the journal.
fn in_two() -> Script {
    Script::tokens(20).gate_after(3, "go").gate_after(6, "end")
}

fn seqs(blocks: &[Block]) -> Vec<u64> {
    blocks.iter().map(Block::seq).collect()
}

fn has_no_ids(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| block.id.is_none())
}

async fn metric(harness: &Harness, line: &str) -> u64 {
    let metrics = harness.admin.get("/metrics").await.all().await.0;
    let metrics = String::from_utf8(metrics).expect("text");
    metrics
        .lines()
        .find_map(|found| found.strip_prefix(line)?.strip_prefix(' '))
        .map_or(0, |value| value.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_log_the_answer_is_degraded_beats_and_is_whole() {
    for fault in [
        Some(Fault::Refuse(Refusal::Full)),
        Some(Fault::UnknownApplied),
        None,
    ] {
        let story = start(Script::tokens(20).gate_after(3, "go")).await;
        // Without a fault it stands still: the head waits for a quarter of a second.
        let held = match fault {
            Some(fault) => {
                story.faults.script(Op::Open, [fault]);
                None
            }
            None => Some(story.faults.hold(Op::Open)),
        };
        let mut response = story.harness.client.chat().await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
        assert_eq!(response.header("x-streamweld-stream-id"), None);
        let mut body = response.body.blocks(3).await;
        while !body.ends_with(b"\n:\n") {
            body.extend(response.body.chunk().await.expect("it beats"));
        }
        story.harness.mock.gates().release("go");
        let (rest, end) = response.body.rest().await;
        body.extend(rest);
        assert_eq!(end, End::Proper);
        assert!(has_no_ids(&blocks(&body)));
        assert_eq!(events(&body).len(), 23);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
        drop(held);
        let clean = async {
            while story.journal.usage().bytes > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        patience(clean).await;
        let usage = story.journal.usage();
        assert_eq!((usage.live, usage.finished, usage.tombstones), (0, 0, 0));
        let started =
            r#"streamweld_generations_started_total{dialect="openai_chat",durability="degraded"}"#;
        assert_eq!(metric(&story.harness, started).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_failure_ends_in_the_form_and_the_abort() {
    let story = start(Script::tokens(20).error_after(3)).await;
    story
        .faults
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let (body, end) = story.harness.client.chat().await.all().await;
    assert_eq!(end, End::Fin);
    let blocks = blocks(&body);
    assert_eq!(blocks.len(), 4);
    assert!(has_no_ids(&blocks));
    let form = blocks[3].data.as_deref().expect("data");
    assert!(form.contains("upstream_error"), "{form}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_answer_cannot_be_found() {
    let story = start(Script::tokens(20).gate_after(3, "go")).await;
    story
        .faults
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let mut response = story.harness.client.chat().await;
    response.body.blocks(3).await;
    let list = story.harness.admin.get("/admin/streams").await.json().await;
    assert_eq!(list["data"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_stand_yet_is_not_shown() {
    // An answer that comes all at once is finished in one go; this one comes in two.
    let story = start_with(Script::tokens(20).gate_after(3, "go"), |heal| {
        heal.patience = Duration::from_secs(60);
    })
    .await;
    let held = story.faults.hold(Op::Append);
    let mut response = story.harness.client.chat().await;
    patience(held.reached()).await;
    story.harness.mock.gates().release("go");
    // It beats, which shows that it could write.
    let chunk = response.body.chunk().await.expect("it beats");
    assert_eq!(chunk, b":\n");
    held.release();
    let (body, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let blocks = blocks(&body);
    assert_eq!(seqs(&blocks), (2..25).collect::<Vec<_>>());
    assert!(story.faults.calls(Op::Append) <= 3, "batches gather");
}

/// One fault at every event, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_at_any_event_loses_and_doubles_nothing() {
    for fault in [
        Fault::UnknownApplied,
        Fault::UnknownLost,
        Fault::Refuse(Refusal::Unexpected {
            last: streamweld_journal::Seq::FIRST,
        }),
    ] {
        let story = start_with(Script::tokens(6).step_gate("step"), |heal| {
            heal.patience = Duration::from_secs(60);
        })
        .await;
        for at in 0..8 {
            for _ in 0..at {
                story.faults.pass(Op::Append);
            }
            story.faults.script(Op::Append, [fault]);
            let response = ask(&story.harness.client, Dialect::OpenAiChat).await;
            let id = response.id();
            for seq in 2..11 {
                story.harness.mock.gates().step("step");
                if seq < 10 {
                    wait_seq(&story.harness.client, &id, seq).await;
                }
            }
            let (body, end) = response.all().await;
            assert_eq!(end, End::Proper, "{fault:?} at {at}");
            assert_eq!(seqs(&blocks(&body)), (2..11).collect::<Vec<_>>());
            wait_end(&story.harness.client, &id).await;
            let (again, _) = story.harness.client.events(&id).await.all().await;
            assert_eq!(blocks(&again), blocks(&body), "{fault:?} at {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suffix_is_shown_without_ids_then_healed_under_contiguous_ones() {
    let story = start(
        Script::tokens(20)
            .gate_after(3, "one")
            .gate_after(8, "two")
            .gate_after(12, "three"),
    )
    .await;
    let (client, gates) = (&story.harness.client, story.harness.mock.gates());
    let mut first = client.chat().await;
    let id = first.id();
    let mut body = first.body.blocks(3).await;
    assert_eq!(state(client, &id).await["durability"], "durable");

    story.faults.set_down(true);
    gates.release("one");
    let suffix = first.body.blocks(5).await;
    assert!(has_no_ids(&blocks(&suffix)));
    let degraded = state(client, &id).await;
    assert_eq!(degraded["durability"], "degraded");
    assert_eq!(degraded["last_seq"], 4);
    body.extend(suffix);
    // Somebody who comes now sees the same: what stands with ids, then the suffix.
    let mut second = client.events(&id).await;
    let seen = blocks(&second.body.blocks(8).await);
    assert_eq!(seqs(&seen[..3]), [2, 3, 4]);
    assert!(has_no_ids(&seen[3..]));

    story.faults.set_down(false);
    wait_state(client, &id, |state| {
        state["durability"] == "durable" && state["last_seq"] == 9
    })
    .await;
    gates.release("two");
    gates.release("three");
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(seqs(&blocks(&rest)), (10..25).collect::<Vec<_>>());
    let (rest, _) = second.body.rest().await;
    assert_eq!(seqs(&blocks(&rest)), (10..25).collect::<Vec<_>>());
    body.extend(rest);

    // Whoever reconnects with the last id it was given sees the suffix again, under ids.
    let (again, _) = client
        .with("last-event-id", &format!("{id}:4"))
        .chat()
        .await
        .all()
        .await;
    assert_eq!(seqs(&blocks(&again)), (5..25).collect::<Vec<_>>());
    assert_eq!(events(&again), events(&body)[3..]);
    assert_eq!(story.harness.mock.recorder().count(), 1);
    assert_eq!(
        metric(&story.harness, "streamweld_unsequenced_suffixes_total").await,
        1
    );
    assert_eq!(
        metric(&story.harness, "streamweld_healed_suffixes_total").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_log_is_read_to_its_true_end_and_never_again() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.script(Op::Append, [Fault::Vanish]);
    story.harness.mock.gates().release("go");
    assert!(has_no_ids(&blocks(&response.body.blocks(3).await)));
    story.harness.mock.gates().release("end");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&rest).last().map(String::as_str), Some("[DONE]"));
    assert!(has_no_ids(&blocks(&rest)));
    let gone = async {
        while client.events(&id).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(gone).await;
    for response in [
        client.events(&id).await,
        client.get(&format!("/v1/streams/{id}")).await,
        client
            .with("last-event-id", &format!("{id}:2"))
            .chat()
            .await,
    ] {
        let answer = response.error_code().await;
        assert_eq!(answer, (404, "stream_not_found".to_owned()));
    }
    let lost = r#"streamweld_append_failures_total{reason="vanished"}"#;
    assert_eq!(metric(&story.harness, lost).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_healed_is_never_shown_as_whole() {
    let story = start_with(Script::tokens(20).gate_after(3, "go"), |heal| {
        heal.longest = Duration::from_millis(200);
    })
    .await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.set_down(true);
    story.harness.mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper, "who is attached sees the true end");
    assert_eq!(events(&rest).last().map(String::as_str), Some("[DONE]"));
    // Longer than the bounds: the journal comes back too late.
    let given_up = async {
        while metric(
            &story.harness,
            r#"streamweld_append_failures_total{reason="unknown"}"#,
        )
        .await
            == 0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    patience(given_up).await;
    story.faults.set_down(false);
    let state = wait_end(client, &id).await;
    assert_eq!(state["status"], "error");
    assert_eq!(state["terminal"]["code"], "journal_incomplete");
    assert_eq!(state["durability"], "durable", "nothing is unsequenced now");
    assert_eq!(state["last_seq"], 5);
    let (later, end) = client.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let blocks = blocks(&later);
    assert_eq!(seqs(&blocks), [2, 3, 4, 5]);
    let form = blocks[3].data.as_deref().expect("data");
    assert!(form.contains("journal_incomplete"), "{form}");
    let stop = client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await;
    assert_eq!(
        stop.error_code().await,
        (409, "already_terminal".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_with_another_writer_sends_its_readers_away() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story
        .faults
        .script(Op::Append, [Fault::Refuse(Refusal::Ended)]);
    story.harness.mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Fin, "never a clean end for a part");
    assert!(blocks(&rest).is_empty());
    let ending = story.harness.mock.recorder().wait_closed(0).await;
    ending.expect("the backend is let go");
    // What is left is not taken for the whole either.
    let (later, end) = client.events(&id).await.all().await;
    assert_eq!(end, End::Fin);
    assert_eq!(seqs(&blocks(&later)), [2, 3, 4]);
    assert_eq!(state(client, &id).await["owner_alive"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_behind_what_stands_is_held_and_then_told_and_holds_up_nobody() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.set_down(true);
    story.harness.mock.gates().release("go");
    let shown = blocks(&response.body.blocks(3).await);
    assert!(has_no_ids(&shown), "{shown:?}");
    // More than there are threads. Nobody was given this cursor yet, but it may be one by the time it is looked at.
    let target = format!("/v1/streams/{id}/events?last_event_id=6");
    let asked = (0..16).map(|_| {
        let (client, target) = (client.clone(), target.clone());
        tokio::spawn(async move { client.get(&target).await.error_code().await })
    });
    for answer in asked.collect::<Vec<_>>() {
        let answer = patience(answer).await.expect("no panic");
        assert_eq!(answer, (503, "journal_unavailable".to_owned()));
    }
    let held = {
        let (client, target) = (client.clone(), target.clone());
        tokio::spawn(async move { client.get(&target).await })
    };
    story.faults.set_down(false);
    story.harness.mock.gates().release("end");
    let (_, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let again = patience(held).await.expect("no panic");
    if again.status == 200 {
        assert_eq!(seqs(&blocks(&again.all().await.0))[0], 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_waits_for_a_journal_that_is_away_and_then_says_so() {
    let story = start(Script::tokens(3)).await;
    let client = &story.harness.client;
    let response = client.chat().await;
    let id = response.id();
    response.all().await;
    wait_end(client, &id).await;
    story.faults.set_down(true);
    let response = client.events(&id).await;
    assert_eq!(response.header("retry-after"), Some("1"));
    let answer = response.error_code().await;
    assert_eq!(answer, (503, "journal_unavailable".to_owned()));
    story.faults.set_down(false);
    story.faults.script(Op::Find, [Fault::Unreachable]);
    assert_eq!(client.events(&id).await.status, 200, "it came back in time");
}

/// A chat answer with one event of some 40,000 bytes, that waits before and behind it.
fn large(before: &str, behind: &str) -> Script {
    Script::tokens(3)
        .gate_after(2, before)
        .huge_event_after(2, 40_000)
        .gate_after(2, behind)
}

/// Reads until the large event has come.
async fn read_large(response: &mut Response) -> Vec<Block> {
    let mut all = Vec::new();
    while all.len() < 40_000 {
        all.extend(response.body.chunk().await.expect("it goes on"));
    }
    blocks(&all)
}

async fn start_small(total: u64, script: Script) -> Harness {
    let setup = Setup::new(script).config(move |config| config.journal.total = total);
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_full_of_live_generations_refuses_no_inference_and_heals() {
    let harness = start_small(64 << 10, Script::tokens(20)).await;
    let (client, gates) = (&harness.client, harness.mock.gates());
    harness.mock.push_script(large("a1", "a2"));
    let mut first = ask(client, Dialect::OpenAiChat).await;
    harness.mock.push_script(large("b1", "b2"));
    let mut second = ask(client, Dialect::OpenAiChat).await;
    let (first_id, second_id) = (first.id(), second.id());
    gates.release("a1");
    assert!(
        read_large(&mut first)
            .await
            .iter()
            .all(|it| it.id.is_some())
    );
    // No room for this one: it is shown at once, without ids.
    gates.release("b1");
    let shown = read_large(&mut second).await;
    assert!(shown.last().is_some_and(|block| block.id.is_none()));
    assert_eq!(state(client, &second_id).await["durability"], "degraded");
    // Nor for a new one.
    let (body, end) = {
        let third = ask(client, Dialect::OpenAiChat).await;
        assert_eq!(third.status, 200);
        assert_eq!(third.header("x-streamweld-durability"), Some("degraded"));
        third.all().await
    };
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(
        metric(&harness, "streamweld_journal_early_evictions_total").await,
        0,
        "live ones never go"
    );

    // One that ends makes room.
    gates.release("a2");
    let (_, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    wait_state(client, &second_id, |state| state["durability"] == "durable").await;
    gates.release("b2");
    let (rest, end) = second.body.rest().await;
    assert_eq!(end, End::Proper);
    assert!(blocks(&rest).iter().all(|block| block.id.is_some()));
    wait_end(client, &second_id).await;
    let (again, _) = client.events(&second_id).await.all().await;
    let seqs = seqs(&blocks(&again));
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(client.events(&first_id).await.error_code().await.0, 410);
    assert_eq!(
        metric(&harness, "streamweld_journal_early_evictions_total").await,
        1
    );
    let full = r#"streamweld_append_failures_total{reason="full"}"#;
    assert!(metric(&harness, full).await >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_generations_go_early_least_recently_read_first() {
    let script = Script::tokens(3).huge_event_after(2, 20_000);
    let harness = start_small(80 << 10, script).await;
    let client = &harness.client;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let response = ask(client, Dialect::OpenAiChat).await;
        ids.push(response.id());
        response.all().await;
        wait_end(client, ids.last().expect("one")).await;
    }
    // In this order they were read last.
    for at in [1, 0, 2] {
        let (_, end) = client.events(&ids[at]).await.all().await;
        assert_eq!(end, End::Proper);
    }
    let evictions = "streamweld_journal_early_evictions_total";
    assert_eq!(metric(&harness, evictions).await, 0);
    let fourth = ask(client, Dialect::OpenAiChat).await;
    ids.push(fourth.id());
    fourth.all().await;
    assert_eq!(metric(&harness, evictions).await, 1);
    let answer = client.events(&ids[1]).await.error_code().await;
    assert_eq!(answer, (410, "stream_expired".to_owned()));
    for at in [0, 2, 3] {
        assert_eq!(client.events(&ids[at]).await.status, 200, "{at}");
    }
}
