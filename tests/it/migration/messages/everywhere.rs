//! A backend is killed at every place of its message, and what the app makes of what it is shown.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine, Point, Script};
use streamweld_tests::{End, Twins, TwinsSetup};

use super::message::{Message, ask, request};

const TEXT: &str = "The tide 潮 is in.\n\nha ha 🌊\n\n    return 0\n}\n}\n0000 0000\n";

const ENGINES: [Engine; 2] = [Engine::Anthropic, Engine::LlamaCpp];

#[derive(Debug, Default)]
struct Tally {
    whole: usize,
    settled: usize,
    refused: usize,
}

/// One kind of message, killed at every place.
struct Cuts {
    engine: Engine,
    /// What the app asks for besides.
    more: Value,
    text: &'static str,
    /// Every so many bytes within an event.
    stride: usize,
}

impl Cuts {
    /// Kills the backend at every place. What is not whole has to be refused by one of `gates`.
    async fn check(self, gates: &[&str]) -> Tally {
        let first = Script::text(self.text)
            .engine(self.engine)
            .id("first")
            .model("m");
        // The one that goes on calls itself and its model otherwise.
        let rest = Script::text(self.text)
            .engine(self.engine)
            .id("rest")
            .model("n");
        let twins = TwinsSetup::new(rest).start().await;
        let body = request(&self.more);
        let client = &twins.replica.client;
        twins.next([first.clone()]);
        let (whole, end) = ask(client, &body).await;
        assert_eq!((end, whole.done), (End::Proper, true));
        // Until something of a message is shown there is nothing that another one would have to look like.
        let (anew, _) = ask(client, &body).await;

        let mut tally = Tally::default();
        for (at, point) in self.places(&twins, &first).into_iter().enumerate() {
            let cut = match at % 2 {
                0 => first.clone().fin_after(point),
                _ => first.clone().rst_after(point),
            };
            twins.next([cut]);
            let (message, end) = ask(client, &body).await;
            self.judge(point, [&whole, &anew], &message, end, gates, &mut tally);
        }
        tally
    }

    /// Behind every event, and within each at places that are others in the next.
    fn places(&self, twins: &Twins, first: &Script) -> Vec<Point> {
        let attempt = twins.attempts().remove(0);
        let events = first.expected(&attempt.ask(Dialect::AnthropicMessages));
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
        [whole, anew]: [&Message; 2],
        message: &Message,
        end: End,
        gates: &[&str],
        tally: &mut Tally,
    ) {
        let place = format!("{} {} at {at:?}", self.engine, self.more);
        match (&message.error, end) {
            (None, End::Proper) if message.done => {
                assert!(
                    message == whole || message == anew,
                    "{place}: {message:?}\n{whole:?}"
                );
                tally.whole += 1;
            }
            (None, End::Proper) => {
                assert!(message.is_settled(whole), "{place}: {message:?}");
                tally.settled += 1;
            }
            (Some(error), End::Fin) => {
                assert_eq!(error["code"], "migration_refused", "{place}: {error}");
                let said = error["message"].as_str().expect("a message");
                assert!(
                    gates.iter().any(|gate| said.contains(gate)),
                    "{place}: {said}"
                );
                assert!(
                    whole.text.starts_with(&message.text),
                    "{place}: {message:?}"
                );
                tally.refused += 1;
            }
            other => panic!("{place}: {other:?}"),
        }
    }
}

/// Where a block is closed and the reason is not there yet, nobody knows whether more would have come.
const CLOSED: &str = "failure_class (a part of the answer had come to its end";

async fn every_wish(engine: Engine) {
    for wish in [
        json!({}),
        json!({"max_tokens": 24, "metadata": {"user_id": "u"}}),
        json!({"temperature": 1, "top_k": 1, "stop_sequences": []}),
    ] {
        let cuts = Cuts {
            engine,
            more: wish,
            text: TEXT,
            stride: 61,
        };
        let tally = cuts.check(&[CLOSED]).await;
        assert!(tally.whole > 50 && tally.settled > 0, "{tally:?}");
        assert!((1..5).contains(&tally.refused), "{tally:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_hosted_service_go_on_from_every_cut() {
    every_wish(Engine::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_llama_cpp_go_on_from_every_cut() {
    every_wish(Engine::LlamaCpp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_message_is_a_place_at_which_it_goes_wrong() {
    let cuts = Cuts {
        engine: Engine::Anthropic,
        more: json!({}),
        // So that it has few events.
        text: "The 潮",
        stride: 1,
    };
    let tally = cuts.check(&[CLOSED]).await;
    assert!(tally.whole > 500, "{tally:?}");
}

/// What would mislead whoever looked for an overlap, cut behind each event, and once more in what goes on.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_repeat_themselves_are_whole_after_two_cuts() {
    for text in [
        "ha ha ha ha ha ha ha",
        "0000 0000 0000 0000 0000",
        "x {\n}\n}\n}\n}\n}\n",
        "a\n    a\n    a\n    a\n    a\n",
        "```\nso so\n```\n```\nso so\n```\n",
        "|---|---|\n|---|---|\n|---|---|\n",
    ] {
        let says = |engine| Script::text(text).engine(engine).id("x");
        for engine in ENGINES {
            let twins = TwinsSetup::new(says(engine)).count(3).start().await;
            let client = &twins.replica.client;
            let body = request(&json!({}));
            let (whole, _) = ask(client, &body).await;
            assert_eq!(whole.text, text);
            let attempt = twins.attempts().remove(0);
            let events = says(engine)
                .expected(&attempt.ask(Dialect::AnthropicMessages))
                .len();
            // Behind the first text, and ahead of the end of the block.
            for at in 4..events - 2 {
                let before = twins.attempts().len();
                twins.next([says(engine).fin_after(at), says(engine).rst_after((3, 20))]);
                let (message, end) = ask(client, &body).await;
                assert_eq!(
                    (end, &message),
                    (End::Proper, &whole),
                    "{engine} {text:?} at {at}"
                );
                // Near its end the rest is shorter than that; what was not asked for is not left to the next.
                for _ in twins.attempts().len() - before..2 {
                    drop(ask(client, &body).await);
                }
            }
        }
    }
}
