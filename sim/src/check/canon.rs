//! The log of a generation as it is read at the end, with all its entries.

use crate::reader::{Cursor, End, History, Shown, control};

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canon {
    /// What readers without control events are shown.
    events: Vec<(Cursor, String)>,
    terminal: Cursor,
    /// The kind of the terminal.
    pub(super) kind: String,
    /// The text of the answer.
    pub(super) text: String,
    /// All of it, entry by entry.
    all: Vec<(Cursor, String)>,
}

impl Canon {
    /// Takes what a reader with control events was shown from the start.
    ///
    /// # Errors
    /// It is no log from 1 to its one terminal.
    pub(super) fn read(audit: &History) -> Result<Self, String> {
        let end = audit.end.as_ref().map(|(_, end)| end);
        if let Some(End::Refused(status, code)) = end {
            return Err(format!("the log cannot be read: {status} {code}"));
        }
        // Forms of an end have no ids here.
        let all: Vec<(Cursor, String)> = audit
            .shown
            .iter()
            .filter_map(|shown| Some((shown.cursor?, shown.block.clone())))
            .collect();
        for (place, (cursor, _)) in all.iter().enumerate() {
            if cursor.seq != place as u64 + 1 {
                return Err(format!("{cursor:?} stands where {} should", place + 1));
            }
        }
        let is_terminal =
            |block: &str| matches!(control(block), Some("done" | "error" | "stopped"));
        let mut terminals = all.iter().filter(|(_, block)| is_terminal(block));
        let (Some((terminal, last)), None) = (terminals.next(), terminals.next()) else {
            return Err("the log has not one terminal".to_owned());
        };
        if terminal.seq != all.len() as u64 {
            return Err(format!(
                "something stands behind the terminal at {terminal:?}"
            ));
        }
        let events = all.iter().filter(|(_, block)| control(block).is_none());
        Ok(Self {
            events: events.cloned().collect(),
            terminal: *terminal,
            kind: control(last).unwrap_or_default().to_owned(),
            text: audit.text(),
            all: all.clone(),
        })
    }

    /// Whether a reader's end is that of the log.
    pub(super) fn ends_as(&self, history: &History, end: &End) -> bool {
        match end {
            End::Left => true,
            // A stopped answer looks like a finished one, on purpose.
            End::Done if !history.control => self.kind == "done" || self.kind == "stopped",
            End::Done => self.kind == "done",
            End::Stopped => self.kind == "stopped",
            End::Error(_) => self.kind == "error",
            End::Refused(..) | End::Degraded => false,
        }
    }

    /// Whether a reader was shown exactly what stands, and all of it if it has the end.
    pub(super) fn holds(&self, history: &History, has_end: bool) -> Result<(), String> {
        self.follows(history.control, &history.shown, has_end)
    }

    /// The same of what it was shown up to the last id.
    pub(super) fn holds_sequenced(&self, history: &History) -> Result<(), String> {
        let end = history
            .shown
            .iter()
            .rposition(|shown| shown.cursor.is_some());
        let shown = &history.shown[..end.map_or(0, |end| end + 1)];
        self.follows(history.control, shown, false)
    }

    /// The same of what it was shown before the first entry that Redis has lost since: it left, and was not there any more to
    /// be told. Nothing that stands came behind that.
    pub(super) fn holds_before_loss(&self, history: &History) -> Result<(), String> {
        let stands = |shown: &Shown| {
            let cursor = shown.cursor?;
            Some(self.all.iter().any(|(stands, _)| *stands == cursor))
        };
        let is_lost = |shown: &Shown| stands(shown) == Some(false);
        let at = history.shown.iter().position(is_lost);
        let (before, behind) = history.shown.split_at(at.unwrap_or(history.shown.len()));
        match behind.iter().find(|shown| stands(shown) == Some(true)) {
            Some(shown) => Err(format!("was shown {:?} behind what is lost", shown.cursor)),
            None => self.follows(history.control, before, false),
        }
    }

    fn follows(&self, control_events: bool, all: &[Shown], has_end: bool) -> Result<(), String> {
        let stands = if control_events {
            &self.all
        } else {
            &self.events
        };
        let mut next = stands.iter().peekable();
        for shown in all {
            let is_end = shown.cursor.is_some_and(|cursor| cursor == self.terminal);
            if is_end && !control_events {
                // The form of the end, which is no entry.
                break;
            }
            match (shown.cursor, next.peek()) {
                (Some(cursor), Some((stands, block)))
                    if cursor == *stands && shown.block == *block =>
                {
                    next.next();
                }
                (Some(cursor), stands) => {
                    return Err(format!(
                        "was shown {cursor:?} {:?}, where {stands:?} stands",
                        shown.block
                    ));
                }
                (None, Some((_, block))) if shown.block == *block => {
                    next.next();
                }
                // A form of the end that has no id, or not on every block of it.
                (None, _) if self.kind != "done" => {}
                (None, stands) => {
                    return Err(format!(
                        "was shown {:?} without an id, where {stands:?} stands",
                        shown.block
                    ));
                }
            }
        }
        match next.next() {
            Some((cursor, block)) if has_end => {
                Err(format!("was never shown {cursor:?} {block:?}"))
            }
            _ => Ok(()),
        }
    }
}
