//! As much of RESP2 as a subscriber needs: commands out, lines and flat arrays in.
//!
//! The parser borrows from the read buffer and starts anew when more has come. That costs little, as it jumps over
//! the bytes of a string and looks only at what stands before them.

use bytes::{BufMut, BytesMut};
use thiserror::Error;

/// One reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// `+OK`
    Line(&'a [u8]),
    /// `-ERR text`
    Error(&'a [u8]),
    /// What a subscriber is told: a word, mostly a channel, and a message or a number.
    Told {
        what: &'a [u8],
        about: &'a [u8],
        /// Empty where it is a number, or absent.
        message: &'a [u8],
    },
}

/// These bytes are no reply that a subscriber gets, or one that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Malformed {
    #[error("not the protocol of Redis")]
    Syntax,
    #[error("a message above the limit")]
    TooLarge,
}

/// The first reply in `buf`, and how long it is; none if it is not complete.
pub(super) fn parse(buf: &[u8], limit: usize) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    let mut cursor = Cursor { buf, at: 0, limit };
    match cursor.reply() {
        Ok(reply) => Ok(Some((reply, cursor.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed(malformed)) => Err(malformed),
    }
}

/// Writes a command.
pub(super) fn command(out: &mut BytesMut, parts: &[&[u8]]) {
    head(out, b'*', parts.len());
    for part in parts {
        head(out, b'$', part.len());
        out.put_slice(part);
        out.put_slice(b"\r\n");
    }
}

fn head(out: &mut BytesMut, sign: u8, number: usize) {
    out.put_u8(sign);
    out.put_slice(number.to_string().as_bytes());
    out.put_slice(b"\r\n");
}

struct Cursor<'a> {
    buf: &'a [u8],
    at: usize,
    limit: usize,
}

enum Stop {
    Incomplete,
    Malformed(Malformed),
}

const SYNTAX: Stop = Stop::Malformed(Malformed::Syntax);

impl<'a> Cursor<'a> {
    fn reply(&mut self) -> Result<Reply<'a>, Stop> {
        match self.byte()? {
            b'+' => Ok(Reply::Line(self.line()?)),
            b'-' => Ok(Reply::Error(self.line()?)),
            b'*' => {
                let parts = self.number()?;
                // `pong` has two, all else three.
                if !(2..=3).contains(&parts) {
                    return Err(SYNTAX);
                }
                Ok(Reply::Told {
                    what: self.part()?,
                    about: self.part()?,
                    message: if parts == 3 { self.part()? } else { b"" },
                })
            }
            _ => Err(SYNTAX),
        }
    }

    fn part(&mut self) -> Result<&'a [u8], Stop> {
        match self.byte()? {
            b':' => self.number().map(|_| &b""[..]),
            b'$' => {
                let length = self.number()?;
                if length == -1 {
                    return Ok(b"");
                }
                let length = usize::try_from(length).map_err(|_| SYNTAX)?;
                // Before memory is taken for it.
                if length > self.limit {
                    return Err(Stop::Malformed(Malformed::TooLarge));
                }
                let string = self.take(length)?;
                if self.take(2)? != b"\r\n" {
                    return Err(SYNTAX);
                }
                Ok(string)
            }
            _ => Err(SYNTAX),
        }
    }

    fn number(&mut self) -> Result<i64, Stop> {
        let line = self.line()?;
        let text = std::str::from_utf8(line).map_err(|_| SYNTAX)?;
        text.parse().map_err(|_| SYNTAX)
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.buf[self.at..];
        let Some(end) = memchr::memchr(b'\r', &rest[..rest.len().min(MAX_LINE)]) else {
            return Err(if rest.len() < MAX_LINE {
                Stop::Incomplete
            } else {
                SYNTAX
            });
        };
        match rest.get(end + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') => {
                self.at += end + 2;
                Ok(&rest[..end])
            }
            Some(_) => Err(SYNTAX),
        }
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        self.take(1).map(|byte| byte[0])
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let taken = self.buf[self.at..].get(..length).ok_or(Stop::Incomplete)?;
        self.at += length;
        Ok(taken)
    }
}

/// An error of Redis is a sentence.
const MAX_LINE: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told<'a>(what: &'a str, about: &'a str, message: &'a str) -> Reply<'a> {
        Reply::Told {
            what: what.as_bytes(),
            about: about.as_bytes(),
            message: message.as_bytes(),
        }
    }

    /// Every part of it is incomplete, and with something behind it is still the same.
    #[track_caller]
    fn check(input: &str, expected: &Reply<'_>) {
        for end in 0..input.len() {
            assert_eq!(parse(&input.as_bytes()[..end], 100), Ok(None), "{end}");
        }
        for tail in ["", "\r", "*3\r\n", "garbage"] {
            let input_and_more = format!("{input}{tail}");
            let (reply, length) = parse(input_and_more.as_bytes(), 100)
                .expect("it is well-formed")
                .expect("it is complete");
            assert_eq!(reply, *expected);
            assert_eq!(length, input.len());
        }
    }

    #[test]
    fn lines() {
        check("+OK\r\n", &Reply::Line(b"OK"));
        check("-ERR no\r\n", &Reply::Error(b"ERR no"));
        check("+\r\n", &Reply::Line(b""));
    }

    #[test]
    fn what_a_subscriber_is_told() {
        check(
            "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
            &told("subscribe", "a", ""),
        );
        check(
            "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n",
            &told("message", "a", "x\r\ny"),
        );
        check(
            "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n",
            &told("message", "a", ""),
        );
        check("*2\r\n$4\r\npong\r\n$0\r\n\r\n", &told("pong", "", ""));
        check(
            "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
            &told("unsubscribe", "", ""),
        );
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for input in [
            "x",
            "*9\r\n",
            "*-1\r\n",
            "*3\r\n$x\r\n",
            "*3\r\n$-2\r\n",
            "*3\r\n$1\r\nabc",
            "*3\r\n*3\r\n",
            "+a\rb",
            "HTTP/1.1 400 Bad Request\r\n",
        ] {
            assert_eq!(
                parse(input.as_bytes(), 100),
                Err(Malformed::Syntax),
                "{input:?}"
            );
        }
        assert_eq!(parse(&[b'+'; 5000], 100), Err(Malformed::Syntax));
    }

    #[test]
    fn a_message_above_the_limit_is_refused_before_it_comes() {
        let head = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$101\r\n";
        assert_eq!(parse(head, 100), Err(Malformed::TooLarge));
        assert_eq!(parse(head, 101), Ok(None));
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = BytesMut::new();
        command(&mut out, &[b"SUBSCRIBE", b"\r\n"]);
        assert_eq!(&out[..], b"*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\n\r\n\r\n");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((_, length))) = parse(&bytes, 100) {
                prop_assert!(length <= bytes.len());
            }
        }

        #[test]
        fn any_message_comes_back(about in ".{0,20}", message in "(?s).{0,20}") {
            let mut out = BytesMut::new();
            command(&mut out, &[b"message", about.as_bytes(), message.as_bytes()]);
            let parsed = parse(&out, 100);
            prop_assert_eq!(parsed, Ok(Some((told("message", &about, &message), out.len()))));
        }
    }
}
