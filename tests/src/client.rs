//! An HTTP/1.1 client over a plain socket that hides nothing: which bytes came in which chunk, and how the body ended.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Waits for a condition, but not for ever.
///
/// # Panics
/// When it takes longer than any condition in a story may.
#[track_caller]
pub fn patience<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        match timeout(Duration::from_secs(30), future).await {
            Ok(output) => output,
            Err(_) => panic!("waited in vain at {place}"),
        }
    }
}

/// Sends requests to one listener, each on a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where it connects.
    pub addr: SocketAddr,
    headers: Vec<(String, String)>,
}

/// A response whose body may still be coming.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The fields, names in lowercase, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// A body that is being read.
#[derive(Debug)]
pub struct Body {
    stream: TcpStream,
    buffer: Vec<u8>,
    framing: Framing,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    Close,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By its framing.
    Proper,
    /// The connection was closed before that.
    Fin,
    /// The connection was reset.
    Reset,
    /// The connection was closed, and the framing says that this is how it ends.
    Close,
}

impl Client {
    /// A client without a credential.
    #[must_use]
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            headers: Vec::new(),
        }
    }

    /// The same with one field more in each request.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn send(&self, method: &str, target: &str, body: &str) -> Response {
        self.raw(&self.request(method, target, body)).await
    }

    /// The bytes of a request.
    #[must_use]
    pub fn request(&self, method: &str, target: &str, body: &str) -> Vec<u8> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.addr);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            head.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            ));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body.as_bytes()].concat()
    }

    /// Sends bytes as they are, and leaves the answer to come.
    ///
    /// # Panics
    /// When there is no connection.
    pub async fn begin(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.addr).await.expect("connects");
        stream.write_all(bytes).await.expect("is sent");
        stream
    }

    /// Sends bytes as they are, and reads a response.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn raw(&self, bytes: &[u8]) -> Response {
        patience(Response::read(self.begin(bytes).await))
            .await
            .expect("a response")
    }

    /// A `GET`.
    pub async fn get(&self, target: &str) -> Response {
        self.send("GET", target, "").await
    }

    /// A streaming chat request.
    pub async fn chat(&self) -> Response {
        self.send("POST", "/v1/chat/completions", CHAT).await
    }

    /// Asks until the answer is durable: on a busy machine its head may not have waited for long enough.
    pub async fn durable_chat(&self) -> Response {
        let durable = async {
            loop {
                let response = self.chat().await;
                if response.is_durable() {
                    return response;
                }
                let durability = response.header("x-streamweld-durability");
                assert_eq!(durability, Some("degraded"));
                response.leave().await;
            }
        };
        patience(durable).await
    }

    /// Reads a generation from its resume URL.
    pub async fn events(&self, id: &str) -> Response {
        self.get(&format!("/v1/streams/{id}/events")).await
    }
}

/// The body of [`Client::chat`].
pub const CHAT: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

impl Response {
    /// Reads the head of a response. `None`: the connection ended first.
    pub async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut buffer = Vec::new();
        loop {
            let mut fields = [httparse::EMPTY_HEADER; 100];
            let mut head = httparse::Response::new(&mut fields);
            if let httparse::Status::Complete(length) =
                head.parse(&buffer).expect("a valid response head")
            {
                let status = head.code.expect("a status");
                let headers: Vec<_> = head
                    .headers
                    .iter()
                    .map(|field| {
                        (
                            field.name.to_ascii_lowercase(),
                            String::from_utf8_lossy(field.value).into_owned(),
                        )
                    })
                    .collect();
                buffer.drain(..length);
                if status == 100 {
                    continue;
                }
                let find = |name: &str| {
                    headers
                        .iter()
                        .find(|(n, _)| n == name)
                        .map(|(_, v)| v.as_str())
                };
                let framing = match (find("transfer-encoding"), find("content-length")) {
                    (Some("chunked"), None) => Framing::Chunked,
                    (None, Some(length)) => Framing::Length(length.parse().expect("a length")),
                    (None, None) if status == 204 || status == 304 || status == 101 => {
                        Framing::Length(0)
                    }
                    (None, None) => Framing::Close,
                    other => panic!("odd framing: {other:?}"),
                };
                return Some(Self {
                    status,
                    headers,
                    body: Body {
                        stream,
                        buffer,
                        framing,
                        end: None,
                    },
                });
            }
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The first field of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Whether it is durable, at whatever level.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        let durability = self.header("x-streamweld-durability");
        durability.is_some_and(|it| it.split(';').next() == Some("durable"))
    }

    /// The id of the generation that it shows.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    #[track_caller]
    pub fn id(&self) -> String {
        self.header("x-streamweld-stream-id")
            .expect("a stream id")
            .to_owned()
    }

    /// The whole body, and how it ended.
    pub async fn all(mut self) -> (Vec<u8>, End) {
        self.body.rest().await
    }

    /// The whole body as JSON.
    ///
    /// # Panics
    /// When it is not JSON, or did not end properly.
    pub async fn json(self) -> serde_json::Value {
        let (bytes, end) = self.all().await;
        assert_eq!(end, End::Proper);
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The code of an error of ours.
    ///
    /// # Panics
    /// When it is none.
    pub async fn error_code(self) -> (u16, String) {
        let status = self.status;
        let error = self.json().await;
        assert_eq!(error["error"]["type"], "streamweld_error", "{error}");
        (
            status,
            error["error"]["code"].as_str().expect("a code").to_owned(),
        )
    }
}

impl Body {
    /// The next chunk (HTTP/1.1 chunked), or what one read brings; `None` at the end.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        patience(self.next_chunk()).await
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> (Vec<u8>, End) {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await {
            all.extend_from_slice(&chunk);
        }
        (all, self.end.expect("ended"))
    }

    /// Reads until `count` blank lines have closed as many blocks. Gives what was read.
    ///
    /// # Panics
    /// When the body ends first.
    pub async fn blocks(&mut self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while crate::sse::blocks(&all).len() < count {
            all.extend_from_slice(&self.chunk().await.expect("the body goes on"));
        }
        all
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// What came of a chunk whose end did not come.
    #[must_use]
    pub fn torn(&self) -> &[u8] {
        match (self.framing, chunk_head(&self.buffer)) {
            (Framing::Chunked, Some((_, start))) => &self.buffer[start..],
            _ => &[],
        }
    }

    /// The connection, to leave it as rudely as the story wants.
    #[must_use]
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    async fn next_chunk(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.end.is_some() {
                return None;
            }
            match self.framing {
                Framing::Length(0) => {
                    self.end = Some(End::Proper);
                    return None;
                }
                Framing::Length(left) if !self.buffer.is_empty() => {
                    let take = left.min(self.buffer.len());
                    self.framing = Framing::Length(left - take);
                    return Some(self.buffer.drain(..take).collect());
                }
                Framing::Close if !self.buffer.is_empty() => {
                    return Some(std::mem::take(&mut self.buffer));
                }
                Framing::Chunked => {
                    if let Some((size, start)) = chunk_head(&self.buffer) {
                        if self.buffer.len() >= start + size + 2 {
                            assert_eq!(
                                &self.buffer[start + size..start + size + 2],
                                b"\r\n",
                                "a chunk ends with CRLF"
                            );
                            let chunk = self.buffer[start..start + size].to_vec();
                            self.buffer.drain(..start + size + 2);
                            if size == 0 {
                                self.end = Some(End::Proper);
                                return None;
                            }
                            return Some(chunk);
                        }
                    }
                }
                Framing::Length(_) | Framing::Close => {}
            }
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) if self.framing == Framing::Close => self.end = Some(End::Close),
                Ok(0) => self.end = Some(End::Fin),
                Ok(_) => {}
                Err(_) => self.end = Some(End::Reset),
            }
        }
    }
}

/// The size of the chunk at the front, and where its data begins.
fn chunk_head(buffer: &[u8]) -> Option<(usize, usize)> {
    let end = buffer.windows(2).position(|pair| pair == b"\r\n")?;
    let size = std::str::from_utf8(&buffer[..end]).expect("a chunk size");
    Some((
        usize::from_str_radix(size, 16).expect("a chunk size"),
        end + 2,
    ))
}
