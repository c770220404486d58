//! Reading a response in a content coding as it comes.

use std::io::Write;

use brotli::DecompressorWriter;
use flate2::write::GzDecoder;
use streamweld_server::config::ContentCoding;
use zstd::stream::write::Decoder as ZstdDecoder;

use crate::client::{Body, End};
use crate::sse::blocks;

/// Undoes a coding, piece by piece.
pub enum Decoding {
    /// `gzip`.
    Gzip(Box<GzDecoder<Vec<u8>>>),
    /// `br`.
    Brotli(Box<DecompressorWriter<Vec<u8>>>),
    /// `zstd`.
    Zstd(Box<Zstd>),
}

/// Its decoder, and all that it was given: whether a frame has its end is only told by reading it whole.
pub struct Zstd {
    decoder: ZstdDecoder<'static, Vec<u8>>,
    given: Vec<u8>,
}

impl Decoding {
    /// One that has read nothing.
    ///
    /// # Panics
    /// When there is no memory for it.
    #[must_use]
    pub fn new(coding: ContentCoding) -> Self {
        match coding {
            ContentCoding::Gzip => Self::Gzip(Box::new(GzDecoder::new(Vec::new()))),
            ContentCoding::Brotli => {
                Self::Brotli(Box::new(DecompressorWriter::new(Vec::new(), 4096)))
            }
            ContentCoding::Zstd => Self::Zstd(Box::new(Zstd {
                decoder: ZstdDecoder::new(Vec::new()).expect("a decoder"),
                given: Vec::new(),
            })),
        }
    }

    /// Reads a piece.
    ///
    /// # Panics
    /// When it is not in this coding.
    #[track_caller]
    pub fn push(&mut self, piece: &[u8]) {
        let pushed = match self {
            Self::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Self::Brotli(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Self::Zstd(zstd) => {
                zstd.given.extend_from_slice(piece);
                let decoder = &mut zstd.decoder;
                decoder.write_all(piece).and_then(|()| decoder.flush())
            }
        };
        pushed.expect("it is in this coding");
    }

    /// All that can be read of what came.
    #[must_use]
    pub fn read(&self) -> &[u8] {
        match self {
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Brotli(decoder) => decoder.get_ref(),
            Self::Zstd(zstd) => zstd.decoder.get_ref(),
        }
    }

    /// Whether what came has the end that the coding demands, with nothing behind it.
    #[must_use]
    pub fn is_whole(self) -> bool {
        match self {
            Self::Gzip(mut decoder) => decoder.try_finish().is_ok(),
            Self::Brotli(mut decoder) => decoder.close().is_ok(),
            Self::Zstd(zstd) => zstd::stream::decode_all(&zstd.given[..]).is_ok(),
        }
    }

    /// Reads `body` until so many blocks can be read.
    ///
    /// # Panics
    /// When it ends first.
    pub async fn blocks(&mut self, body: &mut Body, count: usize) {
        while blocks(self.read()).len() < count {
            let piece = body.chunk().await.expect("the body goes on");
            self.push(&piece);
        }
    }

    /// Reads `body` to its end: what it says, how it ended, and whether it is whole by its coding.
    pub async fn all(mut self, body: &mut Body) -> (Vec<u8>, End, bool) {
        while let Some(piece) = body.chunk().await {
            self.push(&piece);
        }
        let read = self.read().to_vec();
        (read, body.end().expect("ended"), self.is_whole())
    }
}
