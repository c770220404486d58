//! One answer that is cut: what every kind of reader was shown, and what is known of it.

use serde_json::{Value, json};
use streamweld_mock::{Engine, Script};
use streamweld_tests::{Block, End, Twins, TwinsSetup, blocks, state};

use super::answer::{Answer, CHAT, SECRET, request};

/// What is told where nothing else is said. Its first words are whole words, so that it can go on by prefill, too.
pub(super) const TEXT: &str = "Salt comes from rivers.\n\nha ha ha\n\n    return 0000\n}\n}\n";

/// The events that a story shows before it cuts: some whole words.
pub(super) const SHOWN: usize = 8;

/// An engine that says [`TEXT`].
pub(super) fn says(engine: Engine) -> Script {
    Script::text(TEXT).engine(engine)
}

/// Two engines, and the first attempt is cut behind [`SHOWN`] events.
pub(super) async fn cut_once(
    engine: Engine,
    change: impl FnOnce(TwinsSetup) -> TwinsSetup,
) -> Twins {
    let twins = change(TwinsSetup::new(says(engine))).start().await;
    twins.next([says(engine).fin_after(SHOWN)]);
    twins
}

/// What is known of one answer once it has ended.
pub(super) struct Told {
    pub(super) id: String,
    /// As its app was shown it, and how the body ended.
    pub(super) answer: Answer,
    pub(super) end: End,
    /// As a reader with control events was shown it.
    pub(super) control: Vec<Block>,
    pub(super) state: Value,
}

impl Told {
    /// Asks for a chat, and looks at everything.
    pub(super) async fn chat(twins: &Twins, more: &Value) -> Self {
        Self::of(twins, CHAT, &request(CHAT, more)).await
    }

    pub(super) async fn of(twins: &Twins, path: &str, body: &Value) -> Self {
        let client = &twins.replica.client;
        let mut response = client.send("POST", path, &body.to_string()).await;
        assert_eq!(response.status, 200);
        let id = response.id();
        let (shown, end) = response.body.rest().await;
        let control = client.with("x-streamweld-events", "control");
        let (control, _) = control.events(&id).await.all().await;
        Self {
            answer: Answer::of(&shown),
            end,
            control: blocks(&control),
            state: state(client, &id).await,
            id,
        }
    }

    /// The payloads of the control events of this kind.
    pub(super) fn payloads(&self, kind: &str) -> Vec<Value> {
        let name = format!("streamweld.{kind}");
        let found = self
            .control
            .iter()
            .filter(|block| block.event.as_deref() == Some(&name));
        found
            .map(|block| serde_json::from_str(block.data.as_deref().expect("data")).expect("JSON"))
            .collect()
    }

    /// Checks that it is whole, and went on elsewhere by this method.
    #[track_caller]
    pub(super) fn assert_moved(&self, method: &str) {
        assert_eq!((self.end, &self.answer.error), (End::Proper, &None));
        assert_eq!((self.answer.text.as_str(), self.answer.done), (TEXT, true));
        assert_eq!(self.answer.roles(), 1);
        let moves = self.payloads("migration");
        assert_eq!(moves.len(), 1, "{moves:?}");
        assert_eq!(moves[0]["method"], method);
        assert!(self.payloads("warning").is_empty());
        assert_eq!(self.state["migrations"], 1);
    }

    /// Checks that it ended because these gates refuse, and that whoever reads that learns which and why. Gives the
    /// messages.
    #[track_caller]
    pub(super) fn assert_refused(&self, gates: &[&str]) -> Vec<String> {
        assert_eq!((self.end, self.answer.done), (End::Fin, false));
        let error = self.answer.error.as_ref().expect("an error");
        assert_eq!(error["code"], "migration_refused");
        let message = error["message"].as_str().expect("a message");
        let warnings = self.payloads("warning");
        let told: Vec<_> = warnings
            .iter()
            .map(|warning| warning["gate"].clone())
            .collect();
        assert_eq!(json!(told), json!(gates), "{message}");
        // One for each gate, and then the end.
        let seqs: Vec<_> = warnings
            .iter()
            .map(|warning| warning["seq"].as_u64())
            .collect();
        let last = self.state["terminal"]["seq"].as_u64().expect("a terminal");
        let expected: Vec<_> = (last - gates.len() as u64..last).map(Some).collect();
        assert_eq!(seqs, expected);
        let saw = warnings
            .iter()
            .map(|warning| warning["message"].as_str().expect("a message").to_owned());
        let saw: Vec<String> = saw.collect();
        for (gate, saw) in gates.iter().zip(&saw) {
            assert!(
                message.contains(gate) && message.contains(saw.as_str()),
                "{message}"
            );
            assert!(saw.contains(' '), "a sentence: {saw}");
            for confided in [SECRET, "Salt", "rivers"] {
                assert!(!saw.contains(confided), "{saw}");
            }
        }
        assert!(self.payloads("migration").is_empty());
        assert_eq!(self.state["terminal"]["code"], "migration_refused");
        saw
    }
}
