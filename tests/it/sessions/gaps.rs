//! Sessions whose start, or whose next entry, is not retained; and readers who sleep.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{
    End, Harness, Response, Setup, get_slowly, metric, state, wait_end, wait_seq,
};

use super::{Form, ask, read, target};

/// A generation that has outgrown its ring, held before its end.
async fn outgrown() -> (Harness, Response, u64) {
    let script = Script::tokens(1_000).id("fixed").gate_after(1_000, "end");
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 32 << 10)
        .start()
        .await;
    let first = harness.client.chat().await;
    let id = first.id();
    wait_seq(&harness.client, &id, 1_001).await;
    let earliest = state(&harness.client, &id).await["earliest_seq"].as_u64();
    let earliest = earliest.expect("a number");
    assert!(earliest > 500, "{earliest}");
    (harness, first, earliest)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_refused_or_said_and_never_skipped() {
    let (harness, first, earliest) = outgrown().await;
    let (client, id) = (&harness.client, first.id());
    for form in Form::ALL {
        for start in ["", "seq=1", "last_event_id=3", "since=0", "tail=1001"] {
            let query = format!("{}&live=false&{start}", form.query());
            let refused = ask(client, &id, &query).await;
            assert_eq!(refused.header("x-streamweld-verdict"), Some("gap"));
            let code = refused.error_code().await;
            assert_eq!(code, (410, "cursor_expired".into()), "{form:?} {start}");

            let response = ask(client, &id, &format!("{query}&on_gap=continue")).await;
            assert_eq!(response.header("x-streamweld-verdict"), Some("gap"));
            let (mut body, mut end) = response.all().await;
            let mut seen = form.read(&body);
            let session = seen.told("session");
            assert_eq!(
                (&session["verdict"], &session["from"]),
                (&"gap".into(), &earliest.into())
            );
            assert_eq!(seen.seqs()[0], earliest, "{form:?} {start}");
            // One answer may need several.
            while seen.reason() == "page" {
                let next = seen.told.last().expect("told").1["next"].clone();
                let next = next.as_str().expect("a cursor");
                (body, end) = ask(
                    client,
                    &id,
                    &format!("{}&live=false&last_event_id={next}", form.query()),
                )
                .await
                .all()
                .await;
                let more = form.read(&body);
                seen.entries.extend(more.entries);
                seen.told = more.told;
            }
            assert_eq!(seen.seqs(), (earliest..=1_001).collect::<Vec<_>>());
            assert_eq!((seen.reason(), end), ("caught_up", End::Proper));
        }
        // What is retained has no gap, whatever is asked for.
        let query = format!("seq={earliest}&live=false&on_gap=continue");
        let whole = read(client, &id, form, &query).await;
        assert_eq!(whole.told("session")["verdict"], "continue");
    }
    harness.mock.gates().release("end");
    first.all().await;
}

/// One reader of each form sleeps while 64 MiB are appended to a ring of 8, as fast as one that is awake reads them.
#[tokio::test(flavor = "multi_thread")]
async fn who_sleeps_costs_nothing_and_is_whole_or_told() {
    let script = (0..PARTS).fold(Script::tokens(PARTS).id("fixed"), |script, part| {
        let script = script.gate_after(part + 1, part.to_string());
        (0..EVENTS).fold(script, |script, _| script.huge_event_after(part + 1, EVENT))
    });
    let harness = Setup::new(script)
        .config(|config| {
            config.journal.per_generation = RING;
            config.edge.write_timeout = Duration::from_secs(300);
        })
        .start()
        .await;
    let (client, mut first) = (&harness.client, harness.client.chat().await);
    let id = first.id();
    first.body.blocks(1).await;
    let mut asleep = Vec::new();
    for form in Form::ALL {
        let query = format!("{}&wait=60", form.query());
        asleep.push((form, get_slowly(client, &target(&id, &query)).await));
    }
    let mut awake = ask(client, &id, &format!("{}&seq=1", Form::Lines.query())).await;
    let plain = tokio::spawn(async move { first.all().await });
    let (mut body, mut lines) = (Vec::new(), 0);
    for part in 0..PARTS {
        harness.mock.gates().release(&part.to_string());
        // The session, what was live, and everything so far.
        while lines < 2 + 1 + (part + 1) * EVENTS {
            let chunk = awake.body.chunk().await.expect("it goes on");
            lines += chunk.iter().filter(|&&byte| byte == b'\n').count();
            body.extend(chunk);
        }
    }
    // All that is held is the ring, and what each of those who sleep was handed last.
    let held = metric(&harness.admin, "streamweld_journal_bytes").await;
    assert!(held < RING as i64 + (1 << 20), "{held}");
    wait_end(client, &id).await;
    let (rest, end) = awake.body.rest().await;
    body.extend(rest);
    let awake = Form::Lines.read(&body);
    assert_eq!((awake.reason(), end), ("end_of_stream", End::Proper));
    let last = awake.seqs().len() as u64 + 1;
    assert_eq!(awake.seqs(), (2..=last).collect::<Vec<_>>());
    drop(plain.await.expect("no panic"));
    for (form, mut response) in asleep {
        let (body, end) = response.body.rest().await;
        assert_eq!(end, End::Proper, "{form:?}");
        let seen = form.read(&body);
        let seqs = seen.seqs();
        assert_eq!(
            seqs,
            (2..2 + seqs.len() as u64).collect::<Vec<_>>(),
            "{form:?}"
        );
        if form == Form::Json {
            // What was ready at once is one answer.
            assert_eq!(seen.reason(), "caught_up");
            continue;
        }
        assert_eq!(seen.reason(), "slow_reader", "{form:?}");
        let next = seen.told("closing")["next"].as_str().expect("a cursor");
        assert_eq!(next, format!("{id}:{}", seqs.last().expect("entries")));
        let query = format!("{}&last_event_id={next}", form.query());
        assert_eq!(ask(client, &id, &query).await.status, 410);
    }
}

const PARTS: usize = 64;
const EVENTS: usize = 16;
const EVENT: usize = 64 << 10;
const RING: usize = 8 << 20;
