//! How a stream is written: every way in which the standard lets the same events look.

use super::case::{Event, Told};
use super::random::Random;

/// The bytes of a body.
pub(super) fn body(random: &mut Random, events: &[(Event, Told)], torn: Option<&str>) -> Vec<u8> {
    let mut writer = Writer {
        ends: *random.pick(&[Ends::Lf, Ends::Lf, Ends::CrLf, Ends::Cr, Ends::Mixed]),
        noisy: random.one_in(2),
        spaced: !random.one_in(3),
        out: Vec::new(),
        random,
    };
    if writer.random.one_in(6) {
        writer.out.extend_from_slice("\u{feff}".as_bytes());
    }
    for (event, _) in events {
        writer.noise();
        writer.event(event);
    }
    if let Some(torn) = torn {
        writer.out.extend_from_slice(torn.as_bytes());
    }
    writer.out
}

/// The sizes of the pieces in which a body of so many bytes is sent.
pub(super) fn pieces(random: &mut Random, bytes: usize) -> Vec<usize> {
    let most = match random.below(6) {
        // Byte by byte costs a write for each.
        0 if bytes <= 2048 => 1,
        1 if bytes <= 16 << 10 => 7,
        2 | 3 => 100,
        4 => 4000,
        _ => bytes.max(1),
    };
    let mut left = bytes;
    let mut pieces = Vec::new();
    while left > 0 {
        let size = (1 + random.below(most)).min(left);
        pieces.push(size);
        left -= size;
    }
    pieces
}

#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Lf,
    CrLf,
    Cr,
    Mixed,
}

struct Writer<'a> {
    ends: Ends,
    noisy: bool,
    spaced: bool,
    out: Vec<u8>,
    random: &'a mut Random,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event) {
        let mut fields = Vec::new();
        if let Some(name) = &event.name {
            fields.push(("event", name.clone()));
        }
        if let Some(retry) = event.retry {
            fields.push(("retry", retry.to_string()));
        }
        if let Some(id) = &event.id {
            fields.push(("id", id.clone()));
        }
        if let Some(error) = &event.error_field {
            fields.push(("error", error.clone()));
        }
        if self.noisy && self.random.one_in(4) {
            fields.push(("x-other", "1".to_owned()));
        }
        let lines = event.data.iter().flat_map(|data| data.split('\n'));
        let data: Vec<_> = lines.map(|line| ("data", line.to_owned())).collect();
        // Order means nothing, but for that of the data lines.
        let at = self.random.below(fields.len() + 1);
        let behind = if self.noisy {
            fields.split_off(at)
        } else {
            Vec::new()
        };
        for (name, value) in fields.into_iter().chain(data).chain(behind) {
            if self.noisy && self.random.one_in(10) {
                self.line(": between the fields");
            }
            let space = if self.spaced || value.starts_with(' ') {
                " "
            } else {
                ""
            };
            let bare = value.is_empty() && self.random.one_in(2);
            let line = if bare {
                name.to_owned()
            } else {
                format!("{name}:{space}{value}")
            };
            self.line(&line);
            if name == "data" && event.damaged {
                // In front of the line end.
                let at = self
                    .out
                    .iter()
                    .rposition(|byte| !matches!(byte, b'\r' | b'\n'));
                self.out.insert(at.map_or(0, |at| at + 1), 0xff);
            }
        }
        self.line("");
    }

    /// What readers see nothing of.
    fn noise(&mut self) {
        if !self.noisy {
            return;
        }
        match self.random.below(12) {
            0 => self.line(": ping"),
            1 => {
                self.line(":");
                self.line("");
            }
            2 => self.line(""),
            3 => {
                self.line("event: nothing");
                self.line("");
            }
            4 => {
                self.line("retry: 7");
                self.line("");
            }
            _ => {}
        }
    }

    fn line(&mut self, text: &str) {
        // A CR and then an empty line that ends in LF would be one line end.
        let after_cr = text.is_empty() && self.out.last() == Some(&b'\r');
        self.out.extend_from_slice(text.as_bytes());
        let end: &[u8] = match self.ends {
            Ends::Lf => b"\n",
            Ends::CrLf => b"\r\n",
            Ends::Cr => b"\r",
            Ends::Mixed if after_cr => b"\r",
            Ends::Mixed => [&b"\n"[..], b"\r\n", b"\r"][self.random.below(3)],
        };
        self.out.extend_from_slice(end);
    }
}
