//! How sizes and durations are written on the command line.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use bytesize::ByteSize;
use streamweld_upstream::{BackendUrl, BackendUrlError};

/// The URL of a backend as it was written.
///
/// People write passwords there, and the parser of the command line shows every value that it refuses. So it is told
/// of no fault; [`Url::checked`] tells it, without the text.
#[derive(Clone, Debug)]
pub(crate) struct Url(Result<BackendUrl, BackendUrlError>);

impl Url {
    /// The URL, if it is one.
    pub(crate) fn checked(&self) -> anyhow::Result<BackendUrl> {
        self.0.clone().context("the value of --backend is refused")
    }
}

impl FromStr for Url {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse()))
    }
}

/// `15s`, `10m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it as `15s`, `10m` or `500ms`"))
}

/// A duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|value| {
        if value.is_zero() {
            Err("must be above zero".to_owned())
        } else {
            Ok(value)
        }
    })
}

/// `16MiB`, `512KiB`, or plain bytes. Above zero.
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_| "not a size; write it as `16MiB`, `512KiB` or bytes".to_owned())?;
    if size.as_u64() == 0 {
        Err("must be above zero".to_owned())
    } else {
        Ok(size)
    }
}

/// A size as it is shown: in the largest binary unit that divides it.
pub(crate) fn show_size(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes % (1 << shift) == 0)
        .map_or_else(
            || format!("{bytes}B"),
            |(unit, shift)| format!("{}{unit}", bytes >> shift),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_when_they_say_so() {
        assert_eq!(size("16MiB").map(|size| size.as_u64()), Ok(16 << 20));
        assert_eq!(size("1024").map(|size| size.as_u64()), Ok(1024));
        assert!(size("0").is_err());
        assert!(size("many").is_err());
        assert!(size("-1MiB").is_err());
    }

    #[test]
    fn shown_sizes_read_back() {
        for bytes in [1, 1000, 1 << 10, 16 << 20, 3 << 30] {
            assert_eq!(
                size(&show_size(bytes)).map(|size| size.as_u64()),
                Ok(bytes),
                "{}",
                show_size(bytes)
            );
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("15").is_err());
        assert!(positive_duration("0s").is_err());
    }
}
