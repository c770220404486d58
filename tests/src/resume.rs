//! Coming back to a generation: the ways of it, and what a reader that stood somewhere must be given.

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use crate::client::{Client, Response, patience};

/// A way to come back (protocol.md 6.1, 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The events URL, with `Last-Event-ID`.
    Header,
    /// The events URL, with `last_event_id` in its query.
    Query,
    /// The events URL, with `lastEventId` in its query.
    CamelQuery,
    /// The same request again, with `Last-Event-ID`.
    Again,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Header, Self::Query, Self::CamelQuery, Self::Again];

    /// Comes back to where `cursor` says. `again` is target and body of the request that began it.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn resume(self, client: &Client, cursor: &str, again: (&str, &str)) -> Response {
        let id = cursor.split(':').next().expect("has a first part");
        let events = format!("/v1/streams/{id}/events");
        match self {
            Self::Header => client.with("last-event-id", cursor).get(&events).await,
            Self::Query => {
                client
                    .get(&format!("{events}?last_event_id={cursor}"))
                    .await
            }
            Self::CamelQuery => client.get(&format!("{events}?lastEventId={cursor}")).await,
            Self::Again => {
                let client = client.with("last-event-id", cursor);
                client.send("POST", again.0, again.1).await
            }
        }
    }
}

/// What an uninterrupted reader of generation `id` is given, from the backend's events in plain form (LF, no id,
/// with blank line): the first is entry 2, since entry 1 is `open`.
#[must_use]
pub fn numbered(id: &str, events: &[Bytes]) -> Vec<u8> {
    let mut all = Vec::new();
    for (event, seq) in events.iter().zip(2..) {
        all.extend_from_slice(event.strip_suffix(b"\n").expect("has a blank line"));
        all.extend_from_slice(format!("id: {id}:{seq}\n\n").as_bytes());
    }
    all
}

/// Where each block of `bytes` ends, by its blank line. What a reader that broke off holds for sure ends at the last.
///
/// # Panics
/// When they are not UTF-8.
#[must_use]
pub fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut line = 0;
    // Searched by line, which is fast without optimisation too.
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    while let Some(length) = text[line..].find('\n') {
        line += length + 1;
        if length == 0 {
            ends.push(line);
        }
    }
    ends
}

/// Sends a `GET` over a connection that takes in next to nothing until it is read.
///
/// # Panics
/// When no response comes.
pub async fn get_slowly(client: &Client, target: &str) -> Response {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .set_recv_buffer_size(4 << 10)
        .expect("a small buffer");
    let mut stream = socket.connect(client.addr).await.expect("connects");
    let head = format!("GET {target} HTTP/1.1\r\nhost: {}\r\n\r\n", client.addr);
    stream.write_all(head.as_bytes()).await.expect("is sent");
    patience(Response::read(stream)).await.expect("a response")
}
