//! What a connection asks.

use bytes::{Bytes, BytesMut};

/// These bytes are no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Takes the first command out of `input`; none if it is not complete.
///
/// # Errors
/// When it is no array of strings.
pub fn parse(input: &mut BytesMut) -> Result<Option<Vec<Bytes>>, Malformed> {
    let mut at = 0;
    let Some(count) = number(input, &mut at, b'*')? else {
        return Ok(None);
    };
    let mut ends = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(length) = number(input, &mut at, b'$')? else {
            return Ok(None);
        };
        if input.len() < at + length + 2 {
            return Ok(None);
        }
        ends.push((at, at + length));
        at += length + 2;
    }
    let all = input.split_to(at).freeze();
    Ok(Some(
        ends.into_iter()
            .map(|(from, to)| all.slice(from..to))
            .collect(),
    ))
}

fn number(input: &[u8], at: &mut usize, sign: u8) -> Result<Option<usize>, Malformed> {
    let rest = &input[*at..];
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let line = rest[..end].strip_prefix(&[sign]).ok_or(Malformed)?;
    let text = std::str::from_utf8(line).map_err(|_| Malformed)?;
    *at += end + 2;
    text.parse().map(Some).map_err(|_| Malformed)
}
