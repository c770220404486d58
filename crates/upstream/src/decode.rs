//! Undoing a content coding, with a bound on what comes out.
//!
//! Event streams are asked for without a coding; a backend may send one all the same. Whatever a
//! push makes decodable comes out with that push, so events are not held back beyond what the
//! encoder holds back. The bound is on the whole stream: a few bytes that expand to gigabytes end
//! with [`DecodeError::Bomb`] before the memory is taken, while a long stream of ordinary text
//! never meets it.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// A coding that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// None at all.
    Identity,
    /// `gzip`, `x-gzip`.
    Gzip,
    /// `deflate`: zlib as the standard says, or raw deflate as some send.
    Deflate,
}

impl Coding {
    /// The coding a `Content-Encoding` value names; an absent header is [`Identity`](Self::Identity).
    /// More than one coding, or one not known here, is refused.
    pub fn parse(value: &[u8]) -> Result<Self, DecodeError> {
        let value = value.trim_ascii();
        let is = |name: &str| value.eq_ignore_ascii_case(name.as_bytes());
        if is("") || is("identity") {
            Ok(Self::Identity)
        } else if is("gzip") || is("x-gzip") {
            Ok(Self::Gzip)
        } else if is("deflate") {
            Ok(Self::Deflate)
        } else {
            Err(DecodeError::Unsupported)
        }
    }
}

/// Why a body could not be decoded. Every later call gives the same error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A coding that is not known here.
    #[error("unsupported content coding")]
    Unsupported,
    /// It expands beyond all measure.
    #[error("the encoded body expands too far")]
    Bomb,
    /// Not what its coding says.
    #[error("the encoded body is corrupt")]
    Corrupt,
    /// It stopped in the middle, or the checksum at its end is wrong.
    #[error("the encoded body is incomplete")]
    Incomplete,
}

/// Decodes a body piece by piece.
pub struct Decoder {
    inner: Inner,
    failed: Option<DecodeError>,
}

enum Inner {
    Identity,
    Gzip(Box<MultiGzDecoder<Output>>),
    /// The first byte tells zlib from raw deflate.
    Undecided,
    Zlib(Box<ZlibDecoder<Output>>),
    Raw(Box<DeflateDecoder<Output>>),
}

impl Decoder {
    /// A decoder for `coding`.
    pub fn new(coding: Coding) -> Self {
        let inner = match coding {
            Coding::Identity => Inner::Identity,
            Coding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(Output::default()))),
            Coding::Deflate => Inner::Undecided,
        };
        Self {
            inner,
            failed: None,
        }
    }

    /// Takes the next encoded bytes; returns what they decode to, which may be nothing yet.
    pub fn push(&mut self, input: Bytes) -> Result<Bytes, DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if input.is_empty() {
            return Ok(input);
        }
        if let Inner::Undecided = self.inner {
            // RFC 1950: the low four bits of the first byte are 8 in every zlib stream. In a raw
            // one they would start a stored block with padding that encoders leave zero.
            self.inner = if input[0] & 0x0f == 8 {
                Inner::Zlib(Box::new(ZlibDecoder::new(Output::default())))
            } else {
                Inner::Raw(Box::new(DeflateDecoder::new(Output::default())))
            };
        }
        let output = match &mut self.inner {
            Inner::Identity | Inner::Undecided => return Ok(input),
            Inner::Gzip(decoder) => {
                decoder.get_mut().allow(input.len());
                drive(decoder.as_mut(), &input).map(|()| decoder.get_mut().take())
            }
            Inner::Zlib(decoder) => {
                decoder.get_mut().allow(input.len());
                drive(decoder.as_mut(), &input).map(|()| decoder.get_mut().take())
            }
            Inner::Raw(decoder) => {
                decoder.get_mut().allow(input.len());
                drive(decoder.as_mut(), &input).map(|()| decoder.get_mut().take())
            }
        };
        output.inspect_err(|error| self.failed = Some(*error))
    }

    /// Says whether the encoded body was complete when its last byte had been pushed.
    pub fn finish(mut self) -> Result<(), DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let finished = match &mut self.inner {
            Inner::Identity => Ok(()),
            Inner::Undecided => return Err(DecodeError::Incomplete),
            Inner::Gzip(decoder) => decoder.try_finish(),
            Inner::Zlib(decoder) => decoder.try_finish(),
            Inner::Raw(decoder) => decoder.try_finish(),
        };
        finished.map_err(|_| DecodeError::Incomplete)
    }
}

fn drive(decoder: &mut impl Write, input: &[u8]) -> Result<(), DecodeError> {
    let result = decoder.write_all(input).and_then(|()| decoder.flush());
    result.map_err(|error| match error.get_ref() {
        Some(inner) if inner.is::<OverBound>() => DecodeError::Bomb,
        _ => DecodeError::Corrupt,
    })
}

/// Collects decoded bytes up to the bound.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    read: u64,
    written: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("more output than the bound")]
struct OverBound;

impl Output {
    fn allow(&mut self, input: usize) {
        self.read += input as u64;
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.written + bytes.len() as u64;
        if written > FREE_OUTPUT.max(MAX_EXPANSION.saturating_mul(self.read)) {
            return Err(io::Error::other(OverBound));
        }
        self.written = written;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Output that is never held against a stream. Repetitive JSON at its start may well expand a lot.
const FREE_OUTPUT: u64 = 1024 * 1024;

/// The most a stream may expand beyond that. Deflate reaches about 1030; token streams, which say
/// the same JSON keys over and over, about 30.
const MAX_EXPANSION: u64 = 100;
