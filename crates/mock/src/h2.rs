//! HTTP/2, for well-behaved answers: hyper frames them. A cut becomes a reset of the stream.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing::debug;

use crate::{
    Ask, Outcome, Request, Script,
    body::Body,
    conn::Progress,
    mock::Shared,
    player::{Move, Player},
    routes::{self, Answer},
    score::Close,
};

/// The script cut the stream.
#[derive(Debug, thiserror::Error)]
#[error("cut by the script")]
struct CutShort;

type AnswerBody = BoxBody<Bytes, CutShort>;

/// The tasks of one connection; they end with it. The connection alone holds it: a task that held
/// it too would keep itself alive.
#[derive(Debug, Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async {
            task.await;
        });
    }
}

/// Serves a connection. It ends when the future does or is dropped.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, number: usize) {
    let tasks = Tasks::default();
    let weak = Arc::downgrade(&tasks.0);
    let service = service_fn(|request| {
        let (shared, tasks) = (Arc::clone(&shared), Weak::clone(&weak));
        async move { Ok::<_, Infallible>(answer(request, shared, number, tasks).await) }
    });
    let served = http2::Builder::new(tasks.clone())
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(number, %error, "HTTP/2 connection failed");
    }
}

async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<Shared>,
    number: usize,
    tasks: Weak<Mutex<JoinSet<()>>>,
) -> Response<AnswerBody> {
    let request = read(request, &shared, number).await;
    let index = shared.recorder.record(request.clone());
    let request = Request { index, ..request };
    let mut progress = Progress::new(shared.recorder.clone(), index);
    match routes::choose(&shared, &request) {
        Answer::Plain { script, body, json } => {
            before_head(&shared, &script).await;
            progress.ending.outcome = Outcome::Finished;
            let natural = if json {
                "application/json"
            } else {
                "text/plain; charset=utf-8"
            };
            respond(&script, natural, full(body))
        }
        Answer::Stream { script, ask } => {
            before_head(&shared, &script).await;
            let (tx, rx) = mpsc::channel(1);
            if let Some(tasks) = tasks.upgrade() {
                Tasks(tasks).execute(play(shared, Arc::clone(&script), *ask, tx, progress));
            }
            let body = BodyExt::boxed(Frames {
                frames: rx,
                cut: None,
            });
            respond(&script, "text/event-stream; charset=utf-8", body)
        }
        Answer::Raw(_) | Answer::Upgrade => {
            progress.ending.outcome = Outcome::Finished;
            respond(
                &Script::error(501),
                "text/plain",
                full(b"only over HTTP/1".to_vec()),
            )
        }
    }
}

async fn read(request: http::Request<Incoming>, shared: &Shared, number: usize) -> Request {
    let (head, mut incoming) = request.into_parts();
    let mut body = Body::new(shared.config.keep_body);
    // A body that breaks off is answered for what came; the client is gone in any case.
    while let Some(Ok(frame)) = incoming.frame().await {
        if let Some(data) = frame.data_ref() {
            body.push(data);
        }
    }
    let (body, body_len, body_sha256) = body.finish();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    Request {
        index: 0,
        connection: number,
        at: Instant::now(),
        method: head.method,
        target: target.to_owned(),
        version: 20,
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body,
        body_len,
        body_sha256,
        ending: None,
    }
}

async fn before_head(shared: &Shared, script: &Script) {
    sleep(script.head_delay).await;
    if let Some(gate) = &script.head_gate {
        shared.gates.pass(gate).await;
    }
}

fn full(body: Vec<u8>) -> AnswerBody {
    Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed()
}

/// Header lines that HTTP/2 cannot carry are left out.
fn respond(script: &Script, natural: &str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(script.status).unwrap_or(StatusCode::OK);
    let content_type = script.content_type.as_deref().unwrap_or(natural);
    let own = [
        ("content-type", content_type),
        ("cache-control", "no-cache"),
    ];
    let lines = script
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(lines) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

type Frame = Result<hyper::body::Frame<Bytes>, CutShort>;

/// The body that a player feeds.
#[derive(Debug)]
struct Frames {
    frames: mpsc::Receiver<Frame>,
    cut: Option<CutShort>,
}

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        if let Some(cut) = self.cut.take() {
            return Poll::Ready(Some(Err(cut)));
        }
        match ready!(self.frames.poll_recv(cx)) {
            Some(Err(cut)) => {
                // hyper resets the stream at once and drops what it has not sent yet, so it gets
                // one turn to send it.
                self.cut = Some(cut);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            other => Poll::Ready(other),
        }
    }
}

async fn play(
    shared: Arc<Shared>,
    script: Arc<Script>,
    ask: Ask,
    tx: mpsc::Sender<Frame>,
    mut progress: Progress,
) {
    let mut player = Player::new(&script, &ask);
    let wait = async |ours: Pin<Box<dyn Future<Output = ()> + Send + '_>>| {
        tokio::select! {
            () = ours => true,
            () = tx.closed() => false,
        }
    };
    progress.ending.outcome = loop {
        let goes_on = match player.next() {
            Move::Write => {
                let data = Bytes::copy_from_slice(player.bytes());
                player.written();
                let size = data.len() as u64;
                let sent = tx.send(Ok(hyper::body::Frame::data(data))).await.is_ok();
                if sent {
                    progress.ending.events = player.events();
                    progress.ending.bytes += size;
                }
                sent
            }
            Move::Pause(span) => wait(Box::pin(sleep(span))).await,
            Move::Gate(name) => wait(Box::pin(shared.gates.pass(&name))).await,
            Move::Stall => wait(Box::pin(std::future::pending())).await,
            Move::BadChunk | Move::End(Close::Cut(_)) => {
                // Refused only when the client is gone already.
                let _ = tx.send(Err(CutShort)).await;
                break Outcome::Cut;
            }
            Move::End(Close::Clean) => break Outcome::Finished,
        };
        if !goes_on {
            break Outcome::ClientClosed;
        }
    };
}
