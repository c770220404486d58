//! The few query parameters that are ours.

use std::borrow::Cow;

/// The first value of `name`, percent-decoded. A `+` stays a plus: no cursor holds a space.
pub(crate) fn first<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, [u8]>> {
    query?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (*decode(key) == *name.as_bytes()).then(|| decode(value))
    })
}

/// Whether there is a parameter of another name than these.
pub(crate) fn has_others(query: Option<&str>, names: &[&str]) -> bool {
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    let mut names_given = pairs
        .filter(|pair| !pair.is_empty())
        .map(|pair| decode(pair.split_once('=').map_or(pair, |(name, _)| name)));
    names_given.any(|given| names.iter().all(|name| name.as_bytes() != &*given))
}

/// Percent-decoded, once. Broken escapes stay as they are.
pub(crate) fn decode(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('%') {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                    continue;
                }
                _ => out.push(byte),
            },
            _ => out.push(byte),
        }
        rest = after;
    }
    Cow::Owned(out)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: Option<&str>) {
        assert_eq!(
            first(Some(query), "id").as_deref(),
            expected.map(str::as_bytes),
            "{query}"
        );
    }

    #[test]
    fn names_that_nobody_knows_are_noticed() {
        for (query, expected) in [
            (None, false),
            (Some(""), false),
            (Some("a=1&b"), false),
            (Some("%61=1&&b=2"), false),
            (Some("a=1&c=2"), true),
            (Some("dryrun=true"), true),
        ] {
            assert_eq!(has_others(query, &["a", "b"]), expected, "{query:?}");
        }
    }

    #[test]
    fn values_are_found_and_decoded() {
        check("id=a:1", Some("a:1"));
        check("x=1&id=a%3A1&id=b", Some("a:1"));
        check("%69d=1", Some("1"));
        check("id", Some(""));
        check("identity=1", None);
        check("", None);
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        check("id=%", Some("%"));
        check("id=%4", Some("%4"));
        check("id=%zz", Some("%zz"));
    }
}
