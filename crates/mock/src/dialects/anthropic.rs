//! Anthropic Messages: one text block and one for each call, with the `ping` that the real service sends after its start.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Facts, Voice, arguments, event, json, template::TEXT, template::Template};
use crate::{Engine, ErrorEvent};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: usize,
        content_block: Block<'a>,
    },
    Ping,
    ContentBlockDelta {
        index: usize,
        delta: Delta<'a>,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: Stop<'a>,
        usage: Usage,
    },
    MessageStop,
    Error {
        error: Error<'a>,
    },
}

/// A whole or just begun message.
#[derive(Serialize)]
pub(crate) struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'a str>,
    stop_sequence: Option<&'a str>,
    usage: Usage,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    /// Begun: what goes into it comes in pieces.
    ToolUse {
        id: String,
        name: &'a str,
        input: Map<String, Value>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct Stop<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<usize>,
    output_tokens: usize,
}

#[derive(Serialize)]
struct Error<'a> {
    r#type: &'a str,
    message: &'a str,
}

impl<'a> Message<'a> {
    /// The message of a plain answer.
    pub(crate) fn whole(facts: &'a Facts, text: &'a str) -> Self {
        Self {
            content: vec![Block::Text { text }],
            stop_reason: Some(&facts.finish),
            ..Self::begun(facts, facts.completion_tokens)
        }
    }

    fn begun(facts: &'a Facts, output_tokens: usize) -> Self {
        Self {
            id: &facts.id,
            r#type: "message",
            role: "assistant",
            model: &facts.model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Usage {
                input_tokens: Some(facts.prompt_tokens),
                output_tokens,
                ..Usage::default()
            },
        }
    }
}

/// The voice of Anthropic Messages.
pub(super) struct Anthropic {
    facts: Facts,
    template: Template,
    /// Whose habits it has.
    engine: Option<Engine>,
}

impl Anthropic {
    pub(super) fn new(facts: Facts) -> Self {
        let delta = Delta::TextDelta { text: TEXT };
        let text = Event::ContentBlockDelta { index: 0, delta };
        let template = Template::new(&event(Some("content_block_delta"), &json(&text)), 0, 0);
        Self {
            facts,
            template,
            engine: None,
        }
    }

    /// As an engine writes them.
    pub(super) fn of(engine: Engine, facts: Facts) -> Self {
        Self {
            engine: Some(engine),
            ..Self::new(facts)
        }
    }

    /// The counts at the beginning.
    fn first_usage(&self) -> Usage {
        let prompt = self.facts.prompt_tokens;
        match self.engine {
            // A half of the prompt is what it still knew.
            Some(Engine::LlamaCpp) => Usage {
                input_tokens: Some(prompt - prompt / 2),
                cache_read_input_tokens: Some(prompt / 2),
                ..Usage::default()
            },
            Some(_) => Usage {
                input_tokens: Some(prompt),
                cache_creation_input_tokens: Some(0),
                cache_read_input_tokens: Some(0),
                output_tokens: 1,
            },
            None => Usage {
                input_tokens: Some(prompt),
                output_tokens: 1,
                ..Usage::default()
            },
        }
    }

    /// Those at the end.
    fn last_usage(&self) -> Usage {
        let output_tokens = self.facts.completion_tokens;
        match self.engine {
            // The service says the others once more.
            Some(Engine::Anthropic) => Usage {
                output_tokens,
                ..self.first_usage()
            },
            _ => Usage {
                output_tokens,
                ..Usage::default()
            },
        }
    }
}

impl Voice for Anthropic {
    fn opening(&self) -> Vec<Vec<u8>> {
        let message = Message {
            usage: self.first_usage(),
            ..Message::begun(&self.facts, 1)
        };
        let content_block = Block::Text { text: "" };
        let mut events = vec![
            event(
                Some("message_start"),
                &json(&Event::MessageStart { message }),
            ),
            block_start(0, content_block),
        ];
        if self.engine != Some(Engine::LlamaCpp) {
            events.push(event(Some("ping"), &json(&Event::Ping)));
        }
        events
    }

    fn text(&self, _choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        self.template.fill(token, text, out);
    }

    fn calls(&self, _events: usize) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for (before, call) in self.facts.calls.iter().enumerate() {
            let index = before + 1;
            events.push(block_stop(before));
            events.push(block_start(
                index,
                Block::ToolUse {
                    id: format!("toolu-{index}"),
                    name: &call.name,
                    input: Map::new(),
                },
            ));
            let (_, pieces) = arguments(call);
            // The real service begins with an empty one.
            let pieces = std::iter::once("").chain(pieces.iter().map(String::as_str));
            events.extend(pieces.map(|partial_json| {
                let delta = Delta::InputJsonDelta { partial_json };
                let delta = Event::ContentBlockDelta { index, delta };
                event(Some("content_block_delta"), &json(&delta))
            }));
        }
        events
    }

    fn finish(&self, reason: &str, _events: usize) -> Vec<Vec<u8>> {
        let open = match reason {
            "abort" => 0,
            _ => self.facts.calls.len(),
        };
        let delta = Stop {
            stop_reason: reason,
            stop_sequence: None,
        };
        let usage = self.last_usage();
        vec![
            block_stop(open),
            event(
                Some("message_delta"),
                &json(&Event::MessageDelta { delta, usage }),
            ),
        ]
    }

    fn usage(&self) -> Option<Vec<u8>> {
        None
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        Some(event(Some("message_stop"), &json(&Event::MessageStop)))
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        event(Some("error"), &anthropic_error(error))
    }
}

fn block_start(index: usize, content_block: Block<'_>) -> Vec<u8> {
    let start = Event::ContentBlockStart {
        index,
        content_block,
    };
    event(Some("content_block_start"), &json(&start))
}

fn block_stop(index: usize) -> Vec<u8> {
    event(
        Some("content_block_stop"),
        &json(&Event::ContentBlockStop { index }),
    )
}

/// The error object of Anthropic.
pub(crate) fn anthropic_error(error: &ErrorEvent) -> String {
    let kind = error.kind.as_deref().unwrap_or("api_error");
    json(&Event::Error {
        error: Error {
            r#type: kind,
            message: &error.message,
        },
    })
}
