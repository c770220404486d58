//! Where a reader stands, and how that is written: `<stream_id>:<seq>`, or `<stream_id>:<seq>~<epoch>`
//! once the epoch is above 1. A reader that wants so many entries or bytes only has what is [left](Left) of that behind
//! it: `:<count>:<bytes>`.
//!
//! A cursor comes back from strangers, as `Last-Event-ID`, beside ids that other servers made up.
//! So the reading answers two questions: is it one of ours at all, and if it is, is it exactly what
//! we wrote. There is one spelling: no sign, no space, no leading zero, lowercase.

use std::fmt;

use crate::id::{ParseIdError, StreamId};
use crate::types::{Epoch, Seq};

/// A place in one generation. The next entry to show is the first one after `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The generation.
    pub stream: StreamId,
    /// The last entry seen; [`Seq::ZERO`] is the start.
    pub seq: Seq,
    /// Under which writer that entry was written.
    pub epoch: Epoch,
}

impl Cursor {
    /// Reads a cursor as it came in a header or a query. One that says what is left names a place all the same.
    ///
    /// # Errors
    /// It is none that was ever given out.
    pub fn parse(text: &[u8]) -> Result<Self, CursorError> {
        Self::parse_with_left(text).map(|(cursor, _)| cursor)
    }

    /// The same, with what is left where it says that.
    ///
    /// # Errors
    /// It is none that was ever given out.
    pub fn parse_with_left(text: &[u8]) -> Result<(Self, Left), CursorError> {
        let Some((id, [b':', place @ ..])) = text.split_at_checked(ID_LEN) else {
            return Err(CursorError::Foreign);
        };
        let stream = StreamId::parse_bytes(id).map_err(|error| match error {
            ParseIdError::NotAnId => CursorError::Foreign,
            ParseIdError::NotCanonical => match StreamId::parse_bytes(&id.to_ascii_lowercase()) {
                Ok(_) => CursorError::WrongCase,
                Err(_) => CursorError::Foreign,
            },
        })?;
        let mut fields = place.splitn(2, |&byte| byte == b':');
        let place = fields.next().unwrap_or_default();
        let left = match fields.next() {
            None => Left::default(),
            Some(text) => Left::parse(text).ok_or(CursorError::Malformed)?,
        };
        let mut parts = place.splitn(2, |&byte| byte == b'~');
        let seq = parts
            .next()
            .and_then(parse_seq)
            .ok_or(CursorError::Malformed)?;
        let epoch = match parts.next() {
            None => Epoch::FIRST,
            Some(text) => parse_epoch(text).ok_or(CursorError::Malformed)?,
        };
        Ok((Self { stream, seq, epoch }, left))
    }
}

/// What a reader that wants so many entries or bytes only may still be given. The default is a reader without a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Left {
    /// So many entries.
    pub count: Option<u64>,
    /// So many bytes.
    pub bytes: Option<u64>,
}

impl Left {
    /// Nothing at all.
    pub const NOTHING: Self = Self {
        count: Some(0),
        bytes: Some(0),
    };

    /// Whether there is no bound, so that nothing is written.
    #[must_use]
    pub fn is_unbounded(self) -> bool {
        self == Self::default()
    }

    /// Whether there is a bound that was come to.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self.count == Some(0) || self.bytes == Some(0)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut fields = text.splitn(2, |&byte| byte == b':');
        let count = bound(fields.next()?)?;
        let bytes = bound(fields.next()?)?;
        let left = Self { count, bytes };
        // It is not written then.
        (!left.is_unbounded()).then_some(left)
    }
}

/// What stands behind the place in a cursor; nothing without a bound.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unbounded() {
            return Ok(());
        }
        for bound in [self.count, self.bytes] {
            match bound {
                Some(left) => write!(f, ":{left}")?,
                None => f.write_str(":-")?,
            }
        }
        Ok(())
    }
}

/// One bound: `-` where there is none.
fn bound(text: &[u8]) -> Option<Option<u64>> {
    match text {
        b"-" => Some(None),
        digits => decimal(digits).map(Some),
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stream, self.seq)?;
        if self.epoch > Epoch::FIRST {
            write!(f, "~{}", self.epoch)?;
        }
        Ok(())
    }
}

/// Why a text is not a cursor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// It does not begin with a stream id, in whatever case, and a colon. Somebody else's id.
    #[error("not a cursor of this proxy")]
    Foreign,
    /// One of ours, but not in lowercase.
    #[error("cursor is not in lowercase")]
    WrongCase,
    /// It begins with a stream id, but is none that was ever given out.
    #[error("malformed cursor")]
    Malformed,
}

/// Reads a bare sequence: decimal, no sign, no space, no leading zero; `0` is the start.
pub fn parse_seq(text: &[u8]) -> Option<Seq> {
    decimal(text).map(Seq::new)
}

/// Epoch 1 is never written, so neither is it read.
fn parse_epoch(text: &[u8]) -> Option<Epoch> {
    Epoch::new(decimal(text)?).filter(|&epoch| epoch > Epoch::FIRST)
}

fn decimal(text: &[u8]) -> Option<u64> {
    match text {
        [] => None,
        [b'0'] => Some(0),
        [b'0', ..] => None,
        _ => text.iter().try_fold(0u64, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
            number.checked_mul(10)?.checked_add(u64::from(digit))
        }),
    }
}

const ID_LEN: usize = 26;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01arz3ndektsv4rrffq69g5fav";

    #[track_caller]
    fn reads(place: &str, seq: u64, epoch: u64) {
        let text = format!("{ID}:{place}");
        let cursor = Cursor {
            stream: StreamId::parse(ID).unwrap(),
            seq: Seq::new(seq),
            epoch: Epoch::new(epoch).unwrap(),
        };
        assert_eq!(Cursor::parse(text.as_bytes()), Ok(cursor), "{text}");
        assert_eq!(cursor.to_string(), text);
    }

    #[track_caller]
    fn refuses(text: impl AsRef<[u8]>, error: CursorError) {
        assert_eq!(
            Cursor::parse(text.as_ref()),
            Err(error),
            "{:?}",
            String::from_utf8_lossy(text.as_ref())
        );
    }

    #[test]
    fn every_written_form_is_read() {
        reads("0", 0, 1);
        reads("1", 1, 1);
        reads("10", 10, 1);
        reads("18446744073709551615", u64::MAX, 1);
        reads("7~2", 7, 2);
        reads("7~9223372036854775807", 7, i64::MAX as u64);
    }

    #[test]
    fn what_is_left_stands_behind_the_place() {
        for (text, count, bytes) in [
            ("7:3:100", Some(3), Some(100)),
            ("7~2:3:-", Some(3), None),
            ("0:-:18446744073709551615", None, Some(u64::MAX)),
            ("7:0:0", Some(0), Some(0)),
        ] {
            let text = format!("{ID}:{text}");
            let left = Left { count, bytes };
            let (cursor, read) = Cursor::parse_with_left(text.as_bytes()).expect("is read");
            assert_eq!(read, left, "{text}");
            assert_eq!(format!("{cursor}{left}"), text);
            assert_eq!(Cursor::parse(text.as_bytes()), Ok(cursor));
        }
        assert!(Left::NOTHING.is_nothing() && !Left::default().is_nothing());
    }

    #[test]
    fn ours_by_shape_but_never_written() {
        for place in [
            "",
            "+1",
            "-1",
            " 1",
            "1 ",
            "01",
            "00",
            "1.0",
            "1e3",
            "0x1",
            "18446744073709551616",
            "99999999999999999999",
            "1~",
            "1~0",
            "1~1",
            "1~02",
            "1~+2",
            "1~ 2",
            "1~9223372036854775808",
            "1~2~3",
            "~2",
            "1,2",
            "1:",
            "1:2",
            "1:2:",
            "1::2",
            "1:-:-",
            "1:02:3",
            "1:2:3:4",
            "1:2:3~2",
            ":2:3",
            "one",
            "1\n",
            "\u{663}",
        ] {
            refuses(format!("{ID}:{place}"), CursorError::Malformed);
        }
    }

    #[test]
    fn wrong_case_is_named() {
        refuses("01ARZ3NDEKTSV4RRFFQ69G5FAV:1", CursorError::WrongCase);
        refuses("01arz3ndektsv4rrffq69g5faV:1", CursorError::WrongCase);
        refuses("01ARZ3NDEKTSV4RRFFQ69G5FAV:", CursorError::WrongCase);
    }

    #[test]
    fn everything_else_is_foreign() {
        for text in [
            "",
            "1",
            "42",
            ID,
            "msg_1:2",
            "01arz3ndektsv4rrffq69g5fa:1",
            "01arz3ndektsv4rrffq69g5favx:1",
            "01arz3ndektsv4rrffq69g5fav 1",
            "01arz3ndek-sv4rrffq69g5fav:1",
            "81arz3ndektsv4rrffq69g5fav:1",
            "0iarz3ndektsv4rrffq69g5fav:1",
        ] {
            refuses(text, CursorError::Foreign);
        }
        refuses([0xff; 30], CursorError::Foreign);
        refuses("é".repeat(13) + ":1", CursorError::Foreign);
    }

    #[test]
    fn bare_sequences() {
        assert_eq!(parse_seq(b"0"), Some(Seq::ZERO));
        assert_eq!(parse_seq(b"12"), Some(Seq::new(12)));
        for text in [
            &b""[..],
            b"00",
            b"012",
            b"+1",
            b"-1",
            b" 1",
            b"1 ",
            b"1~2",
            b"18446744073709551616",
        ] {
            assert_eq!(parse_seq(text), None);
        }
    }
}
