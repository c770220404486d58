//! Readers of every form that come at any time: each is given everything once.

use std::time::Duration;

use streamweld_mock::{MockConfig, Script};
use streamweld_tests::{Client, End, Setup, wait_end};
use tokio::task::JoinSet;

use super::{Form, Seen, ask};

const READERS: usize = 200;
const EVENTS: usize = 400;

/// Rounds that `make test` has time for; `STREAMWELD_JOIN_ROUNDS` says otherwise.
const ROUNDS: u64 = 2;

fn script() -> Script {
    Script::tokens(EVENTS)
        .id("fixed")
        .pace(Duration::from_millis(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_at_any_time_sees_everything_once() {
    let rounds = std::env::var("STREAMWELD_JOIN_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let harness = Setup::new(script())
        .mock(MockConfig {
            default: script(),
            keep_requests: 1,
            ..MockConfig::default()
        })
        .start()
        .await;
    let data = super::data(&script());
    for round in 0..rounds {
        let first = harness.client.durable_chat().await;
        let id = first.id();
        let mut dice = Dice(round);
        let mut readers = JoinSet::new();
        for reader in 0..READERS {
            let form = Form::ALL[reader % Form::ALL.len()];
            let (client, id) = (harness.client.clone(), id.clone());
            let (after, leaves) = (dice.up_to(EVENTS as u64), dice.up_to(3) == 0);
            readers.spawn(async move {
                tokio::time::sleep(Duration::from_millis(after)).await;
                (form, whole(&client, &id, form, leaves).await)
            });
        }
        let (body, end) = first.all().await;
        assert_eq!(end, End::Proper);
        let expected = streamweld_tests::events(&body);
        assert!(expected == data, "round {round}");
        while let Some(reader) = readers.join_next().await {
            let (form, seen) = reader.expect("every reader holds");
            let seqs = seen.seqs();
            assert_eq!(
                seqs,
                (2..2 + data.len() as u64).collect::<Vec<_>>(),
                "{form:?} in round {round}"
            );
            assert!(seen.data() == data);
            boundary(&seen);
        }
        wait_end(&harness.client, &id).await;
    }
}

/// Where history ends is said between its last entry and the first one that is live.
fn boundary(seen: &Seen) {
    for (name, told, before) in &seen.told {
        if name == "live" {
            let through = told["through"].as_u64().expect("a sequence");
            let shown = seen.entries[..*before].last().map_or(1, |(seq, ..)| *seq);
            assert_eq!(shown, through.max(1));
        }
    }
}

/// Everything of an answer, in as many sessions as that takes; one that is left in between is gone on with.
async fn whole(client: &Client, id: &str, form: Form, leaves: bool) -> Seen {
    let mut seen = Seen::default();
    let mut bound = if leaves { "&count=37" } else { "" };
    let mut after = String::from("0");
    loop {
        let wait = if form == Form::Json { "&wait=60" } else { "" };
        let query = format!("{}{wait}{bound}&last_event_id={after}", form.query());
        let response = ask(client, id, &query).await;
        if response.status == 204 {
            return seen;
        }
        let (body, end) = response.all().await;
        assert_eq!(end, End::Proper);
        let more = form.read(&body);
        if let Some(next) = more.told("closing")["next"].as_str() {
            after = next.to_owned();
        }
        // Where a later session begins is no boundary of the first.
        let is_first = seen.entries.is_empty();
        let reason = more.reason().to_owned();
        seen.entries.extend(more.entries);
        if is_first {
            seen.told = more.told;
        }
        match &*reason {
            "end_of_stream" => return seen,
            "count" => bound = "",
            "caught_up" | "page" | "idle" => {}
            other => panic!("{form:?} ended by {other}"),
        }
    }
}

/// Numbers that follow from the first one.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % (most + 1)
    }
}
