//! One open connection, and the task that drives it.
//!
//! hyper splits a connection into a handle that takes requests and a future that does the I/O. The
//! future runs in a task of its own, on the runtime that made the connection; the handle owns that
//! task, and dropping the handle aborts it. So an HTTP/1.1 connection that nobody wants any more is
//! closed at once and in every state. hyper alone closes it too when a response is dropped, except
//! when all that is left of the body has arrived: then it reads on and keeps the connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::connect::Spoken;
use crate::request_body::RequestBody;
use crate::transport::Transport;

/// Streams carried by one HTTP/2 connection at once, unless the peer allows fewer. Beyond it hyper
/// would queue a request without telling; behind streams that run for minutes it would wait as
/// long. So another connection is made instead.
const MAX_STREAMS: usize = 100;

/// What one HTTP/2 stream may have in flight, unread. Enough for any token stream and for some
/// 10 MB/s at 10 ms.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Room for every stream to be full at once: with less, a few readers that do not read would stop
/// all others on the connection.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;

/// A connection as one request uses it.
pub(crate) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// An HTTP/1.1 connection, used by one request at a time.
pub(crate) struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    task: Task,
}

/// A share in an HTTP/2 connection: one stream.
pub(crate) struct Http2(Arc<SharedHttp2>);

/// An HTTP/2 connection that carries many streams.
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

/// A request that got no response head.
pub(crate) enum Failure {
    /// Nothing was written, and the body not touched. Here is the request again.
    Unsent(Box<Request<RequestBody>>),
    /// Some of it may have been written.
    Sent(hyper::Error),
}

impl Connection {
    /// Speaks HTTP over `transport` and starts the task that does so. `max_head` bounds a
    /// response head; `backend` is for the log.
    pub(crate) async fn open(
        transport: Transport,
        spoken: Spoken,
        max_head: usize,
        backend: Arc<str>,
    ) -> hyper::Result<Self> {
        let io = TokioIo::new(transport);
        match spoken {
            Spoken::Http1 => {
                let (sender, connection) = http1::Builder::new()
                    .max_header_size(max_head)
                    .max_buf_size(max_head)
                    .handshake(io)
                    .await?;
                let task = Task::spawn(drive(connection.with_upgrades(), backend));
                Ok(Self::Http1(Http1 { sender, task }))
            }
            Spoken::Http2 => {
                let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
                    .handshake(io)
                    .await?;
                let allowed = Arc::new(AtomicUsize::new(MAX_STREAMS));
                let noted = Arc::clone(&allowed);
                // The peer may change its limit at any time, and only this future knows it.
                let connection = poll_fn(move |cx| {
                    let polled = Pin::new(&mut connection).poll(cx);
                    noted.store(connection.current_max_send_streams(), Ordering::Relaxed);
                    polled
                });
                let task = Task::spawn(drive(connection, backend));
                Ok(Self::Http2(Http2(Arc::new(SharedHttp2 {
                    sender,
                    allowed,
                    load: Mutex::new(Load {
                        streams: 1,
                        idle_since: Instant::now(),
                        exhausted: false,
                    }),
                    _task: task,
                }))))
            }
        }
    }

    pub(crate) async fn exchange(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Failure> {
        let result = match self {
            Self::Http1(connection) => connection.sender.try_send_request(request).await,
            Self::Http2(Http2(shared)) => shared.sender.clone().try_send_request(request).await,
        };
        result.map_err(|mut error| match error.take_message() {
            Some(request) => Failure::Unsent(Box::new(request)),
            None => Failure::Sent(error.into_error()),
        })
    }

    pub(crate) fn spoken(&self) -> Spoken {
        match self {
            Self::Http1(_) => Spoken::Http1,
            Self::Http2(_) => Spoken::Http2,
        }
    }

    /// Takes note that it took no request any more, so that it is not tried again.
    pub(crate) fn exhausted(&self) {
        if let Self::Http2(Http2(shared)) = self {
            shared.load().exhausted = true;
        }
    }

    /// Lets the connection live on by itself: it was upgraded, and its I/O has another owner.
    pub(crate) fn detach(self) {
        if let Self::Http1(connection) = self {
            connection.task.detach();
        }
    }
}

impl Http1 {
    /// Whether it can take a request now.
    pub(crate) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Whether it can never take one again.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Http2 {
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

/// A task that ends when its owner goes.
pub(crate) struct Task(Option<AbortHandle>);

impl Task {
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(tokio::spawn(future).abort_handle()))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(AbortHandle::is_finished)
    }

    fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
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
