//! How an engine words what it says: one form for each, to the byte where it was seen.

mod llama_cpp;
mod sglang;
mod vllm;

use serde_json::json;

use super::{Engine, Plan, pieces::Piece, tokens::END};
use crate::{
    Ask, End, ErrorEvent, Script,
    dialects::{Facts, Voice, call_deltas, event, json as to_json},
    text::Text,
};

/// Stands for the text of a chunk: a noncharacter, escaped wherever else it stands.
const TEXT: &str = "\u{10ffff}";

/// The form of an engine's chunks; each call gives the data of one event.
trait Form: Send + Sync {
    /// The chunk that names the role.
    fn role(&self, speech: &Speech, choice: usize) -> String;
    /// A chunk with the text `TEXT`, and a finish reason where that comes with it.
    fn text(&self, speech: &Speech, choice: usize, piece: &Piece, finish: Option<&str>) -> String;
    /// A chunk with another delta, of a chat.
    fn delta(&self, speech: &Speech, choice: usize, delta: &str) -> String;
    /// The chunk with the finish reason; `piece` has the ids and counts that go with it.
    fn finish(&self, speech: &Speech, choice: usize, reason: &str, piece: &Piece) -> String;
    /// The chunk with the counts, if there is one.
    fn usage(&self, speech: &Speech) -> Option<String>;
    /// An error.
    fn error(&self, error: &ErrorEvent) -> String;
}

/// What all chunks of an answer are made from.
struct Speech {
    facts: Facts,
    plan: Plan,
    /// `id` and `model` as JSON.
    id: String,
    model: String,
    /// Whether the reason comes with the last text.
    finish_in_text: bool,
    logprobs: bool,
    timings: bool,
}

/// The facts of an engine's answer, from what the dialect made of the request.
pub(crate) fn settle(mut facts: Facts, script: &Script, plan: &Plan) -> (Facts, Text) {
    if !plan.ended {
        facts.calls.clear();
    } else if facts.calls.is_empty() {
        // A limit that counts words may have taken them away.
        facts.calls.clone_from(&script.calls);
    }
    let natural = match plan.ended {
        false if plan.is_message => "max_tokens",
        true if plan.is_message && !facts.calls.is_empty() => "tool_use",
        true if plan.is_message => "end_turn",
        false => "length",
        true if plan.is_chat && !facts.calls.is_empty() => "tool_calls",
        true => "stop",
    };
    facts.finish = script.finish.clone().unwrap_or_else(|| natural.to_owned());
    if plan.engine == Engine::LlamaCpp && script.id.is_none() {
        facts.id = facts
            .id
            .replacen("cmpl-", "chatcmpl-", usize::from(!plan.is_chat));
    }
    facts.prompt_tokens = plan.prompt.len();
    facts.completion_tokens = plan.tokens;
    let text = Text::of(plan.pieces.iter().map(|piece| piece.text.as_str()));
    (facts, text)
}

/// The voice of an engine.
pub(crate) fn voice(facts: Facts, plan: Plan, script: &Script, ask: &Ask) -> Box<dyn Voice> {
    let form: &'static dyn Form = match plan.engine {
        Engine::Vllm => &vllm::Vllm,
        Engine::Sglang => &sglang::Sglang,
        // Its messages have the voice of their dialect.
        Engine::LlamaCpp | Engine::Anthropic => &llama_cpp::LlamaCpp,
    };
    let merges = match plan.engine {
        Engine::Vllm => true,
        Engine::Sglang => !plan.is_chat,
        Engine::LlamaCpp | Engine::Anthropic => false,
    };
    let finishes = !matches!(script.end, End::NoFinish | End::SentinelOnly);
    let finish_in_text = merges && finishes && !plan.ended && !plan.pieces.is_empty();
    let speech = Speech {
        id: quote(&facts.id),
        model: quote(&facts.model),
        finish_in_text,
        logprobs: ask.order.logprobs,
        timings: ask.order.timings_per_token,
        facts,
        plan,
    };
    Box::new(Engineer { form, speech })
}

/// See the module.
struct Engineer {
    form: &'static dyn Form,
    speech: Speech,
}

impl Engineer {
    fn each(&self, data: impl Fn(usize) -> String) -> Vec<Vec<u8>> {
        (0..self.speech.facts.choices)
            .map(|choice| event(None, &data(choice)))
            .collect()
    }

    fn has_role(&self) -> bool {
        self.speech.plan.is_chat && self.speech.facts.role_chunk
    }

    /// What was counted before an answer that is broken off behind so many events.
    fn broken_off(&self, events: usize) -> Piece {
        let rounds = events / self.speech.facts.choices;
        let pieces = rounds.saturating_sub(usize::from(self.has_role()));
        let shown = &self.speech.plan.pieces;
        let last = shown[..pieces.min(shown.len())].last();
        Piece {
            count: last.map_or(0, |piece| piece.count),
            ..Piece::default()
        }
    }
}

impl Voice for Engineer {
    fn opening(&self) -> Vec<Vec<u8>> {
        if !self.has_role() {
            return Vec::new();
        }
        self.each(|choice| self.form.role(&self.speech, choice))
    }

    fn text(&self, choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        let pieces = &self.speech.plan.pieces;
        let is_last = token + 1 == pieces.len();
        let finish = (is_last && self.speech.finish_in_text).then_some(&*self.speech.facts.finish);
        // What a mark adds behind the last one has no tokens.
        let none = Piece::default();
        let piece = pieces.get(token).unwrap_or(&none);
        let data = self.form.text(&self.speech, choice, piece, finish);
        let event = event(None, &data);
        let at = data.find(TEXT).expect("the form has a place for the text") + "data: ".len();
        out.extend_from_slice(&event[..at]);
        text(out);
        out.extend_from_slice(&event[at + TEXT.len()..]);
    }

    fn calls(&self, _events: usize) -> Vec<Vec<u8>> {
        if !self.speech.plan.is_chat {
            return Vec::new();
        }
        let choices = 0..self.speech.facts.choices;
        choices
            .flat_map(|choice| {
                let deltas = call_deltas(&self.speech.facts, choice);
                deltas
                    .into_iter()
                    .map(move |delta| self.form.delta(&self.speech, choice, &delta))
            })
            .map(|data| event(None, &data))
            .collect()
    }

    fn finish(&self, reason: &str, events: usize) -> Vec<Vec<u8>> {
        let piece = match reason {
            "abort" => self.broken_off(events),
            _ if self.speech.finish_in_text => return Vec::new(),
            _ => Piece {
                ids: if self.speech.plan.ended {
                    vec![END]
                } else {
                    Vec::new()
                },
                count: self.speech.facts.completion_tokens,
                ..Piece::default()
            },
        };
        self.each(|choice| self.form.finish(&self.speech, choice, reason, &piece))
    }

    fn usage(&self) -> Option<Vec<u8>> {
        Some(event(None, &self.form.usage(&self.speech)?))
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        Some(event(None, "[DONE]"))
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        event(None, &self.form.error(error))
    }
}

/// The body of a whole answer.
pub(crate) fn whole(facts: &Facts, plan: &Plan, text: &str) -> Vec<u8> {
    // It repeats what it was given, but only here.
    let text = match plan.engine {
        Engine::LlamaCpp if plan.is_chat => plan.given.clone() + text,
        _ => text.to_owned(),
    };
    let tells_ids = facts.token_ids && plan.engine != Engine::LlamaCpp;
    let told = plan.pieces.iter().flat_map(|piece| &piece.ids);
    let ids: Vec<u32> = told.chain(plan.ended.then_some(&END)).copied().collect();
    let choices: Vec<_> = (0..facts.choices)
        .map(|index| {
            let mut choice = json!({
                "index": index, "logprobs": null, "finish_reason": facts.finish,
            });
            if plan.is_chat {
                choice["message"] = json!({ "role": plan.role, "content": text });
            } else {
                choice["text"] = json!(text);
            }
            if tells_ids {
                choice["token_ids"] = json!(ids);
                if !plan.is_chat {
                    choice["prompt_token_ids"] = json!(plan.prompt);
                }
            }
            choice
        })
        .collect();
    let completion = facts.completion_tokens * facts.choices;
    let mut answer = json!({
        "id": facts.id,
        "object": if plan.is_chat { "chat.completion" } else { "text_completion" },
        "created": facts.created,
        "model": facts.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": facts.prompt_tokens, "completion_tokens": completion,
            "total_tokens": facts.prompt_tokens + completion,
        },
    });
    if tells_ids && plan.is_chat {
        answer["prompt_token_ids"] = json!(plan.prompt);
    }
    answer.to_string().into_bytes()
}

/// A text as JSON.
fn quote(text: &str) -> String {
    to_json(&text).replace(TEXT, r"\udbff\udfff")
}

/// A finish reason as JSON.
fn reason(reason: Option<&str>) -> String {
    reason.map_or_else(|| "null".to_owned(), quote)
}

impl Speech {
    /// All tokens of all choices.
    fn completion(&self) -> usize {
        self.facts.completion_tokens * self.facts.choices
    }

    fn object(&self) -> &'static str {
        if self.plan.is_chat {
            "chat.completion.chunk"
        } else {
            "text_completion"
        }
    }

    /// Ids as JSON, where they are asked for.
    fn ids(&self, ids: &[u32]) -> String {
        if self.facts.token_ids {
            to_json(&ids)
        } else {
            "null".to_owned()
        }
    }
}
