//! Reading a request body: digest of everything, the bytes up to a bound.

use bytes::{Buf, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use crate::{
    head::{BadRequest, BodyFraming},
    io::{Gone, Io},
};

/// A body as far as it is kept.
#[derive(Debug)]
pub(crate) struct Body {
    kept: BytesMut,
    bound: usize,
    len: u64,
    digest: Sha256,
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client left")]
    Gone(Gone),
    #[error(transparent)]
    Bad(#[from] BadRequest),
}

impl From<Gone> for BodyError {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

impl Body {
    /// An empty body that will keep at most `bound` bytes.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            kept: BytesMut::new(),
            bound,
            len: 0,
            digest: Sha256::new(),
        }
    }

    /// Reads a body from the connection.
    pub(crate) async fn read(
        mut self,
        io: &mut Io,
        framing: BodyFraming,
    ) -> Result<Self, BodyError> {
        match framing {
            BodyFraming::Length(length) => self.take(io, length).await?,
            BodyFraming::Chunked => self.chunks(io).await?,
        }
        Ok(self)
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.digest.update(bytes);
        let room = self.bound - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The kept bytes, the size of the whole, its SHA-256 in hex.
    pub(crate) fn finish(self) -> (Bytes, u64, String) {
        let digest = self.digest.finalize();
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        (self.kept.freeze(), self.len, hex)
    }

    async fn take(&mut self, io: &mut Io, length: u64) -> Result<(), Gone> {
        let mut left = length;
        while left > 0 {
            if io.input.is_empty() {
                io.fill().await?;
            }
            let size = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(io.input.len());
            self.push(&io.input[..size]);
            io.input.advance(size);
            left -= size as u64;
        }
        Ok(())
    }

    async fn chunks(&mut self, io: &mut Io) -> Result<(), BodyError> {
        loop {
            let (line, size) = loop {
                match httparse::parse_chunk_size(&io.input).map_err(|_| BadRequest)? {
                    httparse::Status::Complete(found) => break found,
                    httparse::Status::Partial => io.fill().await?,
                }
            };
            io.input.advance(line);
            if size == 0 {
                return trailers(io).await;
            }
            self.take(io, size).await?;
            if !take_line(io).await?.is_empty() {
                return Err(BadRequest.into());
            }
        }
    }
}

async fn trailers(io: &mut Io) -> Result<(), BodyError> {
    while !take_line(io).await?.is_empty() {}
    Ok(())
}

async fn take_line(io: &mut Io) -> Result<BytesMut, BodyError> {
    loop {
        if let Some(at) = io.input.windows(2).position(|pair| pair == b"\r\n") {
            let line = io.input.split_to(at);
            io.input.advance(2);
            return Ok(line);
        }
        io.fill().await?;
    }
}
