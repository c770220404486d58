//! HTTP/2 by hand, frame by frame: for what no library would send.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::client::{Client, patience};

/// The types of frames (RFC 9113, 6).
pub mod kind {
    #![expect(missing_docs, reason = "named as the standard does")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Of `HEADERS` and `DATA`: nothing more comes on this stream.
pub const END_STREAM: u8 = 1;
/// Of `HEADERS` and `CONTINUATION`: the fields are complete.
pub const END_HEADERS: u8 = 4;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type, see [`kind`].
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// One frame.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    /// As it stands on the wire.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

/// A block of fields, each a literal that nobody remembers (RFC 7541, 6.2.2), so that any bytes can be told.
pub fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        literal(&mut block, 0, name.as_ref(), value.as_ref());
    }
    block
}

/// A field that the other side remembers, as number 62 from then on (RFC 7541, 6.2.1).
#[must_use]
pub fn remembered(name: &str, value: &str) -> Vec<u8> {
    let mut block = Vec::new();
    literal(&mut block, 0x40, name.as_bytes(), value.as_bytes());
    block
}

fn literal(block: &mut Vec<u8>, how: u8, name: &[u8], value: &[u8]) {
    block.push(how);
    for text in [name, value] {
        length(block, text.len());
        block.extend(text);
    }
}

/// The length of a string that is not coded (RFC 7541, 5.1, a prefix of 7 bits).
fn length(block: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(127) else {
        block.push(length as u8);
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// The fields of a plain request.
#[must_use]
pub fn request(method: &str, path: &str) -> Vec<(String, String)> {
    [
        (":method", method),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", path),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// The writing end of a connection.
#[derive(Debug)]
pub struct Sending(OwnedWriteHalf);

/// The reading end of a connection.
#[derive(Debug)]
pub struct Receiving {
    stream: OwnedReadHalf,
    seen: Vec<u8>,
}

/// Connects, and says what a client says first.
///
/// # Panics
/// When there is no connection.
pub async fn open(client: &Client) -> (Sending, Receiving) {
    let stream: TcpStream = client.begin(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let (read, write) = stream.into_split();
    let mut sending = Sending(write);
    let settings = Frame::new(kind::SETTINGS, 0, 0, []);
    assert!(sending.send(&[settings]).await, "it takes the settings");
    let seen = Vec::new();
    (sending, Receiving { stream: read, seen })
}

impl Sending {
    /// Sends frames. Whether the other side has taken them: it may have closed.
    pub async fn send(&mut self, frames: &[Frame]) -> bool {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.send_bytes(&bytes).await
    }

    /// The same with bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        patience(self.0.write_all(bytes)).await.is_ok()
    }
}

impl Receiving {
    /// The next frame; `None` once the connection is closed.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.seen.first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.seen.len() >= 9 + length {
                    let [.., a, b, c, d] = *head;
                    let frame = Frame {
                        kind: head[3],
                        flags: head[4],
                        stream: u32::from_be_bytes([a, b, c, d]),
                        payload: self.seen[9..9 + length].to_vec(),
                    };
                    self.seen.drain(..9 + length);
                    return Some(frame);
                }
            }
            match self.stream.read_buf(&mut self.seen).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }

    /// The first frame of one of these types; `None` when the connection is closed before.
    pub async fn first_of(&mut self, kinds: &[u8]) -> Option<Frame> {
        let found = async {
            loop {
                let frame = self.next().await?;
                if kinds.contains(&frame.kind) {
                    return Some(frame);
                }
            }
        };
        patience(found).await
    }
}
