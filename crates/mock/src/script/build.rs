//! Builder methods of [`Script`], for tests. Every field can also be set directly.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Abort, Call, Deed, End, ErrorEvent, LineEnd, Mark, Point, Raw, Script, Writes};
use crate::{Dialect, Engine, Faults};

impl Script {
    /// An ordinary answer of 16 tokens.
    pub fn new() -> Self {
        Self::default()
    }

    /// An ordinary answer of so many numbered words.
    pub fn tokens(tokens: usize) -> Self {
        Self {
            tokens: Some(tokens),
            ..Self::default()
        }
    }

    /// An ordinary answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A plain answer: a string body is sent as it is, anything else as JSON.
    pub fn answer(status: u16, body: impl Into<Value>) -> Self {
        Self {
            status,
            body: Some(body.into()),
            ..Self::default()
        }
    }

    /// A plain error answer in the words of the dialect.
    pub fn error(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Exact bytes.
    pub fn raw(raw: Raw) -> Self {
        Self {
            raw: Some(raw),
            ..Self::default()
        }
    }

    /// Answers in this dialect on any path.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Is this inference engine, which tells ids and can be told to go on.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Has these faults as an engine.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Names the model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Ends with this finish reason.
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.finish = Some(reason.into());
        self
    }

    /// Calls this tool, behind the text and the calls before.
    pub fn call(mut self, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        let name = name.into();
        self.calls.push(Call { name, arguments });
        self
    }

    /// Fixes the id of the answer, so that two requests get the same bytes.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Answers with so many choices.
    pub fn choices(mut self, choices: usize) -> Self {
        self.choices = Some(choices);
        self
    }

    /// Adds a header line.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits this long between writes.
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Waits for a gate before the head.
    pub fn head_gate(mut self, name: impl Into<String>) -> Self {
        self.head_gate = Some(name.into());
        self
    }

    /// Makes every event wait for one [`Gates::step`](crate::Gates::step) of this gate.
    pub fn step_gate(mut self, name: impl Into<String>) -> Self {
        self.step_gate = Some(name.into());
        self
    }

    /// Chooses how many bytes go into one write.
    pub fn writes(mut self, writes: Writes) -> Self {
        self.writes = writes;
        self
    }

    /// Chooses the line end.
    pub fn line_end(mut self, line_end: LineEnd) -> Self {
        self.line_end = line_end;
        self
    }

    /// Ends like this.
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Resets the connection after `point`: `.rst_after(5)`, `.rst_after((5, 10))`.
    pub fn rst_after(self, point: impl Into<Point>) -> Self {
        self.end(End::RstAfter(point.into()))
    }

    /// Closes the connection after `point`, without the last chunk.
    pub fn fin_after(self, point: impl Into<Point>) -> Self {
        self.end(End::FinAfter(point.into()))
    }

    /// Ends the body as if it were whole after `point`.
    pub fn clean_after(self, point: impl Into<Point>) -> Self {
        self.end(End::CleanAfter(point.into()))
    }

    /// Sends the dialect's error event after so many events, then ends cleanly without a sentinel.
    pub fn error_after(self, events: usize) -> Self {
        self.end(End::ErrorAfter(ErrorEvent {
            events,
            ..ErrorEvent::default()
        }))
    }

    /// Finishes with reason `abort` after so many events, followed by the sentinel.
    pub fn abort_after(self, events: usize) -> Self {
        self.end(End::AbortAfter(Abort {
            events,
            sentinel: true,
        }))
    }

    /// Adds a mark.
    pub fn mark(mut self, after: usize, deed: Deed) -> Self {
        self.marks.push(Mark { after, deed });
        self
    }

    /// Waits for a gate after so many events.
    pub fn gate_after(self, events: usize, name: impl Into<String>) -> Self {
        self.mark(events, Deed::Gate(name.into()))
    }

    /// Waits for a time after so many events.
    pub fn pause_after(self, events: usize, span: Duration) -> Self {
        self.mark(events, Deed::Pause(span))
    }

    /// Is silent after so many events, until the client leaves.
    pub fn stall_after(self, events: usize) -> Self {
        self.mark(events, Deed::Stall)
    }

    /// Writes `block` as it is after so many events.
    pub fn block_after(self, events: usize, block: impl Into<String>) -> Self {
        self.mark(events, Deed::Block(block.into()))
    }

    /// Adds an event with `bytes` bytes of text after so many events.
    pub fn huge_event_after(self, events: usize, bytes: usize) -> Self {
        self.mark(events, Deed::Huge(bytes))
    }

    /// Adds an event that is not valid UTF-8 after so many events.
    pub fn bad_utf8_after(self, events: usize) -> Self {
        self.mark(events, Deed::BadUtf8)
    }
}
