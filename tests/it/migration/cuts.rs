//! A backend is killed at every place of its answer, and what the app makes of what it is shown.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Dialect, Engine, Point, Script};
use streamweld_tests::{End, Twins, TwinsSetup};

use super::answer::{Answer, CHAT, COMPLETIONS, ask, request};

const TEXT: &str = "The tide 潮 is in.\n\nha ha 🌊\n\n    return 0\n}\n}\n0000 0000\n";

/// What became of the cuts of one answer.
#[derive(Debug, Default)]
struct Tally {
    whole: usize,
    settled: usize,
    refused: usize,
}

/// One kind of answer, killed at every place.
struct Cuts {
    engine: Engine,
    path: &'static str,
    policy: Policy,
    /// What the app asks for besides.
    more: Value,
    text: &'static str,
    /// Every so many bytes within an event.
    stride: usize,
}

impl Cuts {
    fn by_ids(engine: Engine, path: &'static str, more: Value) -> Self {
        Self {
            engine,
            path,
            policy: Policy::Exact,
            more,
            text: TEXT,
            stride: 131,
        }
    }

    fn by_prefill(engine: Engine, path: &'static str, more: &Value) -> Self {
        let mut greedy = json!({"temperature": 0});
        let members = greedy.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("members").clone());
        Self {
            policy: Policy::Prefill,
            ..Self::by_ids(engine, path, greedy)
        }
    }

    /// Kills the backend at every place. What is not whole has to be refused by one of `gates`.
    async fn check(self, gates: &[&str]) -> Tally {
        // The one that goes on calls itself otherwise, and its clock is another.
        let mut rest = Script::text(self.text).engine(self.engine).id("rest");
        rest.created += 7;
        let first = Script::text(self.text).engine(self.engine).id("first");
        let twins = TwinsSetup::new(rest).policy(self.policy).start().await;
        let body = request(self.path, &self.more);
        let client = &twins.replica.client;
        twins.next([first.clone()]);
        let (whole, end) = ask(client, self.path, &body).await;
        assert_eq!((end, whole.done), (End::Proper, true));
        // Until something of an answer is shown there is nothing that another one would have to look like.
        let (anew, _) = ask(client, self.path, &body).await;

        let mut tally = Tally::default();
        for (at, point) in self.places(&twins, &first).into_iter().enumerate() {
            let cut = match at % 2 {
                0 => first.clone().fin_after(point),
                _ => first.clone().rst_after(point),
            };
            twins.next([cut]);
            let (answer, end) = ask(client, self.path, &body).await;
            self.judge(point, [&whole, &anew], &answer, end, gates, &mut tally);
        }
        tally
    }

    /// Behind every event, and within each at places that are others in the next.
    fn places(&self, twins: &Twins, first: &Script) -> Vec<Point> {
        let dialect = match self.path {
            CHAT => Dialect::OpenAiChat,
            _ => Dialect::OpenAiCompletions,
        };
        let attempt = twins.attempts().remove(0);
        let events = first.expected(&attempt.ask(dialect));
        let all = events.iter().enumerate().flat_map(|(events, event)| {
            let within = (1 + events * 7 % self.stride..event.len()).step_by(self.stride);
            [0].into_iter()
                .chain(within)
                .map(move |bytes| Point { events, bytes })
        });
        all.collect()
    }

    #[track_caller]
    fn judge(
        &self,
        at: Point,
        [whole, anew]: [&Answer; 2],
        answer: &Answer,
        end: End,
        gates: &[&str],
        tally: &mut Tally,
    ) {
        let place = format!("{} {} {} at {at:?}", self.engine, self.path, self.more);
        match (&answer.error, end) {
            (None, End::Proper) if answer.done => {
                assert!(
                    answer == whole || answer == anew,
                    "{place}: {answer:?}\n{whole:?}"
                );
                assert!(answer.roles() == usize::from(self.path == CHAT), "{place}");
                tally.whole += 1;
            }
            (None, End::Proper) => {
                assert!(answer.is_settled(whole), "{place}: {answer:?}");
                tally.settled += 1;
            }
            (Some(error), End::Fin) => {
                assert_eq!(error["code"], "migration_refused", "{place}: {error}");
                let message = error["message"].as_str().expect("a message");
                assert!(
                    gates.iter().any(|gate| message.contains(gate)),
                    "{place}: {message}"
                );
                assert!(whole.text.starts_with(&answer.text), "{place}: {answer:?}");
                tally.refused += 1;
            }
            other => panic!("{place}: {other:?}"),
        }
    }
}

/// What is asked for in each way of asking.
fn wishes() -> [Value; 4] {
    [
        json!({}),
        json!({"max_tokens": 24}),
        json!({"stream_options": {"include_usage": true}}),
        json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true}, "max_tokens": 500}),
    ]
}

async fn every_wish_by_ids(engine: Engine, path: &'static str) {
    for wish in wishes() {
        let mut more = wish;
        more["temperature"] = json!(0.8);
        let tally = Cuts::by_ids(engine, path, more).check(&[]).await;
        assert!(tally.whole > 50 && tally.refused == 0, "{tally:?}");
    }
}

async fn every_wish_by_prefill(engine: Engine, path: &'static str) {
    for wish in wishes() {
        // Until there is a whole word there is nothing to go on from.
        let tally = Cuts::by_prefill(engine, path, &wish).check(&["seam"]).await;
        assert!(tally.whole > 50 && tally.refused < 8, "{tally:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vllm_chat_goes_on_by_ids_from_every_cut() {
    every_wish_by_ids(Engine::Vllm, CHAT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vllm_completions_go_on_by_ids_from_every_cut() {
    every_wish_by_ids(Engine::Vllm, COMPLETIONS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sglang_completions_go_on_by_ids_from_every_cut() {
    every_wish_by_ids(Engine::Sglang, COMPLETIONS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sglang_chat_goes_on_by_prefill_from_every_cut() {
    every_wish_by_prefill(Engine::Sglang, CHAT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn llama_cpp_chat_goes_on_by_prefill_from_every_cut() {
    every_wish_by_prefill(Engine::LlamaCpp, CHAT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn llama_cpp_completions_go_on_by_prefill_from_every_cut() {
    every_wish_by_prefill(Engine::LlamaCpp, COMPLETIONS).await;
}

/// The app sees the ids itself, each of them once.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_asks_for_ids_is_given_those_of_one_answer() {
    let more = json!({"return_token_ids": true, "temperature": 0.8});
    for (engine, path) in [
        (Engine::Vllm, CHAT),
        (Engine::Vllm, COMPLETIONS),
        (Engine::Sglang, COMPLETIONS),
    ] {
        let tally = Cuts::by_ids(engine, path, more.clone())
            .check(&["seam"])
            .await;
        assert!(tally.whole > 50, "{tally:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_an_answer_is_a_place_at_which_it_goes_wrong() {
    let mut cuts = Cuts::by_ids(Engine::Vllm, CHAT, json!({}));
    // So that it has few events: the role, a word, a character in three parts, the finish.
    (cuts.text, cuts.stride) = ("The 潮", 1);
    let tally = cuts.check(&[]).await;
    assert!(tally.whole > 1000 && tally.refused == 0, "{tally:?}");
}
