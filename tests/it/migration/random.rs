//! Texts that repeat themselves, cut anywhere, again and again: what is shown is what would have been.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Script};
use streamweld_tests::{End, Twins, TwinsSetup};

use super::answer::{Answer, CHAT, COMPLETIONS, ask, request};

/// So many answers of each kind.
const CASES: usize = 60;

/// What texts are made of: all that would mislead whoever looked for an overlap.
const PIECES: [&str; 16] = [
    "0000", "ha ha ", "}\n", "    ", "```\n", "潮汐", "🌊", "é", " the", "\n\n", "a", " ",
    "so so so", "|---|", "\t", "日本 ",
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn text(&mut self) -> String {
        // A few pieces, so that they come again.
        let few = [(); 4].map(|()| PIECES[self.below(PIECES.len())]);
        let length = 4 + self.below(24);
        (0..length).map(|_| few[self.below(few.len())]).collect()
    }
}

struct Case {
    engine: Engine,
    path: &'static str,
    policy: Policy,
    more: Value,
}

/// One text, cut up to three times.
async fn one(case: &Case, twins: &Twins, random: &mut Random) -> (Answer, Answer, End) {
    let text = random.text();
    let script = || Script::text(text.clone()).engine(case.engine).id("x");
    twins.mocks[0].set_script(script());
    let body = request(case.path, &case.more);
    let client = &twins.replica.client;
    let (whole, end) = ask(client, case.path, &body).await;
    assert_eq!((end, &whole.text), (End::Proper, &text));
    let cuts = (0..=random.below(3)).map(|_| {
        let at = (2 + random.below(8), random.below(200));
        if random.below(2) == 0 {
            script().fin_after(at)
        } else {
            script().rst_after(at)
        }
    });
    let cuts: Vec<Script> = cuts.collect();
    let before = twins.attempts().len();
    let asked = cuts.len();
    twins.next(cuts);
    let (answer, end) = ask(client, case.path, &body).await;
    // What was not asked for is not left to the next.
    for _ in twins.attempts().len() - before..asked {
        drop(ask(client, case.path, &body).await);
    }
    (whole, answer, end)
}

async fn every_text(case: Case) {
    let seed: u64 = 0x5eed;
    let mut random = Random(seed);
    let twins = TwinsSetup::new(Script::new().engine(case.engine))
        .count(3)
        .policy(case.policy)
        .start()
        .await;
    let (mut exact, mut refused) = (0, 0);
    for number in 0..CASES {
        let (whole, answer, end) = one(&case, &twins, &mut random).await;
        let place = format!(
            "{} {} case {number} of seed {seed:#x}: {:?}",
            case.engine, case.path, whole.text
        );
        match &answer.error {
            None if answer.done => {
                assert_eq!((end, &answer), (End::Proper, &whole), "{place}");
                exact += 1;
            }
            None => assert!(answer.is_settled(&whole), "{place}: {answer:?}"),
            Some(error) => {
                assert_eq!(
                    (end, &error["code"]),
                    (End::Fin, &json!("migration_refused")),
                    "{place}"
                );
                assert!(
                    error["message"]
                        .as_str()
                        .expect("a message")
                        .contains("seam ("),
                    "{place}: {error}"
                );
                assert!(whole.text.starts_with(&answer.text), "{place}: {answer:?}");
                refused += 1;
            }
        }
    }
    match case.policy {
        Policy::Exact => assert_eq!(refused, 0),
        _ => assert!(exact > CASES / 4, "{exact}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_repeat_themselves_survive_by_ids() {
    for (engine, path) in [
        (Engine::Vllm, CHAT),
        (Engine::Vllm, COMPLETIONS),
        (Engine::Sglang, COMPLETIONS),
    ] {
        let more = json!({"stream_options": {"include_usage": true}});
        every_text(Case {
            engine,
            path,
            policy: Policy::Exact,
            more,
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_repeat_themselves_survive_by_prefill() {
    for (engine, path) in [
        (Engine::LlamaCpp, CHAT),
        (Engine::LlamaCpp, COMPLETIONS),
        (Engine::Sglang, CHAT),
    ] {
        let more = json!({"temperature": 0, "stream_options": {"include_usage": true}});
        every_text(Case {
            engine,
            path,
            policy: Policy::Prefill,
            more,
        })
        .await;
    }
}
