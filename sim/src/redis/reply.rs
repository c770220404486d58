//! What a server answers, and how that is written in either version of the protocol.

use bytes::Bytes;

/// Which version a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// An answer, or what a connection is told unasked.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A word.
    Line(&'static str),
    /// An error, its code first.
    Error(String),
    /// A number.
    Int(i64),
    /// Bytes.
    Bulk(Bytes),
    /// Nothing.
    Nil,
    /// Several.
    Array(Vec<Reply>),
    /// Several without an order.
    Set(Vec<Reply>),
    /// Pairs, one after the other.
    Map(Vec<Reply>),
    /// A score.
    Double(f64),
    /// Unasked.
    Push(Vec<Reply>),
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bulk(text.into().into())
    }

    /// An error.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Writes it down.
    pub fn write(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Three;
        match self {
            Self::Line(line) => out.extend_from_slice(format!("+{line}\r\n").as_bytes()),
            Self::Error(error) => out.extend_from_slice(format!("-{error}\r\n").as_bytes()),
            Self::Int(number) => head(out, ':', *number),
            Self::Bulk(bytes) => {
                head(out, '$', bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Nil => out.extend_from_slice(if is_new { b"_\r\n" } else { b"$-1\r\n" }),
            Self::Array(parts) => several(out, '*', parts.len(), parts, protocol),
            Self::Set(parts) => {
                let sign = if is_new { '~' } else { '*' };
                several(out, sign, parts.len(), parts, protocol);
            }
            Self::Map(parts) if is_new => several(out, '%', parts.len() / 2, parts, protocol),
            Self::Map(parts) => several(out, '*', parts.len(), parts, protocol),
            Self::Double(score) if is_new => {
                out.extend_from_slice(format!(",{}\r\n", number(*score)).as_bytes());
            }
            Self::Double(score) => Self::text(number(*score)).write(protocol, out),
            Self::Push(parts) => {
                let sign = if is_new { '>' } else { '*' };
                several(out, sign, parts.len(), parts, protocol);
            }
        }
    }
}

/// As Redis writes scores down: whole ones without a point.
pub(super) fn number(score: f64) -> String {
    match score {
        _ if score == f64::INFINITY => "inf".to_owned(),
        _ if score == f64::NEG_INFINITY => "-inf".to_owned(),
        _ => score.to_string(),
    }
}

fn head(out: &mut Vec<u8>, sign: char, number: impl std::fmt::Display) {
    out.extend_from_slice(format!("{sign}{number}\r\n").as_bytes());
}

fn several(out: &mut Vec<u8>, sign: char, count: usize, parts: &[Reply], protocol: Protocol) {
    head(out, sign, count);
    for part in parts {
        part.write(protocol, out);
    }
}
