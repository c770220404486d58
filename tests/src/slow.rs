//! A client that takes little at once, and what a rude one leaves behind.

use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, Response, patience};

impl Client {
    /// Sends a POST over a connection whose receive buffer is as small as the system lets it be.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn post_slowly(&self, target: &str, body: &str) -> Response {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(1024).expect("a small buffer");
        socket.connect(&self.addr.into()).expect("connects");
        socket.set_nonblocking(true).expect("not blocking");
        let mut stream = TcpStream::from_std(socket.into()).expect("a stream");
        let length = body.len();
        let head = format!("POST {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
        let request = [head.as_bytes(), body.as_bytes()].concat();
        stream.write_all(&request).await.expect("is sent");
        patience(Response::read(stream)).await.expect("a response")
    }
}

/// Resets a connection.
///
/// # Panics
/// When the system does not let it.
pub fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .expect("a linger of zero");
}
