//! The framing of an answer's body: content coding inside, chunks outside.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use crate::{Encoding, text::push_number};

/// Frames body bytes into its own buffer, which is handed out per write.
#[derive(Debug)]
pub(crate) struct Frame {
    chunked: bool,
    gzip: Option<GzEncoder<Vec<u8>>>,
    out: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(chunked: bool, encoding: Encoding) -> Self {
        let gzip = match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(GzEncoder::new(Vec::new(), Compression::default())),
        };
        Self {
            chunked,
            gzip,
            out: Vec::new(),
        }
    }

    /// Adds bytes as they are, outside of the body.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Adds body bytes, as one chunk.
    pub(crate) fn body(&mut self, bytes: &[u8]) {
        let Some(gzip) = &mut self.gzip else {
            self.chunk(bytes);
            return;
        };
        // A Vec takes everything, so neither call can fail.
        let _ = gzip.write_all(bytes);
        let _ = gzip.flush();
        let coded = std::mem::take(gzip.get_mut());
        self.chunk(&coded);
    }

    /// Ends the body.
    pub(crate) fn end(&mut self, trailers: &[(String, String)]) {
        if let Some(Ok(coded)) = self.gzip.take().map(GzEncoder::finish) {
            self.chunk(&coded);
        }
        if self.chunked {
            self.out.extend_from_slice(b"0\r\n");
            for (name, value) in trailers {
                for part in [name, ": ", value, "\r\n"] {
                    self.out.extend_from_slice(part.as_bytes());
                }
            }
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// What is to be written now.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Forgets what was written.
    pub(crate) fn written(&mut self) {
        self.out.clear();
    }

    fn chunk(&mut self, bytes: &[u8]) {
        // An empty chunk would be the last one.
        if bytes.is_empty() {
            return;
        }
        if !self.chunked {
            self.out.extend_from_slice(bytes);
            return;
        }
        push_hex(bytes.len(), &mut self.out);
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Appends a chunk size.
fn push_hex(size: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if size < 10 {
        push_number(size as u64, out);
        return;
    }
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4);
    out.extend(
        (0..digits)
            .rev()
            .map(|digit| DIGITS[size >> (4 * digit) & 15]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_framed() {
        let mut frame = Frame::new(true, Encoding::Identity);
        frame.body(b"");
        frame.body(b"abc");
        frame.body(&[b'x'; 0x1a0]);
        frame.end(&[("t".to_owned(), "v".to_owned())]);
        let expected = format!(
            "3\r\nabc\r\n1a0\r\n{}\r\n0\r\nt: v\r\n\r\n",
            "x".repeat(0x1a0)
        );
        assert_eq!(String::from_utf8_lossy(frame.bytes()), expected);
    }
}
