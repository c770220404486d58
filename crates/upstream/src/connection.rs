//! A connection as one request uses it, whatever HTTP it speaks.

use std::sync::Arc;

use http::{Request, Response};

use crate::connect::Spoken;
use crate::error::Sent;
use crate::head::Asked;
use crate::http2::Http2;
use crate::request_body::RequestBody;
use crate::transport::Transport;
use crate::upgrade::Upgraded;
use crate::{BoxError, ErrorKind, h1, http2};

/// A connection that takes one request.
pub(crate) enum Connection {
    Http1(h1::Connection),
    Http2(Http2),
}

/// What stands behind a response head.
pub(crate) enum Answer {
    Http1(h1::Body),
    Http2(http2::Body),
    Upgraded(Box<Upgraded>),
}

/// Why there is no response head.
pub(crate) enum Failure {
    /// Nothing was written, and no byte of the body is lost. Here is the request again.
    Unsent(Box<Request<RequestBody>>),
    /// Some of it may have been written.
    Sent(ErrorKind, Sent, BoxError),
}

impl Connection {
    /// Speaks HTTP over `transport`. `max_head` bounds a response head; `backend` is for the log.
    pub(crate) async fn open(
        transport: Transport,
        spoken: Spoken,
        max_head: usize,
        backend: Arc<str>,
    ) -> hyper::Result<Self> {
        Ok(match spoken {
            Spoken::Http1 => Self::Http1(h1::Connection::new(transport, max_head)),
            Spoken::Http2 => Self::Http2(Http2::open(transport, max_head, backend).await?),
        })
    }

    pub(crate) fn spoken(&self) -> Spoken {
        match self {
            Self::Http1(_) => Spoken::Http1,
            Self::Http2(_) => Spoken::Http2,
        }
    }

    /// Sends a request and reads a response head that can be trusted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection, or resets the stream.
    pub(crate) async fn exchange(
        self,
        request: Request<RequestBody>,
        asked: &Asked,
    ) -> Result<Response<Answer>, Failure> {
        match self {
            Self::Http1(connection) => connection.exchange(request, asked).await,
            Self::Http2(stream) => stream.exchange(request, asked).await,
        }
    }
}
