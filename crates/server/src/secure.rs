//! TLS on a listener: the handshake, and what is told to a client that speaks in the clear.
//!
//! What HTTP sees lies above it, so its limits hold as they do in the clear. Writes are watched below it: a record is
//! taken at once and sent later, and only the socket shows whether a client takes anything.

use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use streamweld_journal::StreamId;
use streamweld_tls::Listener as Tls;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::body::Body;
use crate::error::{Error, ErrorCode};
use crate::listen::Stream;
use crate::pace::Pace;

/// A client's connection below TLS.
pub(crate) struct Below<S> {
    stream: S,
    /// What was read to see whether TLS is spoken at all.
    first: Option<u8>,
    pace: Pace,
}

/// How long a client may take until its handshake is done. One takes two round trips.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The type of the record that a handshake begins with (RFC 8446, 5.1).
const RECORD: u8 = 22;

/// Lets a client in. `None`: it is not let in, and its connection is closed.
pub(crate) async fn handshake<S: Stream>(
    mut stream: S,
    tls: Tls,
    write_timeout: Duration,
) -> Option<TlsStream<Below<S>>> {
    let let_in = async move {
        let first = stream.read_u8().await?;
        if first != RECORD {
            // A method, most likely.
            if first.is_ascii_uppercase() {
                tell(&mut stream).await?;
            }
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not TLS"));
        }
        let below = Below {
            stream,
            first: Some(first),
            pace: Pace::new(write_timeout),
        };
        TlsAcceptor::from(tls.config()).accept(below).await
    };
    match timeout(HANDSHAKE, let_in).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client is not let in by TLS");
            None
        }
        Err(_) => {
            tracing::debug!("a client takes too long for its handshake");
            None
        }
    }
}

/// Tells a client that this is no place to speak in the clear, in the words of HTTP/1.1.
async fn tell<S: Stream>(stream: &mut S) -> io::Result<()> {
    let message = "this listener speaks TLS only; ask it by https";
    let id = StreamId::generate(SystemTime::now()).to_string();
    let response = Error::new(ErrorCode::TlsRequired, message).into_response(&id);
    let status = response.status();
    let Body::Full(Some(body)) = response.into_body() else {
        return Ok(());
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await?;
    // What is closed while there is something to read is reset, and the answer with it.
    let (mut rest, mut nowhere) = (stream.take(REST), tokio::io::sink());
    let _ = timeout(REST_TIME, tokio::io::copy(&mut rest, &mut nowhere)).await;
    Ok(())
}

const REST: u64 = 64 << 10;
const REST_TIME: Duration = Duration::from_secs(1);

impl<S: Stream> Stream for TlsStream<Below<S>> {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.get_ref().0.stream.socket()
    }
}

impl<S: Stream> AsyncRead for Below<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() > 0 {
            if let Some(first) = self.first.take() {
                buf.put_slice(&[first]);
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: Stream> AsyncWrite for Below<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, pace, .. } = &mut *self;
        let written = Pin::new(stream).poll_write(cx, buf);
        pace.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, pace, .. } = &mut *self;
        let written = Pin::new(stream).poll_write_vectored(cx, bufs);
        pace.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
