//! What is put around and into an event on the wire: line ends, ids, comments, a byte order mark.

use crate::{LineEnd, Script, text::push_number};

/// Dresses the events of one stream, in order.
#[derive(Debug)]
pub(crate) struct Dress {
    line_end: &'static [u8],
    bom: bool,
    comment_every: usize,
    comment: String,
    next_id: Option<u64>,
    retry: Option<u64>,
    no_space: bool,
    dressed: usize,
}

impl Dress {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            line_end: match script.line_end {
                LineEnd::Lf => b"\n",
                LineEnd::Crlf => b"\r\n",
                LineEnd::Cr => b"\r",
            },
            bom: script.bom,
            comment_every: script.comment_every,
            comment: script.comment.clone(),
            next_id: script.upstream_ids,
            retry: script.retry,
            no_space: script.no_space,
            dressed: 0,
        }
    }

    /// Dresses the canonical event that begins at `start` of `out`.
    pub(crate) fn dress(&mut self, start: usize, out: &mut Vec<u8>) {
        self.dressed += 1;
        let comment = self.comment_every > 0 && self.dressed % self.comment_every == 0;
        let plain = self.line_end == b"\n" && self.next_id.is_none() && !self.no_space;
        if plain && !comment && !self.bom && self.retry.is_none() {
            return;
        }
        let event = out.split_off(start);
        if std::mem::take(&mut self.bom) {
            out.extend_from_slice("\u{feff}".as_bytes());
        }
        if comment {
            // With its blank line, the way that proxies and engines write it.
            self.line(&[b":", self.comment.as_bytes()], out);
            self.line(&[], out);
        }
        let mut lines = event.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let last = lines.peek().is_none();
            match line.strip_prefix(b"data: ") {
                Some(value) if self.no_space => self.line(&[b"data:", value], out),
                _ if last => {}
                _ if line.is_empty() => self.fields(out),
                _ => self.line(&[line], out),
            }
        }
    }

    /// The fields that close the event, and its blank line.
    fn fields(&mut self, out: &mut Vec<u8>) {
        let mut number = Vec::new();
        if let Some(id) = self.next_id {
            push_number(id, &mut number);
            self.line(&[b"id: ", &number], out);
            self.next_id = Some(id.wrapping_add(1));
        }
        if let Some(retry) = self.retry.take() {
            number.clear();
            push_number(retry, &mut number);
            self.line(&[b"retry: ", &number], out);
        }
        self.line(&[], out);
    }

    fn line(&self, parts: &[&[u8]], out: &mut Vec<u8>) {
        for part in parts {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(self.line_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: Script, expected: &str) {
        let mut dress = Dress::new(&script);
        let mut out = Vec::new();
        for event in ["event: e\ndata: 1\n\n", "data: 2\n\n"] {
            let start = out.len();
            out.extend_from_slice(event.as_bytes());
            dress.dress(start, &mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_dress() {
        check(Script::new(), "event: e\ndata: 1\n\ndata: 2\n\n");
        check(
            Script::new().line_end(LineEnd::Crlf),
            "event: e\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
        );
        check(
            Script::new().line_end(LineEnd::Cr),
            "event: e\rdata: 1\r\rdata: 2\r\r",
        );
        check(
            Script {
                upstream_ids: Some(7),
                retry: Some(50),
                ..Script::new()
            },
            "event: e\ndata: 1\nid: 7\nretry: 50\n\ndata: 2\nid: 8\n\n",
        );
        check(
            Script {
                bom: true,
                no_space: true,
                comment_every: 2,
                ..Script::new()
            },
            "\u{feff}event: e\ndata:1\n\n: ping\n\ndata:2\n\n",
        );
    }
}
