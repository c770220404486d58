//! The chunked coding, undone piece by piece. Pure.
//!
//! Strict where leniency would leave two opinions about where a chunk ends: a size is 1 to 16 hex
//! digits, every line ends in CRLF, and nothing stands between a chunk and its CRLF. Blanks behind
//! a size are taken, since old servers pad there; extensions are skipped. Both, and the trailers,
//! are bounded. It holds no payload, and trailers only while they come in.

use bytes::Bytes;
use http::HeaderMap;

use super::response;
use crate::head::{BadHead, MAX_HEADERS};

/// Reads one chunked body.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    trailers: Option<Box<HeaderMap>>,
}

/// Size -> (Behind ->) SizeEnd -> Data -> DataEnd -> DataLineFeed -> Size, and from the SizeEnd of
/// the last chunk -> Trailers -> Done. Any of them -> Failed.
#[derive(Debug)]
enum State {
    /// In the size, after so many digits.
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind the size, in blanks or an extension.
    Behind {
        size: u64,
        kind: Behind,
        length: u16,
    },
    /// LF is due.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// CR is due.
    DataEnd,
    /// LF is due.
    DataLineFeed,
    /// In the trailer section. Its lines so far, and where the last of them starts.
    Trailers {
        lines: Vec<u8>,
        line: usize,
    },
    Done,
    Failed(BadChunk),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Blanks,
    Extension,
}

/// What a step took from the front of its input: framing, and then payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) framing: usize,
    pub(crate) payload: usize,
}

/// Why a chunked body cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadChunk {
    #[error("an invalid chunk size")]
    Size,
    #[error("an invalid or too long chunk extension")]
    Extension,
    #[error("a chunk line that does not end in CRLF")]
    LineEnd,
    #[error("more trailers than allowed")]
    TooManyTrailers,
    #[error("invalid trailers")]
    Trailers(#[source] BadHead),
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self {
            state: State::SIZE,
            trailers: None,
        }
    }

    /// Takes bytes up to the end of the next payload in `input`, of all of it, or of the body.
    /// After an error every step gives the same one.
    pub(crate) fn step(&mut self, input: &[u8]) -> Result<Step, BadChunk> {
        let mut framing = 0;
        while let Some(&byte) = input.get(framing) {
            match self.state {
                State::Data { left } => {
                    let here = input.len() - framing;
                    let payload = usize::try_from(left).map_or(here, |left| left.min(here));
                    let left = left - payload as u64;
                    self.state = if left == 0 {
                        State::DataEnd
                    } else {
                        State::Data { left }
                    };
                    return Ok(Step { framing, payload });
                }
                State::Done => break,
                // Between two chunks that stand whole in one read, as nearly all do: the same as byte by byte, and a
                // good part of what a small event costs here.
                State::DataEnd if input[framing..].starts_with(b"\r\n") => {
                    self.state = State::SIZE;
                    framing += 2;
                    continue;
                }
                State::Size { digits: 0, .. } => match plain_size_line(&input[framing..]) {
                    Some((left, length)) => {
                        self.state = State::Data { left };
                        framing += length;
                        continue;
                    }
                    None => self.framing(byte),
                },
                _ => self.framing(byte),
            }
            if let State::Failed(error) = self.state {
                return Err(error);
            }
            framing += 1;
        }
        match self.state {
            State::Failed(error) => Err(error),
            _ => Ok(Step {
                framing,
                payload: 0,
            }),
        }
    }

    /// Whether the body has ended properly.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The trailers, once the body has ended, if there are any.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take().map(|trailers| *trailers)
    }

    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    fn framing(&mut self, byte: u8) {
        let state = std::mem::replace(&mut self.state, State::Done);
        self.state = match state {
            State::Size { size, digits } => in_size(size, digits, byte),
            State::Behind { size, kind, length } => behind(size, kind, length, byte),
            State::SizeEnd { size } => match (byte, size) {
                (b'\n', 0) => State::Trailers {
                    lines: Vec::new(),
                    line: 0,
                },
                (b'\n', left) => State::Data { left },
                _ => State::Failed(BadChunk::LineEnd),
            },
            State::DataEnd if byte == b'\r' => State::DataLineFeed,
            State::DataLineFeed if byte == b'\n' => State::SIZE,
            State::DataEnd | State::DataLineFeed => State::Failed(BadChunk::LineEnd),
            State::Trailers { lines, line } => self.in_trailers(lines, line, byte),
            done @ (State::Data { .. } | State::Done | State::Failed(_)) => done,
        };
    }

    fn in_trailers(&mut self, mut lines: Vec<u8>, line: usize, byte: u8) -> State {
        if lines.len() == MAX_TRAILERS {
            return State::Failed(BadChunk::TooManyTrailers);
        }
        lines.push(byte);
        if byte != b'\n' {
            return State::Trailers { lines, line };
        }
        match &lines[line..] {
            b"\r\n" if line == 0 => State::Done,
            b"\r\n" => match parse_trailers(lines.into()) {
                Ok(trailers) => {
                    self.trailers = Some(Box::new(trailers));
                    State::Done
                }
                Err(error) => State::Failed(error),
            },
            [.., b'\r', b'\n'] => {
                let line = lines.len();
                State::Trailers { lines, line }
            }
            _ => State::Failed(BadChunk::LineEnd),
        }
    }
}

impl State {
    const SIZE: Self = Self::Size { size: 0, digits: 0 };
}

/// The size in a line of nothing but up to eight digits, that is no last chunk, and the length of the line.
fn plain_size_line(input: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, &byte) in input.iter().take(9).enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' if size > 0 && input.get(at + 1) == Some(&b'\n') => return Some((size, at + 2)),
            _ => return None,
        };
        size = size << 4 | u64::from(digit);
    }
    None
}

fn in_size(size: u64, digits: u8, byte: u8) -> State {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ if digits == 0 => return State::Failed(BadChunk::Size),
        _ => return behind(size, Behind::Blanks, 0, byte),
    };
    if digits == MAX_DIGITS {
        return State::Failed(BadChunk::Size);
    }
    State::Size {
        size: size << 4 | u64::from(digit),
        digits: digits + 1,
    }
}

fn behind(size: u64, kind: Behind, length: u16, byte: u8) -> State {
    let kind = match (kind, byte) {
        (_, b'\r') => return State::SizeEnd { size },
        (_, b'\n') => return State::Failed(BadChunk::LineEnd),
        (kind, b' ' | b'\t') => kind,
        (_, b';') => Behind::Extension,
        (Behind::Blanks, _) => return State::Failed(BadChunk::Size),
        (Behind::Extension, 0..b' ' | 0x7f) => return State::Failed(BadChunk::Extension),
        (Behind::Extension, _) => Behind::Extension,
    };
    if length == MAX_EXTENSION {
        return State::Failed(BadChunk::Extension);
    }
    State::Behind {
        size,
        kind,
        length: length + 1,
    }
}

fn parse_trailers(lines: Bytes) -> Result<HeaderMap, BadChunk> {
    let mut parsed = [httparse::EMPTY_HEADER; MAX_HEADERS];
    match httparse::parse_headers(&lines, &mut parsed) {
        Ok(httparse::Status::Complete((length, parsed))) if length == lines.len() => {
            response::headers(&lines, parsed).map_err(BadChunk::Trailers)
        }
        Ok(_) => Err(BadChunk::LineEnd),
        Err(httparse::Error::TooManyHeaders) => Err(BadChunk::TooManyTrailers),
        Err(error) => Err(BadChunk::Trailers(BadHead::Malformed(error))),
    }
}

/// What fits into 64 bits, zeros in front included.
const MAX_DIGITS: u8 = 16;

/// Bytes behind one size. Nobody reads them, so this only ends a line that never does.
const MAX_EXTENSION: u16 = 4096;

/// Bytes of the trailer section.
const MAX_TRAILERS: usize = 16 * 1024;
