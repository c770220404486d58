//! The forms of a session: entries and what is told of it, as bytes (protocol.md 6.9.5).
//!
//! Here is all that differs between them. What is given, and when, is decided elsewhere. Everything is written behind
//! what is there, so an entry costs no allocation of its own.

use std::io::Write;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use streamweld_generation::timestamp;
use streamweld_journal::{Cursor, Left, Listed};
use streamweld_sse::HEARTBEAT;

use super::plan::{Form, Payload};

/// Writes behind what is there, which cannot fail.
macro_rules! put {
    ($encoder:ident, $($format:tt)*) => {
        let _ = write!($encoder.out, $($format)*);
    };
}
/// Writes one session.
pub(super) struct Encoder {
    form: Form,
    payload: Payload,
    out: Vec<u8>,
    /// Where entries are put together that have several lines, or are coded.
    scratch: Vec<u8>,
    /// Entries of what is in `out`, and of all.
    entries: usize,
    bytes: usize,
    has_entries: bool,
    /// Where the last one of a batch stands.
    last: Option<(Cursor, Left)>,
    /// The list of entries of one answer is over.
    is_closed: bool,
    /// Entries that came together have the same time.
    stamp: Option<(SystemTime, String)>,
}

impl Encoder {
    pub(super) fn new(form: Form, payload: Payload) -> Self {
        Self {
            form,
            payload,
            out: Vec::new(),
            scratch: Vec::new(),
            entries: 0,
            bytes: 0,
            has_entries: false,
            last: None,
            is_closed: false,
            stamp: None,
        }
    }

    /// Whether an entry of so many bytes can be written before what is there is taken.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let most = match self.form {
            Form::Batch => MAX_BATCH,
            Form::Events | Form::Json | Form::Lines => MAX_PIECE,
        };
        let is_full = self.form == Form::Batch && self.entries >= MAX_ENTRIES;
        self.entries == 0 || (!is_full && self.bytes + bytes <= most)
    }

    /// Whether there is nothing to take.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Everything that was written.
    pub(super) fn take(&mut self) -> Bytes {
        self.close_batch();
        (self.entries, self.bytes) = (0, 0);
        std::mem::take(&mut self.out).into()
    }

    /// One entry of a run.
    pub(super) fn entry(&mut self, run: &[u8], entry: &Listed, cursor: Cursor, left: Left) {
        let lines = &run[entry.lines.clone()];
        self.entries += 1;
        self.bytes += lines.len();
        match self.form {
            Form::Events if left.is_unbounded() => {
                self.out.extend_from_slice(&run[entry.block.clone()]);
            }
            Form::Events => {
                self.out.extend_from_slice(lines);
                put!(self, "id: {cursor}{left}\n\n");
            }
            Form::Batch => {
                self.out.extend_from_slice(if self.last.is_none() {
                    b"event: streamweld.batch\ndata: {\"entries\":[{"
                } else {
                    b",{"
                });
                self.last = Some((cursor, left));
                self.members(lines, entry, cursor, left);
            }
            Form::Json => {
                self.out
                    .extend_from_slice(if self.has_entries { b",\n{" } else { b"\n{" });
                self.members(lines, entry, cursor, left);
            }
            Form::Lines => {
                self.out.extend_from_slice(b"{\"type\":\"entry\",");
                self.members(lines, entry, cursor, left);
                self.out.push(b'\n');
            }
        }
        self.has_entries = true;
    }

    /// Something that is told of the session.
    pub(super) fn tell(&mut self, what: Told, value: &impl Serialize) {
        let json = serde_json::to_vec(value).expect("plain structs serialise");
        let name = what.name();
        self.close_batch();
        match self.form {
            Form::Events | Form::Batch => {
                put!(self, "event: streamweld.{name}\ndata: ");
                self.out.extend_from_slice(&json);
                self.out.push(b'\n');
            }
            Form::Lines => {
                put!(self, "{{\"type\":\"{name}\",");
                self.out.extend_from_slice(&json[1..]);
                self.out.push(b'\n');
            }
            Form::Json => self.member(what, &json),
        }
    }

    /// Ends what was told, where that is an event: with when to come back, and what with.
    pub(super) fn end_event(&mut self, retry: Option<u32>, id: Option<(Cursor, Left)>) {
        if !matches!(self.form, Form::Events | Form::Batch) {
            return;
        }
        if let Some(retry) = retry {
            put!(self, "retry: {retry}\n");
        }
        if let Some((cursor, left)) = id {
            put!(self, "id: {cursor}{left}\n");
        }
        self.out.push(b'\n');
    }

    /// Blocks that are there already: how a dialect ends.
    pub(super) fn blocks(&mut self, blocks: &[u8]) {
        self.close_batch();
        self.out.extend_from_slice(blocks);
    }

    /// What is sent so that a silence is not taken for a break.
    pub(super) fn heartbeat(&mut self) {
        self.out.extend_from_slice(match self.form {
            Form::Events | Form::Batch => HEARTBEAT,
            // No more than a space between two words.
            Form::Json | Form::Lines => b"\n",
        });
    }

    /// What is told of the session, in one answer.
    fn member(&mut self, what: Told, json: &[u8]) {
        let name = what.name();
        match what {
            Told::Session => {
                put!(self, "{{\"object\":\"streamweld.entries\",\"{name}\":");
                self.out.extend_from_slice(json);
                self.out.extend_from_slice(b",\"entries\":[");
            }
            Told::ReplayLimit | Told::Closing => {
                if !std::mem::replace(&mut self.is_closed, true) {
                    self.out.push(b']');
                }
                put!(self, ",\n\"{name}\":");
                self.out.extend_from_slice(json);
                if what == Told::Closing {
                    self.out.extend_from_slice(b"}\n");
                }
            }
            // One answer is over before it is live.
            Told::Live => {}
            Told::Ping => self.heartbeat(),
        }
    }

    /// The members of an entry, and the end of its object.
    fn members(&mut self, lines: &[u8], entry: &Listed, cursor: Cursor, left: Left) {
        if self
            .stamp
            .as_ref()
            .is_none_or(|(time, _)| *time != entry.time)
        {
            self.stamp = Some((entry.time, timestamp(entry.time)));
        }
        let time = self.stamp.as_ref().map_or("", |(_, text)| text);
        let (seq, kind) = (entry.seq, entry.kind);
        let _ = write!(
            self.out,
            "\"seq\":{seq},\"cursor\":\"{cursor}{left}\",\"time\":\"{time}\",\"kind\":\"{kind}\",\"event\":"
        );
        let mut event = None;
        let mut retry = None;
        let mut has_data = false;
        self.scratch.clear();
        for line in lines.split(|&byte| byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data: ") {
                if std::mem::replace(&mut has_data, true) {
                    self.scratch.push(b'\n');
                }
                self.scratch.extend_from_slice(data);
            } else if let Some(name) = line.strip_prefix(b"event: ") {
                event = Some(name);
            } else if let Some(number) = line.strip_prefix(b"retry: ") {
                retry = Some(number);
            }
        }
        match event {
            Some(name) => string(&mut self.out, name),
            None => self.out.extend_from_slice(b"null"),
        }
        self.out.extend_from_slice(b",\"data\":");
        match self.payload {
            _ if !has_data => self.out.extend_from_slice(b"null"),
            Payload::Text => string(&mut self.out, &self.scratch),
            Payload::Base64 => {
                let coded = STANDARD.encode(&self.scratch);
                string(&mut self.out, coded.as_bytes());
            }
        }
        self.out.extend_from_slice(b",\"retry\":");
        self.out.extend_from_slice(retry.unwrap_or(b"null"));
        self.out.push(b'}');
    }

    fn close_batch(&mut self) {
        if let Some((cursor, left)) = self.last.take() {
            put!(self, "]}}\nid: {cursor}{left}\n\n");
        }
    }
}

/// What is told of a session beside its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Session,
    Live,
    ReplayLimit,
    Ping,
    Closing,
}

impl Told {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Live => "live",
            Self::ReplayLimit => "replay_limit",
            Self::Ping => "ping",
            Self::Closing => "closing",
        }
    }
}

/// A string of JSON. What stands in a journal is UTF-8.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    serde_json::to_writer(out, &*text).expect("a vector takes everything");
}

/// A batch is at most so many entries, and so is one answer.
pub(super) const MAX_ENTRIES: usize = 1000;
/// And so many bytes, but for an entry that is larger alone.
pub(super) const MAX_BATCH: usize = 1 << 20;
/// What is handed over at once, so that a slow connection pins little.
const MAX_PIECE: usize = 256 << 10;
