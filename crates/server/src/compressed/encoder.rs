//! The encoders, set to hold little: there is one for each open response, for as long as an answer takes.
//!
//! Measured with one chat event of 212 bytes after the other, each flushed (one core, optimised): what an encoder holds
//! after 2000 of them and, behind the slash, after one of 200 KB more; how much is left of an event; and its time.
//!
//! | | holds | left | time |
//! |---|---|---|---|
//! | gzip, level 1 | 273 / 273 KiB | 16 % | 15 µs |
//! | br, quality 3, window of 16 KiB | 319 / 568 KiB | 11 % | 14 µs |
//! | zstd, level 1, window of 16 KiB, small tables | 90 / 98 KiB | 10 % | 3 µs |
//!
//! Events of one answer repeat each other, so that a small window sees all that there is to see. Brotli below quality
//! 2 writes each flushed event as it is, above 3 it holds several times as much; so does zstd above level 1.

use std::io::{self, Write};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::coding::ContentCoding;

/// The binary logarithm of how many bytes back an encoder looks.
const WINDOW: u8 = 14;
/// The same of the entries of each table in which zstd looks for them.
const ZSTD_TABLE: u32 = 12;
const ZSTD_LEVEL: i32 = 1;
const BROTLI_QUALITY: i32 = 3;
/// How much brotli is fed at once.
const BROTLI_BUFFER: usize = 4096;

/// An encoder that writes into memory.
pub(super) enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl Encoder {
    /// # Errors
    /// There is no memory for it.
    pub(super) fn new(coding: ContentCoding) -> io::Result<Self> {
        Ok(match coding {
            ContentCoding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            ContentCoding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: WINDOW.into(),
                    ..BrotliEncoderParams::default()
                };
                let writer = CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER, &params);
                Self::Brotli(Box::new(writer))
            }
            ContentCoding::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(WINDOW.into())?;
                encoder.set_parameter(CParameter::HashLog(ZSTD_TABLE))?;
                encoder.set_parameter(CParameter::ChainLog(ZSTD_TABLE))?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Gives what makes all of `bytes` readable at the other side.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        fn flushed(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
            writer.write_all(bytes)?;
            writer.flush()
        }
        let out = match self {
            Self::Gzip(encoder) => {
                flushed(encoder, bytes)?;
                encoder.get_mut()
            }
            Self::Brotli(encoder) => {
                flushed(encoder, bytes)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                flushed(encoder, bytes)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Gives what ends the stream.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        let out = match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Brotli(encoder) => encoder.into_inner(),
            Self::Zstd(encoder) => encoder.finish()?,
        };
        Ok(out.into())
    }
}
