//! OpenAI Responses: one message with one text part, an item for each call, and the terminal that its finish reason asks for.

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Facts, Voice, arguments, event, json,
    template::{TEXT, TOTAL, Template},
};
use crate::{Call, ErrorEvent};

/// The events before the text.
const OPENING: usize = 4;

#[derive(Serialize)]
struct Delta<'a> {
    r#type: &'static str,
    item_id: &'a str,
    output_index: usize,
    content_index: usize,
    delta: &'a str,
    logprobs: [(); 0],
    sequence_number: usize,
}

/// The voice of OpenAI Responses.
pub(super) struct Responses {
    facts: Facts,
    item: String,
    text: String,
    template: Template,
}

impl Responses {
    pub(super) fn new(facts: Facts, text: String) -> Self {
        let item = item_id(&facts);
        let delta = Delta {
            r#type: "response.output_text.delta",
            item_id: &item,
            output_index: 0,
            content_index: 0,
            delta: TEXT,
            logprobs: [],
            sequence_number: TOTAL,
        };
        let event = event(Some(delta.r#type), &json(&delta));
        // The number of a text event counts the texts up to it, and the opening, from 0.
        let template = Template::new(&event, OPENING - 1, facts.skipped);
        Self {
            facts,
            item,
            text,
            template,
        }
    }

    /// An event about the one part of the message.
    fn part(&self, kind: &str, number: usize, member: &str, value: &Value) -> Vec<u8> {
        let body = json!({
            "type": kind, "sequence_number": number, "item_id": self.item, "output_index": 0,
            "content_index": 0, member: value,
        });
        event(Some(kind), &body.to_string())
    }

    /// An event about an item of the output, of which the message is the first.
    fn item(&self, kind: &str, number: usize, index: usize, item: &Value) -> Vec<u8> {
        let body =
            json!({ "type": kind, "sequence_number": number, "output_index": index, "item": item });
        event(Some(kind), &body.to_string())
    }

    /// Ends the message.
    fn message_done(&self, events: usize) -> Vec<Vec<u8>> {
        let part = part(&self.text);
        let text = self.text.as_str().into();
        vec![
            self.part("response.output_text.done", events, "text", &text),
            self.part("response.content_part.done", events + 1, "part", &part),
            self.item("response.output_item.done", events + 2, 0, &self.message()),
        ]
    }

    /// The whole message.
    fn message(&self) -> Value {
        message(&self.item, "completed", json!([part(&self.text)]))
    }

    /// An event about the arguments of a call.
    fn argument(
        &self,
        kind: &str,
        number: usize,
        index: usize,
        member: &str,
        value: &str,
    ) -> Vec<u8> {
        let body = json!({
            "type": kind, "sequence_number": number, "item_id": call_item_id(&self.facts, index),
            "output_index": index, member: value,
        });
        event(Some(kind), &body.to_string())
    }

    /// A call from its beginning to its end. `index` is its place in the output.
    fn call(&self, call: &Call, index: usize, events: usize) -> Vec<Vec<u8>> {
        let (whole, pieces) = arguments(call);
        let begun = call_item(&self.facts, call, index, "in_progress", "");
        let ended = call_item(&self.facts, call, index, "completed", &whole);
        let mut out = vec![self.item("response.output_item.added", events, index, &begun)];
        for piece in &pieces {
            let number = events + out.len();
            let kind = "response.function_call_arguments.delta";
            out.push(self.argument(kind, number, index, "delta", piece));
        }
        let kind = "response.function_call_arguments.done";
        out.push(self.argument(kind, events + out.len(), index, "arguments", &whole));
        let number = events + out.len();
        out.push(self.item("response.output_item.done", number, index, &ended));
        out
    }

    /// An event about the response.
    fn response(&self, kind: &str, number: usize, response: &Value) -> Vec<u8> {
        let body = json!({ "type": kind, "sequence_number": number, "response": response });
        event(Some(kind), &body.to_string())
    }

    /// The event that ends the response for this reason. An engine that was told to end says that it has completed,
    /// and the truth in the status.
    fn terminal(&self, reason: &str, number: usize, output: Value) -> Vec<u8> {
        let (kind, status) = match reason {
            "completed" => ("response.completed", "completed"),
            "abort" => ("response.completed", "cancelled"),
            "cancelled" => ("response.cancelled", "cancelled"),
            "failed" => ("response.failed", "failed"),
            _ => ("response.incomplete", "incomplete"),
        };
        self.response(kind, number, &ended(&self.facts, reason, status, output))
    }
}

impl Voice for Responses {
    fn opening(&self) -> Vec<Vec<u8>> {
        let begun = response(&self.facts, "in_progress", json!([]));
        vec![
            self.response("response.created", 0, &begun),
            self.response("response.in_progress", 1, &begun),
            self.item(
                "response.output_item.added",
                2,
                0,
                &message(&self.item, "in_progress", json!([])),
            ),
            self.part("response.content_part.added", 3, "part", &part("")),
        ]
    }

    fn text(&self, _choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        self.template.fill(token, text, out);
    }

    fn calls(&self, events: usize) -> Vec<Vec<u8>> {
        if self.facts.calls.is_empty() {
            return Vec::new();
        }
        let mut out = self.message_done(events);
        for (before, call) in self.facts.calls.iter().enumerate() {
            out.extend(self.call(call, before + 1, events + out.len()));
        }
        out
    }

    fn finish(&self, reason: &str, events: usize) -> Vec<Vec<u8>> {
        if reason == "abort" {
            return vec![self.terminal(reason, events, json!([]))];
        }
        let calls = &self.facts.calls;
        let mut out = match calls.is_empty() {
            true => self.message_done(events),
            false => Vec::new(),
        };
        let mut output = vec![self.message()];
        output.extend(calls.iter().enumerate().map(|(before, call)| {
            call_item(
                &self.facts,
                call,
                before + 1,
                "completed",
                &arguments(call).0,
            )
        }));
        out.push(self.terminal(reason, events + out.len(), json!(output)));
        out
    }

    fn usage(&self) -> Option<Vec<u8>> {
        None
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        None
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        let code = error.kind.as_deref().unwrap_or("server_error");
        let body = json!({
            "type": "error", "sequence_number": error.events, "code": code,
            "message": error.message, "param": null,
        });
        event(Some("error"), &body.to_string())
    }
}

/// The response to a request that does not stream.
pub(super) fn whole(facts: &Facts, text: &str) -> Value {
    let status = match facts.finish.as_str() {
        "completed" => "completed",
        _ => "incomplete",
    };
    let message = message(&item_id(facts), "completed", json!([part(text)]));
    ended(facts, &facts.finish, status, json!([message]))
}

fn item_id(facts: &Facts) -> String {
    format!("msg-{}", facts.id)
}

fn call_item_id(facts: &Facts, index: usize) -> String {
    format!("fc-{}-{index}", facts.id)
}

fn call_item(facts: &Facts, call: &Call, index: usize, status: &str, arguments: &str) -> Value {
    json!({
        "id": call_item_id(facts, index), "type": "function_call", "status": status,
        "call_id": format!("call-{index}"), "name": call.name, "arguments": arguments,
    })
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn message(id: &str, status: &str, content: Value) -> Value {
    json!({
        "id": id, "type": "message", "status": status, "role": "assistant", "content": content,
    })
}

fn ended(facts: &Facts, reason: &str, status: &str, output: Value) -> Value {
    let mut response = response(facts, status, output);
    match status {
        "incomplete" => response["incomplete_details"] = json!({ "reason": reason }),
        "failed" => {
            response["error"] =
                json!({ "code": "server_error", "message": "the mock engine failed" });
        }
        _ => {}
    }
    let done = facts.completion_tokens;
    response["usage"] = json!({
        "input_tokens": facts.prompt_tokens, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": done, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": facts.prompt_tokens + done,
    });
    response
}

fn response(facts: &Facts, status: &str, output: Value) -> Value {
    json!({
        "id": facts.id, "object": "response", "created_at": facts.created, "status": status,
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "model": facts.model, "output": output, "parallel_tool_calls": true, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": null,
    })
}
