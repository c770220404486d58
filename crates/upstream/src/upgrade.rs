//! What is left of HTTP after a 101: a byte stream in both directions.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::Response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Transport;
use crate::{BoxError, Source};

/// Takes the connection over from a `101` response.
///
/// The future resolves at once. It fails when the response was no upgrade, or was taken over
/// before. Dropping it closes the connection. It does not borrow the response, whose head can be
/// sent on meanwhile.
pub fn upgrade(
    response: &mut Response<Source>,
) -> impl Future<Output = Result<Upgraded, BoxError>> + Send + 'static {
    let upgraded = response.body_mut().take_upgraded();
    std::future::ready(upgraded.ok_or_else(|| NoUpgrade.into()))
}

/// An upgraded connection to a backend. Bytes that came right behind the 101 are read first.
pub struct Upgraded {
    early: Bytes,
    io: Transport,
}

impl Upgraded {
    pub(crate) fn new(io: Transport, early: Bytes) -> Self {
        Self { early, io }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let length = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..length]);
        self.early.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl std::fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upgraded")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the response is no upgrade, or was taken over before")]
struct NoUpgrade;
