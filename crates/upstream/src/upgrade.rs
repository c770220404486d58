//! What is left of HTTP after a 101: a byte stream in both directions.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{BoxError, Source};

/// Takes the connection over from a `101` response.
///
/// The future resolves once the connection has left HTTP. It fails when the response was no
/// upgrade, or its connection broke in that moment. Dropping it closes the connection. It does not
/// borrow the response, whose head can be sent on meanwhile.
pub fn upgrade(
    response: &mut Response<Source>,
) -> impl Future<Output = Result<Upgraded, BoxError>> + Send + 'static {
    let upgrade = hyper::upgrade::on(response);
    async move {
        Ok(Upgraded {
            io: TokioIo::new(upgrade.await?),
        })
    }
}

/// An upgraded connection to a backend. Bytes that came right behind the 101 are read first.
pub struct Upgraded {
    io: TokioIo<hyper::upgrade::Upgraded>,
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
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
