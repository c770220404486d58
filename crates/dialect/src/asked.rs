//! What a request asks for that decides whether somebody else can go on with its answer.
//!
//! The cold counterpart of [`RequestShape`](crate::RequestShape): it parses the whole body, once, when an attempt has
//! failed and the gates ask. A member that it does not know is named and not guessed at: engines have dozens that steer
//! how tokens are chosen, and one that passes unseen makes an answer that is silently another.

mod members;
mod messages;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::Dialect;

/// The facts of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// What stands in the way, each with the members that say so. Ordered and without repetition.
    pub hazards: BTreeSet<Hazard>,
    /// Members that nobody here knows, by name.
    pub unknown: BTreeSet<String>,
    /// The most tokens of an answer, where the request says so.
    pub max_tokens: Option<u64>,
    /// The fewest.
    pub min_tokens: Option<u64>,
    /// Whether every token is the most probable one, so that another engine would choose the same.
    pub greedy: bool,
}

/// Something that a continuation cannot carry on, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hazard {
    /// More than one answer, or a search over several.
    Choices,
    /// Tools that the model may call: the parser of calls has a state.
    Tools,
    /// Tools that the server runs: a second run does the same again.
    ServerTools,
    /// A grammar, a schema or a format: it would begin anew.
    StructuredOutput,
    /// Text at which the answer ends: some of it may be held back.
    StopSequence,
    /// Penalties that depend on what was generated.
    Penalties,
    /// A random generator whose state is in the engine.
    Seed,
    /// Reasoning, or a budget for it.
    Reasoning,
    /// Probabilities whose places count from the start of an answer.
    Logprobs,
    /// The prompt is repeated in the answer.
    Echo,
    /// A prompt that is more than text.
    Media,
    /// The prompt may be shortened.
    Truncation,
    /// The app has written the beginning of the answer itself.
    Prefilled,
    /// State of the engine beside the prompt: embeddings, caches, adapters that are named per request.
    EngineState,
}

impl Hazard {
    /// The word for it in verdicts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Choices => "choices",
            Self::Tools => "tools",
            Self::ServerTools => "server_tools",
            Self::StructuredOutput => "structured_output",
            Self::StopSequence => "stop_sequence",
            Self::Penalties => "penalties",
            Self::Seed => "seed",
            Self::Reasoning => "reasoning",
            Self::Logprobs => "logprobs",
            Self::Echo => "echo",
            Self::Media => "media",
            Self::Truncation => "truncation",
            Self::Prefilled => "prefilled",
            Self::EngineState => "engine_state",
        }
    }
}

/// Why a request says nothing that can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON object.
    #[error("the request is no JSON object")]
    NoObject,
    /// Its dialect has no continuation.
    #[error("requests of this dialect are not read")]
    Dialect,
}

impl Asked {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// Nothing of it can be relied on.
    pub fn read(dialect: Dialect, body: &[u8]) -> Result<Self, Unreadable> {
        let tables: &[Table] = match dialect {
            Dialect::OpenAiChat => &[members::CHAT, members::COMMON],
            Dialect::OpenAiCompletions => &[members::COMPLETIONS, members::COMMON],
            Dialect::AnthropicMessages => &[messages::MESSAGES],
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic => {
                return Err(Unreadable::Dialect);
            }
        };
        let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
            return Err(Unreadable::NoObject);
        };
        let mut asked = Self {
            greedy: is_greedy(&members),
            ..Self::default()
        };
        for (name, value) in &members {
            // Every engine takes a null for a member that is not there.
            if value.is_null() {
                continue;
            }
            let mut known = tables.iter().copied().flatten();
            match known.find(|(known, _)| known == name) {
                Some((_, member)) => asked.see(*member, value),
                None => {
                    asked.unknown.insert(name.clone());
                }
            }
        }
        let forbids = |choice: &Value| match dialect {
            Dialect::AnthropicMessages => choice.get("type").is_some_and(|kind| kind == "none"),
            _ => choice == "none",
        };
        if members.get("tool_choice").is_some_and(forbids) {
            asked.hazards.remove(&Hazard::Tools);
        }
        if members.get("messages").is_some_and(ends_with_an_answer) {
            asked.hazards.insert(Hazard::Prefilled);
        }
        Ok(asked)
    }

    fn see(&mut self, member: Member, value: &Value) {
        match member {
            Member::Plain => {}
            Member::MaxTokens => self.max_tokens = fewer(self.max_tokens, value.as_u64()),
            Member::MinTokens => {
                self.min_tokens = value.as_u64().filter(|&least| least > 0);
            }
            Member::Unless(hazard, is_harmless) => {
                if !is_harmless(value) {
                    self.hazards.insert(hazard);
                }
            }
        }
    }
}

/// What a member of a request is to a continuation.
#[derive(Clone, Copy)]
enum Member {
    /// It holds for the continuation as it does for the first request.
    Plain,
    MaxTokens,
    MinTokens,
    /// It stands in the way, unless its value is one of no effect.
    Unless(Hazard, fn(&Value) -> bool),
}

type Table = &'static [(&'static str, Member)];

/// Two members may bound the same; both hold.
fn fewer(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

fn ends_with_an_answer(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| last.get("role").is_some_and(|role| role == "assistant"))
}

fn is_greedy(members: &Map<String, Value>) -> bool {
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    // One that takes the most probable tokens away draws among those that are left.
    let takes_away = number("xtc_probability").is_some_and(|chance| chance != 0.0);
    let has = |name: &str, letter: char| match members.get("samplers") {
        None | Some(Value::Null) => true,
        Some(Value::Array(samplers)) => samplers.iter().any(|one| one == name),
        Some(Value::String(letters)) => letters.contains(letter),
        Some(_) => false,
    };
    let is_cold = number("temperature") == Some(0.0) && has("temperature", 't');
    let is_alone = number("top_k") == Some(1.0) && has("top_k", 'k');
    (is_cold || is_alone) && !takes_away
}

#[cfg(test)]
mod tests;
