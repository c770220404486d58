//! Which content coding a client is sent (protocol.md 4.8, RFC 9110 12.5.3).

use std::fmt;
use std::str::FromStr;

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderValue};

/// A content coding that responses to readers can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// `gzip`: what everybody understands. About 300 KiB for each open response, and the slowest.
    Gzip,
    /// `br`: about 320 KiB for each open response, up to 570 KiB after large events.
    Brotli,
    /// `zstd`: about 100 KiB for each open response, a quarter of the time, and the smallest result.
    Zstd,
}

impl ContentCoding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Brotli, Self::Zstd];

    /// Its name in header fields.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for ContentCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ContentCoding {
    type Err = UnknownCoding;

    fn from_str(name: &str) -> Result<Self, UnknownCoding> {
        Self::ALL
            .into_iter()
            .find(|coding| coding.as_str() == name)
            .ok_or(UnknownCoding)
    }
}

/// A name that is no [`ContentCoding`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected gzip, br or zstd")]
pub struct UnknownCoding;

/// The coding that this client likes best, and of several the first of `ours`. `None`: it is sent none.
///
/// Only what is named counts. `*` names nothing: clients that were sent a coding they had not named took what they could
/// not read for an empty answer. Nor is a client refused that wants none of ours, whatever it says of `identity`.
pub(crate) fn choose(headers: &HeaderMap, ours: &[ContentCoding]) -> Option<ContentCoding> {
    let fields = headers.get_all(ACCEPT_ENCODING);
    let quality = |name: &str| {
        let named = fields
            .iter()
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.split(','))
            .filter_map(item)
            .filter(|(coding, _)| coding.eq_ignore_ascii_case(name));
        // Whoever says two things means the more careful one.
        named.map(|(_, quality)| quality).min()
    };
    let liked = ours
        .iter()
        .filter_map(|coding| Some((*coding, quality(coding.as_str())?)))
        .filter(|(_, quality)| *quality > 0)
        // The first of those that are equal.
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    let (coding, liked) = liked?;
    let plain = quality("identity");
    plain.is_none_or(|plain| plain <= liked).then_some(coding)
}

/// A coding and its quality in thousandths. One that cannot be read is not wanted.
fn item(item: &str) -> Option<(&str, u16)> {
    let mut parts = item.split(';').map(str::trim_ascii);
    let coding = parts.next().filter(|coding| !coding.is_empty())?;
    let quality = match (parts.next(), parts.next()) {
        (None, _) => Some(1000),
        (Some(weight), None) => weight
            .strip_prefix("q=")
            .or_else(|| weight.strip_prefix("Q="))
            .and_then(thousandths),
        (Some(_), Some(_)) => None,
    };
    Some((coding, quality.unwrap_or(0)))
}

/// `0`, `1`, or one of them with up to three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, decimals) {
        ("0", _) => Some(decimals),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

impl From<ContentCoding> for HeaderValue {
    fn from(coding: ContentCoding) -> Self {
        Self::from_static(coding.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::ContentCoding::{Brotli, Gzip, Zstd};
    use super::*;

    #[track_caller]
    fn check(fields: &[&'static str], expected: Option<ContentCoding>) {
        check_of(&[Zstd, Brotli, Gzip], fields, expected);
    }

    #[track_caller]
    fn check_of(ours: &[ContentCoding], fields: &[&'static str], expected: Option<ContentCoding>) {
        let fields = fields.iter().map(|field| HeaderValue::from_static(field));
        let headers = fields.map(|field| (ACCEPT_ENCODING, field)).collect();
        assert_eq!(choose(&headers, ours), expected);
    }

    #[test]
    fn only_what_is_named_is_sent() {
        check(&[], None);
        check(&[""], None);
        check(&["*"], None);
        check(&["*;q=1, deflate"], None);
        check(&["identity"], None);
        check(&["gzips, xgzip, x-gzip"], None);
        check(&["gzip"], Some(Gzip));
        check(&["*, gzip"], Some(Gzip));
        check(&["GZIP"], Some(Gzip));
        check_of(&[Brotli], &["gzip, deflate"], None);
        check_of(&[], &["gzip"], None);
    }

    #[test]
    fn of_what_is_liked_alike_ours_comes_first() {
        check(&["gzip, deflate, br, zstd"], Some(Zstd));
        check(&["gzip;q=0.5, br;q=0.5"], Some(Brotli));
        check(&["gzip", "br"], Some(Brotli));
        check_of(&[Gzip, Zstd], &["zstd, gzip"], Some(Gzip));
    }

    #[test]
    fn what_is_liked_more_comes_before_that() {
        check(&["gzip;q=1.0, zstd;q=0.999"], Some(Gzip));
        check(&["gzip; q=0.8 , br ;q=0.801,zstd;q=0.1"], Some(Brotli));
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        check(&["gzip;q=0"], None);
        check(&["gzip;q=0.000, br"], Some(Brotli));
        check(&["gzip, gzip;q=0"], None);
        check(&["*;q=0, gzip"], Some(Gzip));
    }

    #[test]
    fn whoever_likes_it_plain_gets_it_plain() {
        check(&["identity, gzip;q=0.5"], None);
        check(&["identity;q=0.5, gzip;q=0.5"], Some(Gzip));
        check(&["identity;q=0, gzip"], Some(Gzip));
        // There is no answer without an answer.
        check(&["identity;q=0"], None);
        check(&["identity;q=0, *;q=0"], None);
    }

    #[test]
    fn what_cannot_be_read_is_not_wanted() {
        for bad in [
            "gzip;q=",
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=-1",
            "gzip;q=.5",
            "gzip;q=0.5;x",
            "gzip;level=9",
            "gzip;",
            ";q=1",
            "gzip q=1",
            "gzip;q=1e0",
        ] {
            check(&[bad], None);
        }
        check(&["gzip;q=nan, br"], Some(Brotli));
    }

    #[test]
    fn names_read_back() {
        for coding in ContentCoding::ALL {
            assert_eq!(coding.to_string().parse(), Ok(coding));
        }
        assert_eq!("deflate".parse::<ContentCoding>(), Err(UnknownCoding));
    }
}
