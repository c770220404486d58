//! A client that shows every byte and how the connection ended.

use std::{future::Future, net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How a body or a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With the last chunk.
    Clean,
    /// With FIN.
    Fin,
    /// With a reset.
    Rst,
    /// With bytes that are no chunk.
    BadChunk,
}

pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) input: Vec<u8>,
}

/// Everything here happens at once or never.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), what)
        .await
        .expect("happens within 10 s")
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        Self {
            stream,
            input: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn get(&mut self, target: &str) {
        self.send(format!("GET {target} HTTP/1.1\r\nhost: mock\r\n\r\n"))
            .await;
    }

    pub(crate) async fn post(&mut self, target: &str, body: &str) {
        let length = body.len();
        let head =
            format!("POST {target} HTTP/1.1\r\nhost: mock\r\ncontent-length: {length}\r\n\r\n");
        self.send(head + body).await;
    }

    pub(crate) async fn stream_chat(addr: SocketAddr) -> Self {
        let mut client = Self::connect(addr).await;
        client
            .post("/v1/chat/completions", r#"{"model":"m","stream":true}"#)
            .await;
        client
    }

    /// Reads more; the end of the connection as an error.
    pub(crate) async fn fill(&mut self) -> Result<(), End> {
        match soon(self.stream.read_buf(&mut self.input)).await {
            Ok(0) => Err(End::Fin),
            Ok(_) => Ok(()),
            Err(_) => Err(End::Rst),
        }
    }

    pub(crate) async fn take(&mut self, count: usize) -> Result<Vec<u8>, End> {
        while self.input.len() < count {
            self.fill().await?;
        }
        Ok(self.input.drain(..count).collect())
    }

    pub(crate) async fn until(&mut self, mark: &str) -> Result<String, End> {
        loop {
            let found = self
                .input
                .windows(mark.len())
                .position(|window| window == mark.as_bytes());
            if let Some(at) = found {
                let bytes = self.take(at + mark.len()).await?;
                return Ok(String::from_utf8(bytes).unwrap());
            }
            self.fill().await?;
        }
    }

    pub(crate) async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await.unwrap()
    }

    /// The next chunk, empty for the last.
    pub(crate) async fn chunk(&mut self) -> Result<Vec<u8>, End> {
        let line = self.until("\r\n").await?;
        let size = usize::from_str_radix(line.trim_end(), 16).map_err(|_| End::BadChunk)?;
        if size == 0 {
            self.until("\r\n").await?;
            return Ok(Vec::new());
        }
        let chunk = self.take(size).await?;
        assert_eq!(self.take(2).await?, b"\r\n");
        Ok(chunk)
    }

    /// All that is left of a chunked body, chunk by chunk, and its end.
    pub(crate) async fn chunks(&mut self) -> (Vec<Vec<u8>>, End) {
        let mut chunks = Vec::new();
        loop {
            match self.chunk().await {
                Ok(chunk) if chunk.is_empty() => return (chunks, End::Clean),
                Ok(chunk) => chunks.push(chunk),
                Err(end) => return (chunks, end),
            }
        }
    }

    /// The whole streamed answer: body and end.
    pub(crate) async fn body(&mut self) -> (Vec<u8>, End) {
        self.head().await;
        let (chunks, end) = self.chunks().await;
        (chunks.concat(), end)
    }

    /// Status and JSON of a plain answer.
    pub(crate) async fn json(&mut self) -> (u16, Value) {
        let head = self.head().await;
        let status = head[9..12].parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        let body = self.take(length.parse().unwrap()).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Everything until the connection ends.
    pub(crate) async fn rest(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            if let Err(end) = self.fill().await {
                break end;
            }
        };
        (std::mem::take(&mut self.input), end)
    }

    pub(crate) async fn close_writing(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
}
