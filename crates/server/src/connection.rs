//! One client connection: HTTP/1.1 or HTTP/2, until it ends or the server asks it to.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use prometheus_client::metrics::counter::Counter;
use socket2::SockRef;
use streamweld_journal::StreamId;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use crate::app::{Peer, Shown};
use crate::body::Body;
use crate::config::EdgeConfig;
use crate::io::ClientIo;
use crate::listen::Stream;
use crate::pace::Pace;
use crate::panics::Counting;
use crate::secure::Below;

/// Which step of a shutdown has been reached; connections follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// Finish what is under way, take nothing more.
    Closing,
}

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Http {
    builder: Builder<Counting>,
    write_timeout: Duration,
    header_timeout: Duration,
}

/// The most header fields in a request.
const MAX_FIELDS: usize = 100;
/// Streams that one HTTP/2 client may have open at once.
const MAX_STREAMS: u32 = 1_000;

impl Http {
    /// Panics of tasks beside those of the connections themselves are counted in `panicked`.
    pub(crate) fn new(edge: &EdgeConfig, panicked: Counter) -> Self {
        let mut builder = Builder::new(Counting(panicked));
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(edge.header_timeout)
            .max_headers(MAX_FIELDS)
            // Also the most that is buffered for a connection that is slow to take it.
            .max_buf_size(edge.max_head);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(edge.max_head).unwrap_or(u32::MAX));
        Self {
            builder,
            write_timeout: edge.write_timeout,
            header_timeout: edge.header_timeout,
        }
    }

    /// How long a client may take nothing.
    pub(crate) fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    /// Serves one connection in the clear to its end.
    pub(crate) async fn serve<S, F>(
        &self,
        stream: impl Stream,
        addr: SocketAddr,
        phase: watch::Receiver<Phase>,
        answer: S,
    ) where
        S: Fn(Request<Incoming>, Peer) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let pace = Some(Pace::new(self.write_timeout));
        let io = ClientIo::new(stream, pace, self.header_timeout);
        self.serve_on(io, addr, Shown::Nothing, phase, answer).await;
    }

    /// The same behind TLS.
    pub(crate) async fn serve_secured<T, S, F>(
        &self,
        stream: TlsStream<Below<T>>,
        addr: SocketAddr,
        phase: watch::Receiver<Phase>,
        answer: S,
    ) where
        T: Stream,
        S: Fn(Request<Incoming>, Peer) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        // One that is not of the authority has not come so far.
        let shown = match stream.get_ref().1.peer_certificates() {
            Some(_) => Shown::Certificate,
            None => Shown::Nothing,
        };
        let io = ClientIo::new(stream, None, self.header_timeout);
        self.serve_on(io, addr, shown, phase, answer).await;
    }

    async fn serve_on<S, F>(
        &self,
        io: ClientIo<impl Stream>,
        addr: SocketAddr,
        shown: Shown,
        mut phase: watch::Receiver<Phase>,
        answer: S,
    ) where
        S: Fn(Request<Incoming>, Peer) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        if let Some(socket) = io.socket() {
            if let Err(error) = SockRef::from(&socket).set_tcp_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY is not to be had");
            }
        }
        let breaker = io.breaker();
        let service = service_fn(move |request: Request<Incoming>| {
            let breaker = if request.version() == Version::HTTP_10 {
                breaker.clone()
            } else {
                breaker.inert()
            };
            // Boxed for each request: a connection reserves room for this future for as long as it lives, and it is large
            // but soon over, while the response may be read for minutes.
            let peer = Peer {
                addr,
                shown,
                request_id: StreamId::generate(SystemTime::now()).to_string().into(),
                breaker,
            };
            let response = Box::pin(answer(request, peer));
            async move { Ok::<_, std::convert::Infallible>(response.await) }
        });
        let mut connection = pin!(
            self.builder
                .serve_connection_with_upgrades(TokioIo::new(io), service)
        );
        let mut closing = pin!(closing(phase.clone()));
        let mut follow = Follow::New;
        let ended = poll_fn(|cx| {
            let ended = connection.as_mut().poll(cx);
            // The connection is polled for every write. What it follows is looked at once, to be woken by it, and then
            // only when it has moved.
            let look = match follow {
                Follow::New => true,
                Follow::Following => phase.has_changed().unwrap_or(true),
                Follow::Told => false,
            };
            if ended.is_ready() || !look {
                return ended;
            }
            phase.mark_unchanged();
            follow = Follow::Following;
            if closing.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            follow = Follow::Told;
            connection.as_mut().graceful_shutdown();
            connection.as_mut().poll(cx)
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(%error, "a client connection ended early");
        }
    }
}

/// How far a connection has followed the shutdown.
enum Follow {
    New,
    Following,
    Told,
}

async fn closing(mut phase: watch::Receiver<Phase>) {
    // A sender that is gone closes as well.
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}
