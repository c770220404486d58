//! The request that goes on with an answer: the first one, with what was said so far in it.
//!
//! What is not changed keeps every byte. Limits are lowered by what was shown, so that both parts together keep them.

use crate::{Dialect, Engine, Method, edit::Edits, members::Members};

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
    /// Its text, which ends in no white space. An empty one is no beginning: the first request, as it was.
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
        let method = match self.so_far {
            SoFar::Ids(_) => Method::TokenIds,
            SoFar::Text(_) => Method::Prefill,
        };
        if !self.engine.methods(dialect).contains(&method) {
            return Err(NotContinued::Dialect);
        }
        let mut edits = Edits::new(first);
        let mut added = String::new();
        self.limits(&members, &mut edits)?;
        match (dialect, self.so_far) {
            // An empty message of the assistant is not the same as none.
            (
                Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::AnthropicMessages,
                SoFar::Text(""),
            ) => {}
            // There a message of the assistant behind all others is gone on with, without a word.
            (Dialect::AnthropicMessages, SoFar::Text(text)) => open(&members, &mut edits, text)?,
            (Dialect::OpenAiChat, SoFar::Text(text)) => {
                open(&members, &mut edits, text)?;
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
                Engine::LlamaCpp | Engine::Anthropic => return Err(NotContinued::Dialect),
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
            (Dialect::AnthropicMessages, SoFar::Ids(_))
            | (Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic, _) => {
                return Err(NotContinued::Dialect);
            }
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

/// Puts the answer so far behind the messages.
fn open<'t>(members: &Members<'t>, edits: &mut Edits<'t>, text: &str) -> Result<(), NotContinued> {
    let messages = members.list("messages");
    let messages = messages.ok_or(NotContinued::Missing("messages"))?;
    let message = format!(r#",{{"role":"assistant","content":{}}}"#, json(text));
    edits.append(messages, message);
    Ok(())
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn list(ids: &[u32]) -> String {
    serde_json::to_string(ids).expect("numbers are JSON")
}

#[cfg(test)]
mod tests;
