//! The oracle: the standard's algorithm, written down plainly, on the whole input at once.
//!
//! It is slow, copies everything and shares no code with the decoder. Where the decoder is
//! stricter than the standard, the comment says so.

use streamweld_sse::{DecodeError, Limits};

/// What a stream decodes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event>,
    pub(crate) tail: Vec<u8>,
    pub(crate) tail_event: Option<Event>,
    pub(crate) error: Option<DecodeError>,
}

/// What every accessor of an event should return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data_lines: Vec<String>,
    pub(crate) data: String,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    /// The last value of a field named `error`, standing for all unknown ones.
    pub(crate) error: Option<String>,
}

pub(crate) fn decode(input: &[u8], limits: Limits) -> Outcome {
    let mut outcome = Outcome::default();
    if b"\xEF\xBB\xBF".starts_with(input) {
        // A torn byte order mark is no content.
        return outcome;
    }
    let mut position = if input.starts_with(b"\xEF\xBB\xBF") {
        3
    } else {
        0
    };
    // Start and field lines of the block that is being read, from its first field on.
    let mut start = None;
    let mut lines: Vec<&[u8]> = Vec::new();
    while position < input.len() {
        let (line, ended, next) = split_line(input, position);
        if line.is_empty() {
            // The limit counts up to the first byte of the blank line.
            let size = start.map_or(0, |start| position + 1 - start);
            if size > limits.max_event {
                outcome.error = Some(too_large(limits));
                return outcome;
            }
            if let Some(start) = start.take() {
                // The standard would decode with U+FFFD; the decoder refuses.
                if std::str::from_utf8(&input[start..position]).is_err() {
                    outcome.error = Some(DecodeError::InvalidUtf8);
                    return outcome;
                }
                outcome.events.push(event(&lines));
            }
            lines.clear();
        } else if line[0] != b':' {
            start = start.or(Some(position));
            lines.push(line);
        }
        // A line that the input ends in is part of the tail all the same.
        assert!(ended || next == input.len());
        position = next;
    }
    if let Some(start) = start {
        if input.len() - start > limits.max_event {
            outcome.error = Some(too_large(limits));
            return outcome;
        }
        outcome.tail = input[start..].to_vec();
        if std::str::from_utf8(&outcome.tail).is_ok() {
            outcome.tail_event = Some(event(&lines));
        }
    }
    outcome
}

/// The line at `start`, whether its end is there, and where the next one begins.
fn split_line(input: &[u8], start: usize) -> (&[u8], bool, usize) {
    for end in start..input.len() {
        let line = &input[start..end];
        match input[end] {
            b'\n' => return (line, true, end + 1),
            b'\r' if input.get(end + 1) == Some(&b'\n') => return (line, true, end + 2),
            b'\r' => return (line, true, end + 1),
            _ => {}
        }
    }
    (&input[start..], false, input.len())
}

fn event(lines: &[&[u8]]) -> Event {
    let mut event = Event::default();
    let mut data = String::new();
    for line in lines {
        let line = String::from_utf8(line.to_vec()).expect("the block was checked");
        let (field, value) = match line.find(':') {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(' ').unwrap_or(value))
            }
            None => (&line[..], ""),
        };
        match field {
            "event" => event.name = Some(value.to_owned()),
            "data" => {
                event.data_lines.push(value.to_owned());
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.chars().all(|c| c.is_ascii_digit()) => {
                // The standard knows no bound; a number that does not fit is ignored here.
                event.retry = value.parse().ok().or(event.retry);
            }
            "error" => event.error = Some(value.to_owned()),
            _ => {}
        }
    }
    data.pop();
    event.data = data;
    // An empty name is no name.
    event.name = event.name.filter(|name| !name.is_empty());
    event
}

fn too_large(limits: Limits) -> DecodeError {
    DecodeError::TooLarge {
        limit: limits.max_event,
    }
}
