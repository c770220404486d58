//! The mock as an inference engine.

mod continuation;
mod faults;
mod heads;
mod messages;
mod prefill;
mod probes;
mod shapes;

use serde_json::{Value, json};
use streamweld_mock::{Ask, Dialect, Engine, Script};

/// Prose, a list, a blank line before a word, one at the end of a fence, indents, characters of several tokens,
/// and text that repeats itself.
const TEXT: &str = "The sea is salty.\n\nRivers carry salt:\n- 海水 is\n\n```\nif x:\n    go()\n```\n\nha ha ha ha 0000 }}";

/// A stream as a client reads it.
#[derive(Debug, Default, Clone, PartialEq)]
struct Answer {
    /// The text of each chunk that has a place for it, and how many ids there were up to then.
    chunks: Vec<(String, usize)>,
    ids: Vec<u64>,
    prompt: Option<Vec<u64>>,
    finish: Option<String>,
    /// Of the last chunk that counted.
    usage: Value,
    done: bool,
}

impl Answer {
    fn read(wire: &[u8]) -> Self {
        let mut answer = Self::default();
        for event in std::str::from_utf8(wire).unwrap().split_terminator("\n\n") {
            let data = event.strip_prefix("data: ").unwrap();
            if data == "[DONE]" {
                answer.done = true;
                continue;
            }
            let chunk: Value = serde_json::from_str(data).unwrap();
            let choice = &chunk["choices"][0];
            if chunk["usage"].is_object() {
                answer.usage = chunk["usage"].clone();
            }
            for place in [&chunk["prompt_token_ids"], &choice["prompt_token_ids"]] {
                if let Some(ids) = numbers(place) {
                    answer.prompt = Some(ids);
                }
            }
            answer
                .ids
                .extend(numbers(&choice["token_ids"]).unwrap_or_default());
            if let Some(text) = choice["text"]
                .as_str()
                .or(choice["delta"]["content"].as_str())
            {
                answer.chunks.push((text.to_owned(), answer.ids.len()));
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                answer.finish = Some(reason.to_owned());
            }
        }
        answer
    }

    fn text(&self) -> String {
        self.chunks.iter().map(|(text, _)| text.as_str()).collect()
    }

    fn completion_tokens(&self) -> u64 {
        self.usage["completion_tokens"].as_u64().unwrap()
    }

    /// Everything that the engine read and wrote, its end left out.
    fn all_ids(&self) -> Vec<u64> {
        let end = usize::from(self.finish.as_deref() == Some("stop"));
        let own = &self.ids[..self.ids.len() - end];
        [self.prompt.as_ref().unwrap(), own].concat()
    }
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

fn script(engine: Engine) -> Script {
    Script::text(TEXT).engine(engine)
}

fn ask(dialect: Dialect, body: &Value) -> Ask {
    Ask::read(dialect, body.to_string().as_bytes(), 1)
}

/// What a script says to a request.
fn answer(script: &Script, dialect: Dialect, body: &Value) -> Answer {
    Answer::read(&script.wire(&ask(dialect, body)))
}

/// A streaming request for counts and ids, with these members besides.
fn request(more: &Value) -> Value {
    let mut body = json!({
        "model": "m", "stream": true, "temperature": 0, "return_token_ids": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
    });
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

fn chat(more: &Value) -> Value {
    let mut body = request(&json!({"messages": [{"role": "user", "content": "Why is it salty?"}]}));
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

/// A chat whose last message is the beginning of the answer.
fn chat_with(prefix: &str, more: &Value) -> Value {
    let mut body = chat(more);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": prefix}));
    body
}

/// The flags that make such a chat a continuation.
fn flags() -> Value {
    json!({"continue_final_message": true, "add_generation_prompt": false})
}
