//! One message, as an app puts it together from its events; and one that is cut, with what is known of it.

use serde_json::{Value, json};
use streamweld_mock::{Engine, Script};
use streamweld_tests::{Block, Client, End, Twins, TwinsSetup, blocks, state};

use crate::migration::answer::SECRET;

/// The path that apps use.
pub(super) const MESSAGES: &str = "/v1/messages";

/// Some whole words first, so that it can go on from early on.
pub(super) const TEXT: &str = "Salt comes from rivers.\n\nha ha ha\n\n    return 0000\n}\n}\n";

/// Events that are shown before a story cuts: the beginning, and some whole words.
pub(super) const SHOWN: usize = 10;

/// A message, without how its text was cut into events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) text: String,
    /// Its events without their text, pings left out; of neighbours that are alike only the first.
    pub(super) events: Vec<Value>,
    /// It ended with `message_stop`.
    pub(super) done: bool,
    /// The error that it ended with.
    pub(super) error: Option<Value>,
}

impl Message {
    #[track_caller]
    pub(super) fn of(body: &[u8]) -> Self {
        let mut message = Self::default();
        for block in blocks(body) {
            assert!(
                !message.done && message.error.is_none(),
                "{block:?} comes late"
            );
            message.push(&block);
        }
        message
    }

    fn push(&mut self, block: &Block) {
        let data = block.data.as_deref().expect("data");
        let mut event: Value = serde_json::from_str(data).expect("an event");
        // Clients go by either.
        assert_eq!(block.event.as_deref(), event["type"].as_str(), "{block:?}");
        match event["type"].as_str() {
            Some("error") => {
                self.error = Some(event["error"].take());
                return;
            }
            Some("ping") => return,
            Some("message_stop") => self.done = true,
            Some("content_block_delta") => {
                assert_eq!(event["index"], 0, "{event}");
                if let Value::String(text) = event["delta"]["text"].take() {
                    self.text.push_str(&text);
                }
            }
            _ => {}
        }
        if self.events.last() != Some(&event) {
            self.events.push(event);
        }
    }

    /// The stop reason.
    pub(super) fn finish(&self) -> Option<&str> {
        let mut events = self.events.iter();
        events.find_map(|event| event["delta"]["stop_reason"].as_str())
    }

    /// Whether this is `whole` up to its stop reason: a backend that goes behind it leaves nothing to go on with.
    pub(super) fn is_settled(&self, whole: &Self) -> bool {
        self.finish().is_some()
            && self.text == whole.text
            && whole.events.starts_with(&self.events)
            && !self.done
    }
}

/// A request for a message, with further members.
pub(super) fn request(more: &Value) -> Value {
    let mut request = json!({
        "model": "m", "stream": true, "max_tokens": 500, "temperature": 0, "system": SECRET,
        "messages": [{"role": "user", "content": "q"}],
    });
    let members = request.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("members").clone());
    request
}

/// Asks, and reads to the end.
pub(super) async fn ask(client: &Client, body: &Value) -> (Message, End) {
    let response = client.send("POST", MESSAGES, &body.to_string()).await;
    assert_eq!(response.status, 200);
    let (body, end) = response.all().await;
    let shown = String::from_utf8_lossy(&body);
    assert!(!shown.contains("Rumpelstilzchen"), "{shown}");
    (Message::of(&body), end)
}

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

/// What is known of one message once it has ended.
pub(super) struct Told {
    pub(super) message: Message,
    pub(super) end: End,
    pub(super) control: Vec<Block>,
    pub(super) state: Value,
}

impl Told {
    pub(super) async fn of(twins: &Twins, more: &Value) -> Self {
        Self::at(twins, MESSAGES, more).await
    }

    pub(super) async fn at(twins: &Twins, path: &str, more: &Value) -> Self {
        let client = &twins.replica.client;
        let mut response = client.send("POST", path, &request(more).to_string()).await;
        assert_eq!(response.status, 200);
        let id = response.id();
        let (shown, end) = response.body.rest().await;
        let control = client.with("x-streamweld-events", "control");
        let (control, _) = control.events(&id).await.all().await;
        Self {
            message: Message::of(&shown),
            end,
            control: blocks(&control),
            state: state(client, &id).await,
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
        assert_eq!((self.end, &self.message.error), (End::Proper, &None));
        assert_eq!(
            (self.message.text.as_str(), self.message.done),
            (TEXT, true)
        );
        let moves = self.payloads("migration");
        assert_eq!(moves.len(), 1, "{moves:?}");
        assert_eq!(moves[0]["method"], method);
        assert!(self.payloads("warning").is_empty());
        assert_eq!(self.state["migrations"], 1);
    }

    /// Checks that it ended because these gates refuse, in the API's own form. Gives the messages.
    #[track_caller]
    pub(super) fn assert_refused(&self, gates: &[&str]) -> Vec<String> {
        assert_eq!((self.end, self.message.done), (End::Fin, false));
        let error = self.message.error.as_ref().expect("an error");
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("api_error"), &json!("migration_refused"))
        );
        let message = error["message"].as_str().expect("a message");
        let warnings = self.payloads("warning");
        let told: Vec<_> = warnings
            .iter()
            .map(|warning| warning["gate"].clone())
            .collect();
        assert_eq!(json!(told), json!(gates), "{message}");
        let saw = warnings
            .iter()
            .map(|warning| warning["message"].as_str().expect("a message").to_owned());
        let saw: Vec<String> = saw.collect();
        for (gate, saw) in gates.iter().zip(&saw) {
            assert!(
                message.contains(gate) && message.contains(saw.as_str()),
                "{message}"
            );
            for confided in [SECRET, "Salt", "rivers"] {
                assert!(!saw.contains(confided), "{saw}");
            }
        }
        assert!(self.payloads("migration").is_empty());
        saw
    }
}

/// The requests that only counted tokens.
pub(super) fn counts(twins: &Twins) -> Vec<streamweld_mock::Request> {
    let mut requests = twins.mocks[0].recorder().requests();
    requests.retain(|request| request.path().ends_with("/count_tokens"));
    requests
}
