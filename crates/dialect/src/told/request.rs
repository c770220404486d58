//! Short answers to be asked for, to see how an engine goes on with them: streamed, and each token the most probable one,
//! so that the same question has the same answer.

use serde_json::{Value, json};

use super::Question;

/// A chat of these turns, each with its role, whose answer has so many tokens at most.
#[must_use]
pub fn ask_chat(model: &str, turns: &[(&str, &str)], max_tokens: u64) -> Question {
    of_turns("/v1/chat/completions", model, turns, max_tokens)
}

/// The same as a message.
#[must_use]
pub fn ask_message(model: &str, turns: &[(&str, &str)], max_tokens: u64) -> Question {
    of_turns("/v1/messages", model, turns, max_tokens)
}

fn of_turns(path: &'static str, model: &str, turns: &[(&str, &str)], max_tokens: u64) -> Question {
    let turns = turns.iter();
    let turns: Vec<Value> = turns
        .map(|(role, text)| json!({"role": role, "content": text}))
        .collect();
    let body = json!({
        "model": model,
        "messages": turns,
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": true,
    });
    Question {
        path,
        body: body.to_string(),
    }
}

/// A text to be gone on with, for so many tokens at most.
#[must_use]
pub fn ask_completion(model: &str, prompt: &str, max_tokens: u64) -> Question {
    let body = json!({
        "model": model,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": true,
    });
    Question {
        path: "/v1/completions",
        body: body.to_string(),
    }
}
