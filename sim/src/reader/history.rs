//! What one reader was shown, over all its connections.

use serde_json::Value;

use crate::clock::Moment;

/// A cursor, of a stream that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The sequence.
    pub seq: u64,
    /// The epoch, 1 where none is written.
    pub epoch: u64,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its id; none while the journal was not heard of.
    pub cursor: Option<Cursor>,
    /// The block without it.
    pub block: String,
}

/// How reading came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A finish: `[DONE]`, or the terminal `done`.
    Done,
    /// The terminal `stopped`; without control events it looks like [`End::Done`].
    Stopped,
    /// An error, by its code.
    Error(String),
    /// A status and a code that will not change.
    Refused(u16, String),
    /// It had no id, and broke off or ended.
    Degraded,
    /// The reader did not want more.
    Left,
}

/// See the module.
#[derive(Debug)]
pub struct History {
    /// Who.
    pub name: String,
    /// It asked for control events.
    pub control: bool,
    /// Of which stream, once that is known.
    pub stream: Option<String>,
    /// In its order.
    pub shown: Vec<Shown>,
    /// The end, and when it came.
    pub end: Option<(Moment, End)>,
    /// What must never be seen, and was.
    pub wrong: Vec<String>,
}

impl History {
    pub(super) fn new(name: String, control: bool) -> Self {
        Self {
            name,
            control,
            stream: None,
            shown: Vec::new(),
            end: None,
            wrong: Vec::new(),
        }
    }

    /// Where it stands.
    pub fn cursor(&self) -> Option<Cursor> {
        self.shown.iter().rev().find_map(|shown| shown.cursor)
    }

    /// Whether the last that it was shown has no id.
    pub fn ends_unsequenced(&self) -> bool {
        self.shown
            .last()
            .is_some_and(|shown| shown.cursor.is_none())
    }

    /// It comes back: what it was shown without ids may come again under them.
    pub(super) fn come_back(&mut self) {
        while self.ends_unsequenced() {
            self.shown.pop();
        }
    }

    pub(super) fn see(&mut self, block: String) {
        let (block, cursor) = match self.split(&block) {
            Ok(split) => split,
            Err(why) => return self.wrong.push(why),
        };
        if let (Some(cursor), Some(before)) = (cursor, self.cursor()) {
            if cursor.seq <= before.seq || cursor.epoch < before.epoch {
                self.wrong
                    .push(format!("{cursor:?} came behind {before:?}"));
            }
        }
        self.shown.push(Shown { cursor, block });
    }

    /// The block and its id.
    fn split(&self, block: &str) -> Result<(String, Option<Cursor>), String> {
        let Some((rest, id)) = block.rsplit_once("\nid: ") else {
            return Ok((block.to_owned(), None));
        };
        let stream = self.stream.as_deref().unwrap_or_default();
        let cursor = id.strip_prefix(stream).and_then(|id| id.strip_prefix(':'));
        let cursor =
            cursor.ok_or_else(|| format!("{id} is an id of another stream than {stream}"))?;
        let (seq, epoch) = cursor.split_once('~').unwrap_or((cursor, "1"));
        match (seq.parse(), epoch.parse()) {
            (Ok(seq), Ok(epoch)) => Ok((rest.to_owned(), Some(Cursor { seq, epoch }))),
            _ => Err(format!("{id} is no cursor")),
        }
    }

    /// What the last blocks say of an end; none if they say nothing.
    pub fn said_end(&self) -> Option<End> {
        let last = &self.shown.last()?.block;
        if let Some(kind) = control(last) {
            return match kind {
                "done" => Some(End::Done),
                "stopped" => Some(End::Stopped),
                "error" => {
                    let code = data(last)
                        .get("code")
                        .and_then(Value::as_str)
                        .map(str::to_owned);
                    Some(End::Error(code.unwrap_or_default()))
                }
                _ => None,
            };
        }
        if last == "data: [DONE]" {
            return Some(End::Done);
        }
        let data = data(last);
        // With its finish reason it is whole, also where the engine went before it said so once more.
        if data["choices"][0]["finish_reason"].is_string() {
            return Some(End::Done);
        }
        let error = data.get("error")?;
        let code = error
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Some(End::Error(code.to_owned()))
    }

    /// The text of the answer so far.
    pub fn text(&self) -> String {
        let content = |shown: &Shown| {
            let data = data(&shown.block);
            data["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        };
        self.shown.iter().filter_map(content).collect()
    }
}

/// The kind of a control event.
pub(crate) fn control(block: &str) -> Option<&str> {
    block.strip_prefix("event: streamweld.")?.lines().next()
}

/// The data of a block of one line; null where it is no JSON.
fn data(block: &str) -> Value {
    let line = block.lines().find_map(|line| line.strip_prefix("data: "));
    line.and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default()
}
