//! Where commands and answers end on a connection to Redis, and what a command is called.

/// Whether a command, as it stands on the wire, is of this name.
#[must_use]
pub fn is_command(wire: &[u8], name: &str) -> bool {
    let head = number(wire, 0, b'*').and_then(|(_, at)| number(wire, at, b'$'));
    head.is_some_and(|(length, at)| {
        let named = wire.get(at..at + length);
        named.is_some_and(|named| named.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// How long the command at the front is, once it is whole: `*2 CRLF $4 CRLF LLEN CRLF $1 CRLF k CRLF`.
pub(super) fn command_length(buf: &[u8]) -> Option<usize> {
    let (parts, mut at) = number(buf, 0, b'*')?;
    for _ in 0..parts {
        let (length, start) = number(buf, at, b'$')?;
        at = start + length + 2;
    }
    (at <= buf.len()).then_some(at)
}

/// How long what the server says at the front is, once it is whole, and whether it answers a command: what was not asked for
/// begins with `>`.
pub(super) fn said(buf: &[u8]) -> Option<(usize, bool)> {
    let length = value_end(buf, 0)?;
    Some((length, buf[0] != b'>'))
}

/// Where the value ends that begins at `at`.
fn value_end(buf: &[u8], at: usize) -> Option<usize> {
    let line = buf.get(at..)?;
    let length = line.windows(2).position(|pair| pair == b"\r\n")?;
    let (kind, behind) = (line[0], at + length + 2);
    let number = || {
        let text = std::str::from_utf8(&line[1..length]).ok();
        let number: Option<i64> = text.and_then(|text| text.parse().ok());
        // Nothing there is said by -1.
        usize::try_from(number.expect("a number")).ok()
    };
    let mut values = match kind {
        b'$' | b'=' | b'!' => {
            let end = number().map_or(behind, |bytes| behind + bytes + 2);
            return (end <= buf.len()).then_some(end);
        }
        b'*' | b'~' | b'>' => number().unwrap_or(0),
        b'%' => 2 * number().unwrap_or(0),
        // What it is about stands behind it.
        b'|' => 2 * number().unwrap_or(0) + 1,
        _ => 0,
    };
    let mut end = behind;
    while values > 0 {
        end = value_end(buf, end)?;
        values -= 1;
    }
    Some(end)
}

/// The number behind `mark` at `at`, and where the line behind it begins.
fn number(buf: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let line = buf.get(at..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    assert_eq!(line[0], mark, "a command is an array of strings");
    let number = std::str::from_utf8(&line[1..end]).ok()?.parse().ok()?;
    Some((number, at + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_whole_at_its_last_byte_only() {
        for (wire, is_answer) in [
            (&b"+OK\r\n"[..], true),
            (b"$-1\r\n", true),
            (b"$4\r\n\r\n\r\n\r\n", true),
            (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", true),
            (b"*-1\r\n", true),
            (b"%1\r\n+a\r\n#t\r\n", true),
            (b"|1\r\n+a\r\n+b\r\n:1\r\n", true),
            (b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", false),
        ] {
            for end in 0..wire.len() {
                assert_eq!(said(&wire[..end]), None, "{end} of {wire:?}");
            }
            let with_more = [wire, b"+more\r\n"].concat();
            assert_eq!(said(&with_more), Some((wire.len(), is_answer)));
        }
    }
}
