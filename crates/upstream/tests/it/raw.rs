//! Backends made of bytes: a listener, a script per connection, and a count of connections.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use socket2::{Domain, Socket, Type};
use streamweld_upstream::{Backend, Client, CutKind, Read, Source, UpstreamConfig, UpstreamError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// No test waits longer for anything.
const DEADLINE: Duration = Duration::from_secs(20);

/// A scripted backend.
pub(crate) struct Raw {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Raw {
    /// Runs `script` for each connection, with its number from 0.
    pub(crate) async fn start<F, Fut>(script: F) -> Self
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    /// The same on a listener of the test's own.
    pub(crate) fn start_on<F, Fut>(listener: TcpListener, script: F) -> Self
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut scripts = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                scripts.spawn(script(stream, number));
            }
        });
        Self {
            port,
            connections,
            _tasks: tasks,
        }
    }

    /// Answers every request on every connection with the same bytes and keeps connections open.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::start(move |mut stream, _| {
            let answer = Arc::clone(&answer);
            async move {
                while read_head(&mut stream).await.is_some() {
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    /// Answers the first request of every connection with the same bytes, then closes.
    pub(crate) async fn closing(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::start(move |mut stream, _| {
            let answer = Arc::clone(&answer);
            async move {
                read_head(&mut stream).await;
                stream.write_all(&answer).await.unwrap();
            }
        })
        .await
    }

    pub(crate) fn backend(&self) -> Backend {
        backend(&format!("http://127.0.0.1:{}", self.port))
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A backend that accepts nothing, with so many waiting for it that the kernel answers no more.
pub(crate) struct FullQueue {
    socket: Socket,
    _waiting: Vec<TcpStream>,
}

impl FullQueue {
    pub(crate) async fn start() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        socket.bind(&any.into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut waiting = Vec::new();
        let short = Duration::from_millis(100);
        while let Ok(connected) = tokio::time::timeout(short, TcpStream::connect(address)).await {
            waiting.push(connected.unwrap());
        }
        Self {
            socket,
            _waiting: waiting,
        }
    }

    pub(crate) fn url(&self) -> String {
        let address = self.socket.local_addr().unwrap();
        format!("http://{}", address.as_socket().unwrap())
    }
}

/// A file that goes when the test does.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new(text: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("streamweld-upstream-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Reads a request head; none if the peer has closed.
pub(crate) async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Ends the connection with a reset.
pub(crate) fn reset(stream: TcpStream) {
    let socket = Socket::from(stream.into_std().unwrap());
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

pub(crate) fn backend(url: &str) -> Backend {
    Backend::named("engine-a", url.parse().unwrap())
}

pub(crate) fn client() -> Client {
    client_with(|_| ())
}

pub(crate) fn client_with(change: impl FnOnce(&mut UpstreamConfig)) -> Client {
    let mut config = UpstreamConfig::default();
    change(&mut config);
    Client::new(config).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).body(Full::default()).unwrap()
}

pub(crate) async fn send(
    client: &Client,
    backend: &Backend,
) -> Result<Response<Source>, UpstreamError> {
    within(client.send(backend, get("/x"))).await
}

/// Reads to the end: all data, and how it ended (none is a proper end).
pub(crate) async fn drain(source: &mut Source) -> (String, Option<CutKind>) {
    let mut data = Vec::new();
    loop {
        match within(source.read()).await {
            Read::Data(bytes) => data.extend_from_slice(&bytes),
            Read::Trailers(_) => {}
            Read::End => return (String::from_utf8(data).unwrap(), None),
            Read::Cut(kind, _) => return (String::from_utf8(data).unwrap(), Some(kind)),
        }
    }
}

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("the deadline of a test has passed")
}

/// An error with its whole chain, as a log would have it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// A request body that never ends and has nothing to give.
pub(crate) struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
