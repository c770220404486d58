//! The demo's HTTP client: plain HTTP/1.1, one connection for each request, nothing that knows of Streamweld but the
//! names of its headers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use streamweld_sse::{Decoder, Limits};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Talks to one server.
pub(super) struct Client {
    pub(super) addr: SocketAddr,
    pub(super) model: String,
    /// What is said of it where there are several, such as ` at the second replica`.
    pub(super) place: &'static str,
}

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    /// So long that there is time to do something meanwhile.
    Long,
}

/// One event as a client sees it. Two are equal when they are to the byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: Option<String>,
    pub(super) data: String,
    /// Its lines as they came, heartbeats aside.
    block: String,
}

impl Seen {
    /// The text in a chat chunk.
    pub(super) fn text(&self) -> Option<String> {
        let chunk: serde_json::Value = serde_json::from_str(&self.data).ok()?;
        Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())
    }

    /// The number in its id.
    pub(super) fn seq(&self) -> Option<u64> {
        let (_, seq) = self.id.as_ref()?.split_once(':')?;
        seq.split('~').next()?.parse().ok()
    }

    /// The same event as it is seen while it is not in the journal.
    pub(super) fn without_id(&self) -> Self {
        let lines = self.block.split_inclusive('\n');
        Self {
            id: None,
            data: self.data.clone(),
            block: lines.filter(|line| !line.starts_with("id:")).collect(),
        }
    }
}

/// An event stream that is being read.
pub(super) struct Stream {
    response: Response<Incoming>,
    decoder: Decoder,
    /// What has come of the next block.
    block: Vec<u8>,
    ready: VecDeque<Seen>,
}

/// What a server says between two events when it has been quiet for a while.
const HEARTBEAT: &str = ":\n";

/// A step that takes longer is stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Asks for a chat completion.
    pub(super) async fn ask(&self, length: Length, cursor: Option<&str>) -> anyhow::Result<Stream> {
        let (upto, tokens) = match length {
            Length::Short => ("twenty", 48),
            Length::Long => ("two hundred", 300),
        };
        let body = serde_json::json!({
            "model": self.model, "stream": true, "temperature": 0, "max_tokens": tokens,
            "messages": [{"role": "user", "content": format!("Count slowly from one to {upto}, in words.")}],
        });
        let response = self
            .send(
                Method::POST,
                "/v1/chat/completions",
                cursor,
                body.to_string(),
            )
            .await?;
        Stream::new(response)
    }

    /// Reads a generation from its resume URL.
    pub(super) async fn events(&self, id: &str, cursor: Option<&str>) -> anyhow::Result<Stream> {
        let response = self
            .send(
                Method::GET,
                &format!("/v1/streams/{id}/events"),
                cursor,
                String::new(),
            )
            .await?;
        Stream::new(response)
    }

    /// Stops a generation.
    pub(super) async fn stop(&self, id: &str) -> anyhow::Result<String> {
        let response = self
            .send(
                Method::POST,
                &format!("/v1/streams/{id}/stop"),
                None,
                String::new(),
            )
            .await?;
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        cursor: Option<&str>,
        body: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let stream = TcpStream::connect(self.addr).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the response body, or when that is dropped.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.addr.to_string())
            .header("content-type", "application/json")
            .header("authorization", "Bearer demo");
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        timeout(PATIENCE, sender.send_request(request))
            .await
            .context("no answer")?
            .context("no answer")
    }
}

impl Stream {
    fn new(response: Response<Incoming>) -> anyhow::Result<Self> {
        if response.status() != 200 {
            bail!("the answer was {}", response.status());
        }
        Ok(Self {
            response,
            decoder: Decoder::new(Limits::default()),
            block: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        Some(self.response.headers().get(name)?.to_str().ok()?.to_owned())
    }

    /// The id of its generation.
    pub(super) fn id(&self) -> anyhow::Result<String> {
        self.header("x-streamweld-stream-id")
            .context("no stream id in the head")
    }

    /// So many events.
    pub(super) async fn take(&mut self, count: usize) -> anyhow::Result<Vec<Seen>> {
        let mut taken = Vec::new();
        while taken.len() < count {
            taken.push(self.next().await?.context("the answer was too short")?);
        }
        Ok(taken)
    }

    /// The next event; `None` after the last.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        loop {
            if let Some(seen) = self.ready.pop_front() {
                return Ok(Some(seen));
            }
            let frame = timeout(PATIENCE, self.response.body_mut().frame())
                .await
                .context("the stream is stuck")?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.context("the stream broke off")?.into_data() else {
                continue;
            };
            let mut input = &data[..];
            loop {
                let before = input;
                let event = self.decoder.decode(&mut input)?;
                let event =
                    event.map(|event| (event.id().map(str::to_owned), event.data().into_owned()));
                self.block.extend(&before[..before.len() - input.len()]);
                let Some((id, data)) = event else { break };
                let block = String::from_utf8(std::mem::take(&mut self.block))?;
                let block = block.trim_start_matches(HEARTBEAT).to_owned();
                self.ready.push_back(Seen { id, data, block });
            }
        }
    }

    /// Everything up to the end.
    pub(super) async fn rest(&mut self) -> anyhow::Result<Vec<Seen>> {
        let mut rest = Vec::new();
        while let Some(seen) = self.next().await? {
            rest.push(seen);
        }
        Ok(rest)
    }
}
