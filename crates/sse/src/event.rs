//! One complete block, as a view.
//!
//! An event is a slice of text, and a look at where the decoder found its first line ends. Fields
//! are read when asked for, by the rules of the standard; nothing is stored, joined or copied
//! before that. An event does not know what came before it: an id that persists from an earlier
//! block is the caller's to remember.

use std::{borrow::Cow, fmt};

use memchr::memchr2;

use crate::scan::LineEnds;

/// One complete block with at least one field. Cheap to copy; borrows the bytes it came in.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// The block's lines with their ends, without the blank line.
    text: &'a str,
    line_ends: &'a LineEnds,
}

impl<'a> Event<'a> {
    pub(crate) fn new(text: &'a str, line_ends: &'a LineEnds) -> Self {
        Self { text, line_ends }
    }

    /// The name in force: the last `event` field. `None` if there is none or it is empty, which
    /// means "message" to the standard.
    pub fn name(&self) -> Option<&'a str> {
        self.values("event").last().filter(|name| !name.is_empty())
    }

    /// The values of the `data` fields, in order.
    pub fn data_lines(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.values("data")
    }

    /// The `data` fields joined with LF; copied only if there are several. Empty without any.
    pub fn data(&self) -> Cow<'a, str> {
        let mut lines = self.data_lines();
        let first = lines.next().unwrap_or_default();
        let Some(second) = lines.next() else {
            return Cow::Borrowed(first);
        };
        let mut data = String::with_capacity(self.text.len());
        data.push_str(first);
        for line in std::iter::once(second).chain(lines) {
            data.push('\n');
            data.push_str(line);
        }
        Cow::Owned(data)
    }

    /// Whether there is a `data` field, empty or not.
    pub fn has_data(&self) -> bool {
        self.data_lines().next().is_some()
    }

    /// Whether there is no `data` field, or only empty ones.
    pub fn is_data_empty(&self) -> bool {
        self.data_lines().all(str::is_empty)
    }

    /// The last `id` field. Those that contain NUL do not count; an empty one does, it resets.
    pub fn id(&self) -> Option<&'a str> {
        self.values("id").filter(|id| !id.contains('\0')).last()
    }

    /// The last `retry` field of only ASCII digits, in milliseconds. One that is empty or above
    /// `u64::MAX` does not count.
    pub fn retry(&self) -> Option<u64> {
        self.values("retry")
            // `parse` would also take a sign.
            .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
            .filter_map(|value| value.parse().ok())
            .last()
    }

    /// The last value of any field, also of one that the standard does not know. Names are
    /// compared exactly; no field has an empty name or one with a colon.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        if name.is_empty() || name.contains(':') {
            return None;
        }
        self.lines().filter_map(|line| value(line, name)).last()
    }

    /// The block as it came: all its lines with their own line ends, but neither the blank line
    /// nor comments from before the first field.
    pub fn raw(&self) -> &'a str {
        self.text
    }

    /// The block's lines, if they are just what the encoder would write: `data` alone, or a name
    /// and then `data`, each with its one space and LF.
    pub(crate) fn as_wire_lines(&self) -> Option<&'a str> {
        let text = self.text.as_bytes();
        let mut number = 0;
        let mut start = 0;
        if text.starts_with(b"event: ") && text.get(7) != Some(&b'\n') {
            start = self.line_ends.get(0)? + 1;
            number = 1;
        }
        let end = self.line_ends.get(number)?;
        let is_wire = text[start..].starts_with(b"data: ")
            && (start == 0 || text[start - 1] == b'\n')
            && text[end..] == *b"\n";
        is_wire.then_some(self.text)
    }

    fn values(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.lines().filter_map(move |line| value(line, name))
    }

    fn lines(&self) -> Lines<'a> {
        Lines {
            text: self.text,
            start: 0,
            number: 0,
            line_ends: self.line_ends,
        }
    }
}

/// Shows the name and the size but not the data, which is somebody's answer.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name())
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

/// The lines of a block without their ends, comments included.
struct Lines<'a> {
    text: &'a str,
    start: usize,
    number: usize,
    line_ends: &'a LineEnds,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.start..];
        if rest.is_empty() {
            return None;
        }
        let len = match self.line_ends.get(self.number) {
            Some(end) => end - self.start,
            None => memchr2(b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len()),
        };
        let (line, end) = rest.split_at(len);
        self.number += 1;
        self.start += len;
        self.start += match end.as_bytes() {
            [b'\r', b'\n', ..] => 2,
            [_, ..] => 1,
            [] => 0,
        };
        Some(line)
    }
}

/// The value of the field in `line`, if its name is `name`: a line without a colon is a name with
/// an empty value, and one space after the colon is not part of the value.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(':')?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}
