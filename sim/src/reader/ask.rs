//! One request over one connection.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::blocks::Blocks;
use crate::net::Port;
use crate::process::DATA;

/// A request.
pub struct Ask {
    pub(super) replica: String,
    pub(super) request: Request<Full<Bytes>>,
}

/// An answer whose body is being read. The connection is closed with it.
pub struct Answer {
    pub(super) status: u16,
    pub(super) stream: Option<String>,
    body: Incoming,
    blocks: Blocks,
    _sender: SendRequest<Full<Bytes>>,
    _connection: Closing,
}

/// What the body gives next.
pub(super) enum Next {
    Block(String),
    End,
    Broken,
}

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a head may take: the server itself answers within five seconds of being asked.
const HEAD: Duration = Duration::from_secs(10);
/// How long a body may say nothing, with a heartbeat each two seconds.
const SILENCE: Duration = Duration::from_secs(6);

impl Ask {
    /// A request to a replica.
    pub(super) fn new(
        replica: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", replica);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        Self {
            replica: replica.to_owned(),
            request: request.body(body).expect("a request"),
        }
    }

    /// Sends it; nothing if there is no head.
    pub(super) async fn send(self, port: &Port) -> Option<Answer> {
        let stream = timeout(CONNECT, port.clone().connect(self.replica, DATA))
            .await
            .ok()?
            .ok()?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        let connection = Closing(tokio::spawn(async move {
            // How it ended is seen by whoever reads the body.
            _ = connection.await;
        }));
        let answer = timeout(HEAD, sender.send_request(self.request))
            .await
            .ok()?
            .ok()?;
        Some(Answer::new(answer, sender, connection))
    }
}

impl Answer {
    fn new(
        answer: Response<Incoming>,
        sender: SendRequest<Full<Bytes>>,
        connection: Closing,
    ) -> Self {
        let stream = answer.headers().get("x-streamweld-stream-id");
        Self {
            status: answer.status().as_u16(),
            stream: stream.and_then(|id| id.to_str().ok()).map(str::to_owned),
            body: answer.into_body(),
            blocks: Blocks::default(),
            _sender: sender,
            _connection: connection,
        }
    }

    /// The next block, or how the body ended.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(block) = self.blocks.next() {
                return Next::Block(block);
            }
            match timeout(SILENCE, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.blocks.push(&data);
                    }
                }
                Ok(None) if self.blocks.is_torn() => {
                    return Next::Block("a torn block at a clean end".to_owned());
                }
                Ok(None) => return Next::End,
                Ok(Some(Err(_))) | Err(_) => return Next::Broken,
            }
        }
    }

    /// The whole body of a short answer, as JSON; null where it is none.
    pub(super) async fn json(self) -> serde_json::Value {
        let Ok(Ok(body)) = timeout(SILENCE, self.body.collect()).await else {
            return serde_json::Value::Null;
        };
        serde_json::from_slice(&body.to_bytes()).unwrap_or_default()
    }
}

struct Closing(JoinHandle<()>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
