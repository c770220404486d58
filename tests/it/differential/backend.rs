//! A backend that answers each path with the case whose seed it begins with.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::case::{BodyEnd, Case};

pub(super) struct Backend {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Backend {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("bound");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { addr, task }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one request after the other, until a case ends in a cut or the client leaves.
async fn serve(mut stream: TcpStream) {
    let mut buffer = Vec::new();
    while let Some(seed) = request(&mut stream, &mut buffer).await {
        let case = Case::of(seed);
        // Whoever has read enough may close: that is its business.
        if answer(&mut stream, &case).await.is_err() || case.end == BodyEnd::Cut {
            return;
        }
    }
}

/// Reads a request, and gives the seed in its path. `None`: there is no more.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<u64> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut fields);
        if let Ok(httparse::Status::Complete(length)) = head.parse(buffer) {
            let body = head
                .headers
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case("content-length"))
                .and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok())
                .unwrap_or(0);
            if buffer.len() >= length + body {
                let seed = head.path?.split('/').nth(1)?.parse().ok();
                buffer.drain(..length + body);
                return seed;
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

async fn answer(stream: &mut TcpStream, case: &Case) -> std::io::Result<()> {
    let framing = if case.has_length {
        // A cut body is one that is too short.
        let missing = usize::from(case.end == BodyEnd::Cut);
        format!("content-length: {}", case.body.len() + missing)
    } else {
        "transfer-encoding: chunked".to_owned()
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}\r\n\r\n");
    let mut out = head.into_bytes();
    let mut rest = case.body.as_slice();
    let stride = case.pieces.len().div_ceil(6).max(1);
    for (at, size) in case.pieces.iter().enumerate() {
        let (piece, behind) = rest.split_at(*size);
        rest = behind;
        if case.has_length {
            out.extend_from_slice(piece);
        } else {
            out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        // A few of the writes end here, so that not all that is there is read at once.
        if at % stride == 0 {
            stream.write_all(&out).await?;
            out.clear();
            tokio::task::yield_now().await;
        }
    }
    if !case.has_length && case.end == BodyEnd::Clean {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    stream.write_all(&out).await
}
