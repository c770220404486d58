//! The request that goes on with an answer: the first one, with what was said so far in it.
//!
//! What is not changed keeps every byte. Limits are lowered by what was shown, so that both parts together keep them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Dialect, Engine, edit::Edits};

/// How to go on.
#[derive(Clone, Copy, Debug)]
pub struct Continuation<'a> {
    /// Who is asked.
    pub engine: Engine,
    /// What it is given.
    pub so_far: SoFar<'a>,
    /// Tokens that were shown, but for those that it has to write again.
    pub tokens: u64,
}

/// An answer as an engine is given it.
#[derive(Clone, Copy, Debug)]
pub enum SoFar<'a> {
    /// Every token of the rendered prompt and of the answer, by its id.
    Ids(&'a [u32]),
    /// Its text, which ends in no white space.
    Text(&'a str),
}

/// Why there is no such request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotContinued {
    /// The first one is no JSON object, or has a member twice.
    #[error("the request is no JSON object, or names a member twice")]
    NoObject,
    /// It has not what its answer would go behind.
    #[error("the request has no {0} that an answer could go behind")]
    Missing(&'static str),
    /// Requests of its dialect are not continued.
    #[error("requests of this dialect are not continued")]
    Dialect,
    /// Nothing is left of its limits.
    #[error("the request allows no further token")]
    Spent,
}

impl Continuation<'_> {
    /// The body of the request, from that of the first.
    ///
    /// # Errors
    /// There is none.
    pub fn body(&self, dialect: Dialect, first: &str) -> Result<String, NotContinued> {
        let members = Members::read(first).ok_or(NotContinued::NoObject)?;
        let mut edits = Edits::new(first);
        let mut added = String::new();
        self.limits(&members, &mut edits)?;
        match (dialect, self.so_far) {
            (Dialect::OpenAiChat, SoFar::Text(text)) => {
                let messages = members.list("messages")?;
                let message = format!(r#",{{"role":"assistant","content":{}}}"#, json(text));
                edits.append(messages, message);
                members.set(&mut edits, &mut added, "continue_final_message", "true");
                members.set(&mut edits, &mut added, "add_generation_prompt", "false");
            }
            (Dialect::OpenAiChat, SoFar::Ids(ids)) => match self.engine {
                Engine::Vllm => {
                    let ids = format!(r#"{{"prompt_token_ids":{}}}"#, list(ids));
                    members.set(&mut edits, &mut added, "kv_transfer_params", &ids);
                }
                Engine::Sglang => members.set(&mut edits, &mut added, "input_ids", &list(ids)),
                // Its chat takes no ids.
                Engine::LlamaCpp => return Err(NotContinued::Dialect),
            },
            (Dialect::OpenAiCompletions, SoFar::Ids(ids)) => {
                let prompt = members
                    .get("prompt")
                    .ok_or(NotContinued::Missing("prompt"))?;
                edits.replace(prompt, list(ids));
            }
            (Dialect::OpenAiCompletions, SoFar::Text(text)) => {
                let prompt = members
                    .get("prompt")
                    .ok_or(NotContinued::Missing("prompt"))?;
                let Ok(before) = serde_json::from_str::<String>(prompt.get()) else {
                    return Err(NotContinued::Missing("prompt of one text"));
                };
                edits.replace(prompt, json(&(before + text)));
            }
            (
                Dialect::OpenAiResponses
                | Dialect::AnthropicMessages
                | Dialect::Gemini
                | Dialect::Generic,
                _,
            ) => return Err(NotContinued::Dialect),
        }
        edits.append_member(&added);
        Ok(edits.apply())
    }

    fn limits<'t>(&self, members: &Members<'t>, edits: &mut Edits<'t>) -> Result<(), NotContinued> {
        let number = |name| {
            let value = members.get(name)?;
            Some((value, value.get().parse::<u64>().ok()?))
        };
        for name in ["max_tokens", "max_completion_tokens"] {
            if let Some((value, most)) = number(name) {
                // Some engines take a zero for one, others refuse it.
                let left = most.checked_sub(self.tokens).filter(|&left| left > 0);
                edits.replace(value, left.ok_or(NotContinued::Spent)?.to_string());
            }
        }
        if let Some((value, least)) = number("min_tokens") {
            edits.replace(value, least.saturating_sub(self.tokens).to_string());
        }
        Ok(())
    }
}

/// The members of the object that a text is, each where it stands.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'t> Members<'t> {
    /// `None` for what is no object, and where one name stands twice: nobody knows which of them counts.
    fn read(text: &'t str) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer.deserialize_map(ReadMembers).ok()?;
        deserializer.end().ok()?;
        let mut names: Vec<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names
            .windows(2)
            .all(|pair| pair[0] != pair[1])
            .then_some(members)
    }

    fn get(&self, name: &str) -> Option<&'t RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value)
    }

    /// A list with something in it.
    fn list(&self, name: &'static str) -> Result<&'t RawValue, NotContinued> {
        let is_filled = |value: &&RawValue| {
            let inside = value
                .get()
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            inside.is_some_and(|inside| !inside.trim_ascii().is_empty())
        };
        self.get(name)
            .filter(is_filled)
            .ok_or(NotContinued::Missing(name))
    }

    /// Gives a member this value, in its place if it is there, else among those that are `added`.
    fn set(&self, edits: &mut Edits<'t>, added: &mut String, name: &str, value: &str) {
        match self.get(name) {
            Some(there) => edits.replace(there, value.to_owned()),
            None => _ = write!(added, r#","{name}":{value}"#),
        }
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            members.push((name.0, map.next_value()?));
        }
        Ok(Members(members))
    }
}

/// A name, borrowed where it is written without escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn list(ids: &[u32]) -> String {
    serde_json::to_string(ids).expect("numbers are JSON")
}

#[cfg(test)]
mod tests;
