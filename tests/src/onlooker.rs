//! A relay that looks on: which streams the heads name that pass through it, and how many heartbeats do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// The relay. It ends with this, and every connection with it.
#[derive(Debug)]
pub struct Onlooker {
    addr: SocketAddr,
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    ids: Vec<String>,
    heartbeats: usize,
}

const FIELD: &[u8] = b"x-streamweld-stream-id: ";
const ID: usize = 26;
/// With ids and without (protocol.md 5 and 5.2), each a chunk of its own.
const HEARTBEATS: [&[u8]; 2] = [b"2\r\n:\n\r\n", b"1\r\n\n\r\n"];

impl Onlooker {
    /// A relay to a server, on a port that the kernel gives.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("it is bound");
        let (note, seen) = watch::channel(Seen::default());
        let task = tokio::spawn(accept(listener, target, Arc::new(note)));
        Self { addr, seen, task }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The streams that heads have named so far, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.seen.borrow().ids.clone()
    }

    /// Waits until so many heartbeats have gone to clients.
    ///
    /// # Panics
    /// When they have not within `most`.
    pub async fn wait_heartbeats(&self, count: usize, most: Duration) {
        let mut seen = self.seen.clone();
        let came = timeout(most, seen.wait_for(|seen| seen.heartbeats >= count)).await;
        assert!(came.is_ok(), "no {count} heartbeats in {most:?}");
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, note: Arc<watch::Sender<Seen>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let note = Arc::clone(&note);
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(target).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::join!(
                pass(from_client, to_server, |_| {}),
                pass(from_server, to_client, |bytes| look(&note, bytes)),
            );
        });
    }
}

/// Passes on until either side is done. A reset is passed on as a close: who looks on is no part of the story.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut look: impl FnMut(&[u8])) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        look(&bytes[..count]);
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Heads and heartbeats are written at once, so they are not torn over two reads.
fn look(note: &watch::Sender<Seen>, bytes: &[u8]) {
    note.send_modify(|seen| {
        for heartbeat in HEARTBEATS {
            seen.heartbeats += memchr::memmem::find_iter(bytes, heartbeat).count();
        }
        for at in memchr::memmem::find_iter(bytes, FIELD) {
            let id = bytes[at + FIELD.len()..].iter().take(ID).copied().collect();
            seen.ids.push(String::from_utf8(id).unwrap_or_default());
        }
    });
}
