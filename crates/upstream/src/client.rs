//! Sending a request and getting a response head.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body::Body;

use crate::connect::{Connector, Spoken, Wanted};
use crate::connection::{Answer, Connection, Failure};
use crate::error::Sent;
use crate::head::Asked;
use crate::pool::Pool;
use crate::request_body::{Failed, RequestBody};
use crate::source::{Home, Source};
use crate::{Backend, BoxError, ConfigError, ErrorKind, UpstreamConfig, UpstreamError};

/// Sends requests to backends over pooled connections. A clone shares everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Connector,
    pool: Arc<Pool>,
    first_byte_timeout: Option<Duration>,
    between_bytes_timeout: Option<Duration>,
    max_response_head: usize,
}

impl Client {
    /// A client as configured. Reads the system's trust anchors, so it may block for some
    /// milliseconds; make it at start.
    pub fn new(config: UpstreamConfig) -> Result<Self, ConfigError> {
        if config.max_response_head < SMALLEST_HEAD_LIMIT {
            return Err(ConfigError::ResponseHead);
        }
        Ok(Self {
            inner: Arc::new(Inner {
                connector: Connector::new(&config)?,
                pool: Pool::new(config.pool_idle_timeout, config.pool_max_idle),
                first_byte_timeout: config.first_byte_timeout,
                between_bytes_timeout: config.between_bytes_timeout,
                max_response_head: config.max_response_head,
            }),
        })
    }

    /// Sends `request` to `backend` and waits for the response head.
    ///
    /// Of the request's URI only path and query are used, behind the backend's prefix; `Host` is
    /// set to the backend's. Its other headers go as they are, so hop-by-hop headers must be gone
    /// already (except `Connection: upgrade` with `Upgrade`, for an upgrade: an `Upgrade` header is
    /// what makes a `101` acceptable). Redirects are
    /// answers like any other, and so are error statuses. Interim responses are dropped.
    ///
    /// # Retries
    ///
    /// A request is repeated here in one case only: it was given to a connection from the pool,
    /// and that connection turned out to be closed before the first byte was written. Keep-alive
    /// makes this happen in ordinary operation, when a backend closes a connection in the very
    /// moment of its next use. The backend cannot have seen anything, and the request body has not
    /// been touched. Once a byte may have left, the error goes to the caller.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection, or resets the stream. The backend may have seen
    /// the request.
    pub async fn send<B>(
        &self,
        backend: &Backend,
        request: Request<B>,
    ) -> Result<Response<Source>, UpstreamError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let (body, body_failed) = RequestBody::new(body);
        let request = Request::from_parts(parts, body);
        // Boxed, so that a task which reads the response does not carry the room for asking on.
        Box::pin(self.exchange(backend, request, body_failed)).await
    }

    async fn exchange(
        &self,
        backend: &Backend,
        mut request: Request<RequestBody>,
        body_failed: Failed,
    ) -> Result<Response<Source>, UpstreamError> {
        let asked = Asked {
            method: request.method().clone(),
            upgrade: request.headers().contains_key(UPGRADE),
        };
        let failed = |kind, sent, source: BoxError| UpstreamError::new(backend, kind, sent, source);
        let target = backend
            .url()
            .target(request.uri())
            .map_err(|error| failed(ErrorKind::Send, Sent::Nothing, error.into()))?;
        loop {
            let (connection, reused) = self.connection(backend, &asked).await?;
            let (mut parts, body) = request.into_parts();
            address(&mut parts, backend, &target, connection.spoken());
            let exchange = connection.exchange(Request::from_parts(parts, body), &asked);
            let failure = match self.within_first_byte(exchange).await {
                Some(Ok(response)) => {
                    return Ok(response.map(|answer| self.source(backend, answer)));
                }
                Some(Err(failure)) => failure,
                None => {
                    let error = FirstByteTimeout.into();
                    return Err(failed(ErrorKind::FirstByteTimeout, Sent::Maybe, error));
                }
            };
            request = match failure {
                Failure::Unsent(request) if reused => *request,
                Failure::Unsent(_) => {
                    return Err(failed(ErrorKind::Send, Sent::Nothing, NeverReady.into()));
                }
                Failure::Sent(_, sent, error) if body_failed.get() => {
                    return Err(failed(ErrorKind::RequestBody, sent, error));
                }
                Failure::Sent(kind, sent, error) => return Err(failed(kind, sent, error)),
            };
        }
    }

    /// A connection, and whether it was used before.
    async fn connection(
        &self,
        backend: &Backend,
        asked: &Asked,
    ) -> Result<(Connection, bool), UpstreamError> {
        let inner = &*self.inner;
        let wanted = inner.connector.wanted(asked.upgrade);
        if let Some(connection) = inner.pool.checkout(backend.origin(), wanted) {
            return Ok((connection, true));
        }
        // Boxed: connecting is rare, and its future large.
        let connection = Box::pin(self.connect(backend, wanted)).await?;
        if let Connection::Http2(stream) = &connection {
            inner.pool.offer(backend.origin(), stream.shared());
        }
        Ok((connection, false))
    }

    async fn connect(
        &self,
        backend: &Backend,
        wanted: Wanted,
    ) -> Result<Connection, UpstreamError> {
        let failed = |kind, source| UpstreamError::new(backend, kind, Sent::Nothing, source);
        let connected = self.inner.connector.connect(backend, wanted).await;
        let (transport, spoken) = connected.map_err(|error| failed(error.kind, error.source))?;
        Connection::open(
            transport,
            spoken,
            self.inner.max_response_head,
            backend.shared_name(),
        )
        .await
        .map_err(|error| failed(ErrorKind::ConnectFailed, error.into()))
    }

    async fn within_first_byte<F: Future>(&self, exchange: F) -> Option<F::Output> {
        match self.inner.first_byte_timeout {
            None => Some(exchange.await),
            Some(limit) => tokio::time::timeout(limit, exchange).await.ok(),
        }
    }

    fn source(&self, backend: &Backend, answer: Answer) -> Source {
        let home = Home {
            pool: Arc::clone(&self.inner.pool),
            origin: Arc::clone(backend.origin()),
        };
        Source::new(answer, home, self.inner.between_bytes_timeout)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// Writes the target into a request head, in the form that the connection's HTTP wants. May be
/// called again for another connection.
fn address(parts: &mut Parts, backend: &Backend, target: &PathAndQuery, spoken: Spoken) {
    let url = backend.url();
    match spoken {
        Spoken::Http1 => {
            parts.version = Version::HTTP_11;
            parts.uri = Uri::from(target.clone());
            let host = HeaderValue::from_str(url.authority().as_str())
                .expect("an authority is visible ASCII");
            parts.headers.insert(HOST, host);
        }
        Spoken::Http2 => {
            parts.version = Version::HTTP_2;
            parts.uri = url.absolute(target.clone());
            parts.headers.remove(HOST);
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no response head within the first byte timeout")]
struct FirstByteTimeout;

#[derive(Debug, thiserror::Error)]
#[error("the new connection was closed before the request could be written")]
struct NeverReady;

/// No backend should be refused for a few cookies.
const SMALLEST_HEAD_LIMIT: usize = 8 * 1024;
