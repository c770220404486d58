//! Events to bytes, in the one form that leaves the house: `field: value` and LF.
//!
//! The encoder writes lines, not blocks. Whoever finishes a block adds its `id` line last and
//! then the blank line, because a well-known client adopts an id as soon as it has read that line,
//! and would lose the event if the connection broke between the id and the data.
//!
//! No value can break out of its line. Data is split at every line end into lines of its own; an
//! event name or an id is a [`OneLine`], which cannot hold one.

use memchr::memchr2;

use crate::event::Event;

/// A comment that any client skips, one line without a blank line. A comment *block* makes a
/// widely used SDK fail once it has seen an id; this does not.
pub const HEARTBEAT: &[u8] = b":\n";

/// What becomes of an upstream `retry` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It is written after the data.
    Keep,
    /// It is left out.
    Drop,
}

/// A value without CR, LF or NUL: fit for an `event` or an `id` line.
///
/// ```
/// use streamweld_sse::OneLine;
///
/// const ERROR: OneLine<'static> = OneLine::new("error").expect("has no line end");
/// assert_eq!(ERROR.as_str(), "error");
/// assert!(OneLine::new("error\ndata: forged").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OneLine<'a>(&'a str);

impl<'a> OneLine<'a> {
    /// `None` if the value contains CR, LF or NUL.
    pub const fn new(value: &'a str) -> Option<Self> {
        // A plain loop, because iterators do not run at compile time.
        let mut rest = value.as_bytes();
        while let [byte, tail @ ..] = rest {
            if matches!(byte, b'\r' | b'\n' | b'\0') {
                return None;
            }
            rest = tail;
        }
        Some(Self(value))
    }

    /// The value.
    pub const fn as_str(&self) -> &'a str {
        self.0
    }
}

/// Writes the lines of one decoded event: `event` if it has a name, then each `data` line, then
/// `retry` if it has one and that is kept. Unknown fields, comments and upstream's id are left
/// out, so an event of nothing else writes nothing. No blank line is written.
///
/// What is written decodes to an event with the same name, data and, if kept, retry.
pub fn encode_lines(event: &Event<'_>, retry: Retry, out: &mut Vec<u8>) {
    // Nearly every event of nearly every upstream looks like this already: one copy does.
    if let Some(lines) = event.as_wire_lines() {
        out.extend_from_slice(lines.as_bytes());
        return;
    }
    if let Some(name) = event.name() {
        write_line("event: ", name, out);
    }
    for line in event.data_lines() {
        write_line("data: ", line, out);
    }
    if let (Retry::Keep, Some(millis)) = (retry, event.retry()) {
        write_line("retry: ", &millis.to_string(), out);
    }
}

/// Writes an `event` line.
pub fn write_event_line(name: OneLine<'_>, out: &mut Vec<u8>) {
    write_line("event: ", name.as_str(), out);
}

/// Writes an `id` line. It belongs at the end of a block that has data.
pub fn write_id_line(id: OneLine<'_>, out: &mut Vec<u8>) {
    write_line("id: ", id.as_str(), out);
}

/// Writes `value` as `data` lines, one for each of its lines; an empty value is one empty line.
///
/// CR, LF and CRLF all become a new line. A reader gets the value back with each of them as LF:
/// the format has no other way.
pub fn write_data_lines(value: &str, out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(len) = memchr2(b'\n', b'\r', rest.as_bytes()) {
        write_line("data: ", &rest[..len], out);
        let end = if rest[len..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = &rest[len + end..];
    }
    write_line("data: ", rest, out);
}

fn write_line(field: &str, value: &str, out: &mut Vec<u8>) {
    out.reserve(field.len() + value.len() + 1);
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}
