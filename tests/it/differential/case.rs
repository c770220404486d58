//! One case: a stream, what has to be shown of it, and how it ends.

use serde_json::json;
use streamweld_mock::Dialect;

use super::random::Random;
use super::{answers, decode, wire};

/// An event of a backend, before it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) name: Option<String>,
    /// None: the block has no data.
    pub(super) data: Option<String>,
    pub(super) retry: Option<u64>,
    pub(super) id: Option<String>,
    /// A field line named `error`.
    pub(super) error_field: Option<String>,
    /// Its data is no UTF-8.
    pub(super) damaged: bool,
}

impl Event {
    pub(super) fn data(data: impl Into<String>) -> Self {
        Self {
            data: Some(data.into()),
            ..Self::default()
        }
    }

    pub(super) fn named(name: &str, data: impl Into<String>) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::data(data)
        }
    }
}

/// What a reader is shown of an event.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Whole,
    Nothing,
    /// The same event with this data.
    Instead(String),
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Clean,
    Cut,
}

/// How a generation ends.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Done {
        end: &'static str,
        reasons: Vec<String>,
    },
    Failed {
        code: &'static str,
    },
}

/// What a backend says, and what is made of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) events: Vec<(Event, Told)>,
    /// A last block without its blank line.
    pub(super) torn: Option<String>,
    pub(super) end: BodyEnd,
    pub(super) outcome: Outcome,
    /// How many choices are asked for.
    pub(super) choices: usize,
}

pub(super) struct Case {
    seed: u64,
    /// None: MCP, which the mock does not speak.
    pub(super) dialect: Option<Dialect>,
    events: Vec<(Event, Told)>,
    choices: usize,
    pub(super) outcome: Outcome,
    pub(super) body: Vec<u8>,
    pub(super) pieces: Vec<usize>,
    pub(super) end: BodyEnd,
    /// Its length is told beforehand.
    pub(super) has_length: bool,
}

impl Case {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let dialects: Vec<Option<Dialect>> =
            Dialect::ALL.into_iter().map(Some).chain([None]).collect();
        let dialect = *random.pick(&dialects);
        let mut answer = answers::answer(&mut random, dialect);
        answers::spoil(&mut random, &mut answer);
        let body = wire::body(&mut random, &answer.events, answer.torn.as_deref());
        let pieces = wire::pieces(&mut random, body.len());
        Self {
            seed,
            dialect,
            events: answer.events,
            choices: answer.choices,
            outcome: answer.outcome,
            body,
            pieces,
            end: answer.end,
            has_length: random.one_in(8),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.dialect.map_or("mcp", Dialect::as_str)
    }

    pub(super) fn path(&self) -> String {
        let path = self.dialect.map_or("/mcp", Dialect::path);
        format!("/{}{path}", self.seed)
    }

    pub(super) fn request(&self) -> String {
        match self.dialect {
            None => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
            Some(_) => json!({"model": "m", "stream": true, "n": self.choices}),
        }
        .to_string()
    }

    /// An error has a form of its own.
    pub(super) fn has_form(&self) -> bool {
        self.dialect != Some(Dialect::Generic)
    }

    /// All that the backend writes, as the standard has it.
    pub(super) fn written(&self) -> Vec<decode::Event> {
        let events = self.events.iter().map(|(event, _)| event);
        events.filter_map(|event| seen(event, true)).collect()
    }

    /// What a reader is shown.
    pub(super) fn shown(&self) -> Vec<decode::Event> {
        let keeps_more = matches!(self.dialect, None | Some(Dialect::Generic));
        let shown = self.events.iter().filter_map(|(event, told)| match told {
            Told::Nothing => None,
            Told::Whole => seen(event, keeps_more),
            Told::Instead(data) => {
                let event = Event {
                    data: Some(data.clone()),
                    ..event.clone()
                };
                seen(&event, keeps_more)
            }
        });
        shown
            .filter(|event| keeps_more || event.data.as_deref() != Some(""))
            .collect()
    }
}

fn seen(event: &Event, with_retry: bool) -> Option<decode::Event> {
    let damage = if event.damaged { "\u{fffd}" } else { "" };
    event.data.as_ref().map(|data| decode::Event {
        name: event.name.clone(),
        data: Some(format!("{data}{damage}")),
        retry: event.retry.filter(|_| with_retry),
    })
}
