//! The name of a generation: a ULID in its one canonical form.
//!
//! An id is both a name and, for a generation that was created without a credential, the secret
//! that guards it. So its 80 random bits are always fresh from the operating system; they are never
//! counted up from the last id of the same millisecond, which would make a neighbour guessable.
//!
//! Exactly one text names one id: 26 lowercase characters of Crockford's alphabet. Decoders in the
//! wild also take upper case and read `i`, `l`, `o` as digits; here such a text is refused and named,
//! because two spellings of one generation would be two cache keys, two log lines, two locks.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names one generation. `Display` writes the canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u128);

impl StreamId {
    /// A fresh id: the milliseconds of `now` and 80 random bits.
    ///
    /// A clock before 1970 counts as 1970, one beyond the year 10889 as the last representable
    /// moment; the id stays unique either way.
    ///
    /// # Panics
    /// When the operating system has no random bits to give. Going on with guessable ids would be
    /// worse than not going on.
    pub fn generate(now: SystemTime) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = since.as_millis().min(MAX_MILLIS);
        let mut random = [0; 16];
        getrandom::fill(&mut random[6..]).expect("the operating system gives random bits");
        Self(millis << RANDOM_BITS | u128::from_be_bytes(random))
    }

    /// Reads the canonical form, and only that.
    pub fn parse(text: &str) -> Result<Self, ParseIdError> {
        Self::parse_bytes(text.as_bytes())
    }

    pub(crate) fn parse_bytes(text: &[u8]) -> Result<Self, ParseIdError> {
        if text.len() != LEN || !text.iter().all(u8::is_ascii_alphanumeric) {
            return Err(ParseIdError::NotAnId);
        }
        // 26 characters hold 130 bits: a first character above 7 would not fit.
        if text[0] > b'7' {
            return Err(ParseIdError::NotCanonical);
        }
        let mut value = 0;
        for &byte in text {
            let digit = VALUES[usize::from(byte)];
            if digit == NOT_A_DIGIT {
                return Err(ParseIdError::NotCanonical);
            }
            value = value << 5 | u128::from(digit);
        }
        Ok(Self(value))
    }

    /// The milliseconds that it was made at.
    pub fn time(self) -> SystemTime {
        let millis = u64::try_from(self.0 >> RANDOM_BITS).expect("48 bits");
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    /// The canonical text, without an allocation.
    pub fn text(&self) -> IdText {
        let mut text = [0; LEN];
        let mut rest = self.0;
        for place in text.iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        IdText(text)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for StreamId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The canonical text of a [`StreamId`], held on the stack; dereferences to `str`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdText([u8; LEN]);

impl IdText {
    pub(crate) fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl Deref for IdText {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Why a text is not the canonical form of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// Not 26 ASCII letters and digits.
    #[error("not a stream id")]
    NotAnId,
    /// Shaped like an id, but not the one spelling: upper case, one of `i l o u`, or a first
    /// character above `7`.
    #[error("stream id is not in canonical form")]
    NotCanonical,
}

const LEN: usize = 26;
const RANDOM_BITS: u32 = 80;
const MAX_MILLIS: u128 = (1 << 48) - 1;
const NOT_A_DIGIT: u8 = 0xff;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const VALUES: [u8; 256] = {
    let mut values = [NOT_A_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        values[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<u128, ParseIdError>) {
        assert_eq!(StreamId::parse(text).map(|id| id.0), expected, "{text}");
    }

    #[test]
    fn smallest_and_largest() {
        check("00000000000000000000000000", Ok(0));
        check("7zzzzzzzzzzzzzzzzzzzzzzzzz", Ok(u128::MAX));
    }

    #[test]
    fn other_spellings_are_named() {
        check(
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            Err(ParseIdError::NotCanonical),
        );
        check(
            "01arz3ndektsv4rrffq69g5faV",
            Err(ParseIdError::NotCanonical),
        );
        check(
            "8zzzzzzzzzzzzzzzzzzzzzzzzz",
            Err(ParseIdError::NotCanonical),
        );
        for alias in ['i', 'l', 'o', 'u'] {
            check(
                &format!("0{alias}arz3ndektsv4rrffq69g5fa"),
                Err(ParseIdError::NotAnId),
            );
            check(
                &format!("0{alias}arz3ndektsv4rrffq69g5fav"),
                Err(ParseIdError::NotCanonical),
            );
        }
    }

    #[test]
    fn anything_else_is_no_id() {
        for text in [
            "",
            "0",
            "01arz3ndektsv4rrffq69g5fav0",
            "01arz3ndektsv4rrffq69g5fa-",
            "01arz3ndektsv4rrffq69g5fé",
        ] {
            check(text, Err(ParseIdError::NotAnId));
        }
    }

    #[test]
    fn agrees_with_another_reading() {
        let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        for _ in 0..1000 {
            let id = StreamId::generate(now);
            let other = ulid::Ulid::from_string(&id.text()).expect("a ULID");
            assert_eq!(other.0, id.0);
            assert_eq!(other.timestamp_ms(), 1_700_000_000_123);
            assert_eq!(other.to_string().to_lowercase(), id.to_string());
            assert_eq!(StreamId::parse(&id.to_string()), Ok(id));
        }
    }

    #[test]
    fn ids_of_one_moment_are_not_neighbours() {
        let mut ids: Vec<u128> = (0..100).map(|_| StreamId::generate(UNIX_EPOCH).0).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[1] - pair[0] > 1 << 32));
    }

    #[test]
    fn clocks_out_of_range_are_clamped() {
        let early = StreamId::generate(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(early.0 >> RANDOM_BITS, 0);
        if let Some(late) = UNIX_EPOCH.checked_add(Duration::from_secs(1 << 50)) {
            assert_eq!(StreamId::generate(late).0 >> RANDOM_BITS, MAX_MILLIS);
        }
    }
}
