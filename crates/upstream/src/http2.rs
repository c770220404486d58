//! An HTTP/2 connection, and the task that drives it.
//!
//! hyper splits a connection into a handle that takes requests and a future that does the I/O. The
//! future runs in a task of its own, on the runtime that made the connection; the handle owns that
//! task, and dropping the last handle aborts it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::Instant;

use crate::ErrorKind;
use crate::connection::{Answer, Failure};
use crate::error::{Sent, classify};
use crate::head::{self, Asked};
use crate::request_body::RequestBody;
use crate::task::Task;
use crate::transport::Transport;

mod body;
pub(crate) use body::Body;

/// Streams carried by one connection at once, unless the peer allows fewer. Beyond it hyper would
/// queue a request without telling; behind streams that run for minutes it would wait as long. So
/// another connection is made instead.
const MAX_STREAMS: usize = 100;

/// What one stream may have in flight, unread. Enough for any token stream and for some 10 MB/s at
/// 10 ms.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Room for every stream to be full at once: with less, a few readers that do not read would stop
/// all others on the connection.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;

/// A share in a connection: one stream.
pub(crate) struct Http2(Arc<SharedHttp2>);

/// A connection that carries many streams.
pub(crate) struct SharedHttp2 {
    sender: http2::SendRequest<RequestBody>,
    /// Streams the peer allows.
    allowed: Arc<AtomicUsize>,
    load: Mutex<Load>,
    _task: Task,
}

struct Load {
    streams: usize,
    /// When the last stream ended.
    idle_since: Instant,
    /// It took no request any more, though it does not call itself closed yet.
    exhausted: bool,
}

impl Http2 {
    /// Speaks HTTP/2 over `transport` and starts the task that does so. `max_head` bounds a
    /// response head; `backend` is for the log.
    pub(crate) async fn open(
        transport: Transport,
        max_head: usize,
        backend: Arc<str>,
    ) -> hyper::Result<Self> {
        let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(transport))
            .await?;
        let allowed = Arc::new(AtomicUsize::new(MAX_STREAMS));
        let noted = Arc::clone(&allowed);
        // The peer may change its limit at any time, and only this future knows it.
        let connection = poll_fn(move |cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            noted.store(connection.current_max_send_streams(), Ordering::Relaxed);
            polled
        });
        Ok(Self(Arc::new(SharedHttp2 {
            sender,
            allowed,
            load: Mutex::new(Load {
                streams: 1,
                idle_since: Instant::now(),
                exhausted: false,
            }),
            _task: Task::spawn(drive(connection, backend)),
        })))
    }

    /// See [`Connection::exchange`](crate::connection::Connection::exchange).
    pub(crate) async fn exchange(
        self,
        request: Request<RequestBody>,
        asked: &Asked,
    ) -> Result<Response<Answer>, Failure> {
        let result = self.0.sender.clone().try_send_request(request).await;
        let response = result.map_err(|mut error| match error.take_message() {
            Some(request) => {
                // So that it is not tried again.
                self.0.load().exhausted = true;
                Failure::Unsent(Box::new(request))
            }
            None => {
                let error = error.into_error();
                let (kind, sent) = classify(&error);
                Failure::Sent(kind, sent, error.into())
            }
        })?;
        let (mut head, body) = response.into_parts();
        head::check(&mut head, asked)
            .map_err(|error| Failure::Sent(ErrorKind::BadResponse, Sent::Maybe, error.into()))?;
        Ok(Response::from_parts(
            head,
            Answer::Http2(Body::new(body, self)),
        ))
    }

    pub(crate) fn shared(&self) -> &Arc<SharedHttp2> {
        &self.0
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        let mut load = self.0.load();
        load.streams -= 1;
        load.idle_since = Instant::now();
    }
}

impl SharedHttp2 {
    /// A stream on this connection, if it has room for one more.
    pub(crate) fn share(self: &Arc<Self>) -> Option<Http2> {
        if self.is_closed() || !self.has_room() {
            return None;
        }
        self.load().streams += 1;
        Some(Http2(Arc::clone(self)))
    }

    /// Whether one more stream would not have to wait.
    pub(crate) fn has_room(&self) -> bool {
        self.load().streams < self.allowed.load(Ordering::Relaxed).min(MAX_STREAMS)
    }

    /// Whether it can never take another request. Its streams may still run.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.load().exhausted
    }

    /// Since when nothing uses it; none while something does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let load = self.load();
        (load.streams == 0).then_some(load.idle_since)
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a connection to its end. The request that met a failure reports it; here it is only worth
/// a line for debugging.
async fn drive(connection: impl Future<Output = hyper::Result<()>>, backend: Arc<str>) {
    if let Err(error) = connection.await {
        let cause = std::error::Error::source(&error);
        tracing::debug!(%backend, %error, ?cause, "connection failed");
    }
}
