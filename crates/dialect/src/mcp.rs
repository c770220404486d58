//! Judging MCP: calls of JSON-RPC, each with one answer, and notifications and requests of the server around it.
//!
//! The answer to the call is what makes a stream whole, a result and an error alike: an error is what was answered. A
//! body that ends without it is cut short, unless the server has given an event id: then its client may come back with
//! that, after a lost connection as after a server that closes early and asks to be polled. Where nothing was called
//! (the stream of a `GET`) no answer is missed.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use streamweld_sse::Event;

use crate::{BodyEnd, Done, End, Mark, Verdict, generic, mark::truncated, probe};

/// What was called, and what was answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    /// How many calls are made, as far as is known. More than can be counted where there are several.
    asked: Option<usize>,
    /// The id of the one that is made, as far as is known.
    id: Option<Value>,
    /// How the last one was answered.
    answer: Option<Answer>,
    /// Upstream's last event id in force is one to come back with.
    resumable: bool,
}

/// How a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Result,
    Error,
}

impl Answer {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl Calls {
    pub(crate) fn expect(&mut self, calls: usize) {
        self.asked = Some(calls);
    }

    pub(crate) fn answers(&mut self, call: &str) {
        if self.id.is_none() {
            self.id = serde_json::from_str(call).ok();
        }
    }

    /// The call is answered. Of several it is not known which are.
    pub(crate) fn is_settled(&self) -> bool {
        self.answer.is_some() && self.asked.is_none_or(|asked| asked <= 1)
    }

    pub(crate) fn end(&self, how: BodyEnd) -> Verdict {
        let done = |end| {
            let reasons = self.answer.iter().map(|answer| answer.as_str().to_owned());
            Verdict::Done(Done {
                end,
                reasons: reasons.collect(),
            })
        };
        match how {
            BodyEnd::Clean if self.answer.is_some() => done(End::Eof),
            BodyEnd::Cut if self.is_settled() => done(End::Cut),
            BodyEnd::Silence if self.is_settled() => done(End::Silence),
            BodyEnd::Clean | BodyEnd::Cut if self.resumable => done(End::Resumable),
            BodyEnd::Clean if self.asked == Some(0) => done(End::Unknown),
            BodyEnd::Clean => Verdict::Failed(truncated("the stream ended before the answer came")),
            BodyEnd::Cut | BodyEnd::Silence => generic::end(how),
        }
    }
}

pub(crate) fn event(calls: &mut Calls, event: &Event<'_>) -> Mark {
    if let Some(id) = event.id() {
        calls.resumable = !id.is_empty();
    }
    if !event.has_data() {
        return Mark::Skip;
    }
    let data = event.data();
    if let Some(answer) = answer_in(&data, calls.id.as_ref()) {
        calls.answer = Some(answer);
    }
    Mark::Event
}

/// The last answer in an event to the call with this id, or to any where that is not known.
pub(crate) fn answer_in(data: &str, call: Option<&Value>) -> Option<Answer> {
    let messages = messages(data);
    let about = messages.iter().filter(|message| message.is_about(call));
    about.filter_map(Message::answer).next_back()
}

/// The messages of an event that could hold an answer: one, or several in a list.
fn messages(data: &str) -> Vec<Message<'_>> {
    if !probe::may_answer(data.as_bytes()) {
        return Vec::new();
    }
    // A derived struct would also read itself from an array, by position.
    match data.trim_ascii_start().as_bytes().first() {
        Some(b'{') => serde_json::from_str(data).ok().into_iter().collect(),
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(data).unwrap_or_default();
            let objects = list.iter().filter(|one| one.get().starts_with('{'));
            objects
                .filter_map(|one| serde_json::from_str(one.get()).ok())
                .collect()
        }
        _ => Vec::new(),
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Whether it is about this call. An error without an id is about one that could not be read.
    fn is_about(&self, call: Option<&Value>) -> bool {
        let (Some(call), Some(id)) = (call, self.id) else {
            return true;
        };
        serde_json::from_str::<Value>(id.get()).is_ok_and(|id| id == *call)
    }

    fn answer(&self) -> Option<Answer> {
        match (self.method, self.id, self.result, self.error) {
            (None, _, _, Some(_)) => Some(Answer::Error),
            (None, Some(_), Some(_), None) => Some(Answer::Result),
            _ => None,
        }
    }
}
