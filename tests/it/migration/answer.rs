//! One answer, as an app puts it together from its chunks.

use serde_json::{Value, json};
use streamweld_tests::{Client, End, events};

/// An answer, without how it was cut into chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// Its text, put together.
    pub(super) text: String,
    /// The ids of its tokens, where the app asked for them.
    pub(super) ids: Vec<Value>,
    /// The last of the counts on its chunks.
    pub(super) counts: Value,
    /// Its chunks without text, ids and counts; of neighbours that are alike only the first.
    pub(super) chunks: Vec<Value>,
    /// It ended with the sentinel.
    pub(super) done: bool,
    /// The error that it ended with.
    pub(super) error: Option<Value>,
}

impl Answer {
    #[track_caller]
    pub(super) fn of(body: &[u8]) -> Self {
        let mut answer = Self::default();
        for data in events(body) {
            assert!(!answer.done && answer.error.is_none(), "{data} comes late");
            answer.push(&data);
        }
        answer
    }

    fn push(&mut self, data: &str) {
        if data == "[DONE]" {
            self.done = true;
            return;
        }
        let mut chunk: Value = serde_json::from_str(data).expect("a chunk");
        if !chunk["error"].is_null() {
            self.error = Some(chunk["error"].take());
            return;
        }
        // How long the work took is of the backend that tells it, and not of the answer.
        chunk.as_object_mut().expect("an object").remove("timings");
        if chunk["choices"][0].is_object() {
            self.choice(&mut chunk);
        }
        if self.chunks.last() != Some(&chunk) {
            self.chunks.push(chunk);
        }
    }

    fn choice(&mut self, chunk: &mut Value) {
        let members = chunk.as_object_mut().expect("an object");
        let counts = members.remove("usage").filter(|counts| !counts.is_null());
        let choice = members["choices"][0].as_object_mut().expect("a choice");
        if let Some(Value::Array(ids)) = choice.remove("token_ids") {
            self.ids.extend(ids);
        }
        if choice.get("prompt_token_ids").is_some_and(Value::is_null) {
            choice.remove("prompt_token_ids");
        }
        let text = match choice.get_mut("delta") {
            Some(delta) => delta
                .as_object_mut()
                .and_then(|delta| delta.remove("content")),
            None => choice.remove("text"),
        };
        if let Some(Value::String(text)) = text {
            self.text.push_str(&text);
        }
        if let Some(counts) = counts {
            let count = |counts: &Value| counts["completion_tokens"].as_u64();
            assert!(count(&counts) >= count(&self.counts), "counts go on");
            self.counts = counts;
        }
    }

    /// How many chunks say who speaks.
    pub(super) fn roles(&self) -> usize {
        let roles = self.chunks.iter();
        roles
            .filter(|chunk| chunk["choices"][0]["delta"]["role"].is_string())
            .count()
    }

    /// The finish reason.
    pub(super) fn finish(&self) -> Option<&str> {
        let mut chunks = self.chunks.iter();
        chunks.find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str())
    }

    /// Whether this is `whole` up to its finish reason: a backend that goes behind it leaves nothing to go on with.
    pub(super) fn is_settled(&self, whole: &Self) -> bool {
        self.finish().is_some()
            && self.finish() == whole.finish()
            && self.text == whole.text
            && whole.chunks.starts_with(&self.chunks)
            && !self.done
    }
}

/// A request for an answer of chat or completions, with further members.
pub(super) fn request(path: &str, more: &Value) -> Value {
    let mut request = json!({"model": "m", "stream": true});
    if path.ends_with("chat/completions") {
        request["messages"] =
            json!([{"role": "system", "content": SECRET}, {"role": "user", "content": "q"}]);
    } else {
        request["prompt"] = json!(SECRET);
    }
    let members = request.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("members").clone());
    request
}

/// What must never be shown to a reader, nor stand in a message.
pub(super) const SECRET: &str = "Never say Rumpelstilzchen.";

pub(super) const CHAT: &str = "/v1/chat/completions";
pub(super) const COMPLETIONS: &str = "/v1/completions";

/// Asks, and reads to the end.
pub(super) async fn ask(client: &Client, path: &str, body: &Value) -> (Answer, End) {
    let mut response = client.send("POST", path, &body.to_string()).await;
    assert_eq!(response.status, 200);
    let (body, end) = response.body.rest().await;
    let shown = String::from_utf8_lossy(&body);
    assert!(!shown.contains("Rumpelstilzchen"), "{shown}");
    (Answer::of(&body), end)
}
