//! Where other replicas ask.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use streamweld_journal::{Access, StreamId, Window};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::counters::{Counters, Failure};
use crate::identity::Current;
use crate::seldom::Seldom;
use crate::telling::Telling;
use crate::wire;

/// The generations that this replica writes.
pub trait Generations: Send + Sync + 'static {
    /// One of them, while it can be read under ids here.
    fn owned(&self, id: StreamId) -> Option<Owned>;
}

/// A generation that is written here.
pub struct Owned {
    /// What its readers are shown.
    pub window: Arc<Window>,
    /// What a caller must match.
    pub access: Access,
    /// Held for as long as somebody is told of it: it has a reader.
    pub hold: Box<dyn Any + Send>,
}

impl fmt::Debug for Owned {
    /// Leaves the digest out: it is made from a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

/// A listener that has its port, and answers once it is run.
pub struct Listener {
    tcp: TcpListener,
    identity: Arc<Current>,
    counters: Counters,
    refused: Arc<Seldom>,
}

impl Listener {
    pub(crate) fn new(tcp: TcpListener, identity: Arc<Current>, counters: Counters) -> Self {
        Self {
            tcp,
            identity,
            counters,
            refused: Arc::default(),
        }
    }

    /// Where it is.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Answers replicas for ever; its connections end with it.
    pub async fn run(self, generations: Arc<dyn Generations>) -> std::convert::Infallible {
        let mut connections = JoinSet::new();
        let room = Arc::new(Semaphore::new(MOST));
        loop {
            let accepted = self.tcp.accept().await;
            while connections.try_join_next().is_some() {}
            let Ok((stream, addr)) = accepted else {
                // Out of descriptors or memory, or the peer has gone again.
                sleep(BACKOFF).await;
                continue;
            };
            // There is one for each replica that asks. Who comes when there are so many is no replica of ours.
            let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                continue;
            };
            let connection = Connection {
                identity: Arc::clone(&self.identity),
                counters: self.counters.clone(),
                refused: Arc::clone(&self.refused),
                generations: Arc::clone(&generations),
            };
            connections.spawn(async move {
                connection.serve(stream, addr).await;
                drop(permit);
            });
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

struct Connection {
    identity: Arc<Current>,
    counters: Counters,
    refused: Arc<Seldom>,
    generations: Arc<dyn Generations>,
}

/// Whether whoever asked has gone by itself.
fn has_left(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::UnexpectedEof | Kind::ConnectionReset | Kind::BrokenPipe
    )
}

impl Connection {
    async fn serve(&self, stream: TcpStream, addr: SocketAddr) {
        let handshake = async {
            stream.set_nodelay(true)?;
            let tls = TlsAcceptor::from(self.identity.now().await.server);
            tls.accept(stream).await
        };
        let stream = match timeout(HANDSHAKE, handshake).await {
            Ok(Ok(stream)) => stream,
            // A replica whose question was answered elsewhere meanwhile, as a rule.
            Ok(Err(error)) if has_left(&error) => {
                tracing::debug!(%addr, %error, "somebody who asked the relay has left");
                return;
            }
            Ok(Err(error)) => return self.refuse(addr, &error.to_string()),
            Err(_) => return self.refuse(addr, "it says nothing"),
        };
        let service = service_fn(|request| {
            let response = self.answer(&request);
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let served = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // One for each generation that the other replica follows.
            .max_concurrent_streams(STREAMS)
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%addr, %error, "a connection of a replica ended early");
        }
    }

    /// Somebody is not let in: a stranger, or a replica whose certificates are not right.
    fn refuse(&self, addr: SocketAddr, why: &str) {
        self.counters.failed(Failure::Peer);
        if self.refused.is_news(&addr.ip().to_string(), Instant::now()) {
            tracing::warn!(%addr, why, "somebody who asked the relay is not let in; is its certificate of a CA in relay_ca, and ours in its own?");
        } else {
            tracing::debug!(%addr, why, "somebody who asked the relay is not let in");
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Either<Telling, Empty<Bytes>>> {
        let ask = wire::asked(request.uri()).filter(|_| request.method() == Method::GET);
        let telling = ask.and_then(|ask| {
            let owned = self.generations.owned(ask.id)?;
            Telling::new(owned, &ask, self.counters.told())
        });
        match telling {
            Some(telling) => Response::new(Either::Left(telling)),
            None => {
                let mut response = Response::new(Either::Right(Empty::new()));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }
    }
}

/// Connections at once.
const MOST: usize = 256;
const STREAMS: u32 = 1 << 16;
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How soon a replica that is out of touch is given up, at the latest, twice.
const ALIVE: Duration = Duration::from_secs(5);
const BACKOFF: Duration = Duration::from_millis(50);
