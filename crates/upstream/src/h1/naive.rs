//! The chunked coding again, slow and plain: the whole body at once, line by line. The oracle for
//! [`super::chunked`].

/// What a whole chunked body comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// It ended; so many bytes are behind it.
    Whole {
        trailers: usize,
        behind: usize,
    },
    /// It goes on.
    Open,
    Bad,
}

/// The payload of `bytes`, and how it went on. Trailers are counted, in lines.
pub(crate) fn chunked(mut bytes: &[u8]) -> (Vec<u8>, Body) {
    let mut payload = Vec::new();
    loop {
        let (line, rest) = match line(bytes) {
            Line::Whole(line, rest) => (line, rest),
            Line::Open(start) => {
                let could_be = size_line_so_far(start);
                return (payload, if could_be { Body::Open } else { Body::Bad });
            }
            Line::Bad => return (payload, Body::Bad),
        };
        let Some(size) = size(line) else {
            return (payload, Body::Bad);
        };
        bytes = rest;
        if size == 0 {
            return (payload, trailers(bytes));
        }
        let here = usize::try_from(size).map_or(bytes.len(), |size| size.min(bytes.len()));
        payload.extend_from_slice(&bytes[..here]);
        let end = &bytes[here..];
        if (here as u64) < size || end.is_empty() || end == b"\r" {
            return (payload, Body::Open);
        }
        let Some(rest) = end.strip_prefix(b"\r\n") else {
            return (payload, Body::Bad);
        };
        bytes = rest;
    }
}

enum Line<'a> {
    Whole(&'a [u8], &'a [u8]),
    Open(&'a [u8]),
    Bad,
}

/// The first line, without its CRLF, and the rest. CR and LF stand together or the line is bad.
fn line(bytes: &[u8]) -> Line<'_> {
    match bytes.iter().position(|byte| b"\r\n".contains(byte)) {
        None => Line::Open(bytes),
        Some(at) if bytes[at..].starts_with(b"\r\n") => Line::Whole(&bytes[..at], &bytes[at + 2..]),
        Some(at) if &bytes[at..] == b"\r" => {
            // A line of its own, as far as can be seen.
            match size(&bytes[..at]) {
                Some(_) => Line::Open(&bytes[..at]),
                None => Line::Bad,
            }
        }
        Some(_) => Line::Bad,
    }
}

fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (digits, behind) = line.split_at(digits.count());
    let fits = (1..=16).contains(&digits.len()) && behind.len() <= 4096;
    let blanks = behind.iter().take_while(|byte| b" \t".contains(byte));
    let extension = &behind[blanks.count()..];
    let plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if !fits || !(extension.is_empty() || extension[0] == b';') || !extension.iter().all(plain) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether more bytes could make a size line of it.
fn size_line_so_far(start: &[u8]) -> bool {
    start.is_empty() || size(start).is_some()
}

fn trailers(bytes: &[u8]) -> Body {
    let mut at = 0;
    let mut count = 0;
    while let Some(length) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[at..at + length];
        at += length + 1;
        if at > 16 * 1024 {
            return Body::Bad;
        }
        match line.strip_suffix(b"\r") {
            None => return Body::Bad,
            Some(b"") => return whole(&bytes[..at], count, bytes.len() - at),
            Some(_) => count += 1,
        }
    }
    if bytes.len() > 16 * 1024 {
        Body::Bad
    } else {
        Body::Open
    }
}

/// A whole trailer section, once more as text.
fn whole(section: &[u8], count: usize, behind: usize) -> Body {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let value = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    let good = section[..section.len() - 2]
        .split_inclusive(|&byte| byte == b'\n')
        .all(|line| {
            let line = &line[..line.len() - 2];
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
            colon > 0 && line[..colon].iter().all(token) && line[colon + 1..].iter().all(value)
        });
    if good && count <= 100 {
        Body::Whole {
            trailers: count,
            behind,
        }
    } else {
        Body::Bad
    }
}
