//! A way to a server that can be cut without a word.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::Server;

/// A port that leads to a server, and swallows or holds what passes when it is told to. It ends with its handle.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    gate: Arc<watch::Sender<Gate>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Gate {
    /// How many connections there have been.
    made: u64,
    /// Of so many of them every byte is swallowed.
    swallowed: u64,
    /// What clients send waits.
    held: bool,
}

impl Relay {
    /// Leads to a server.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there are ports");
        let port = listener.local_addr().expect("it is bound").port();
        let gate = Arc::new(watch::Sender::default());
        let task = run(listener, server.address(), Arc::clone(&gate));
        Self {
            port,
            gate,
            _task: AbortOnDropHandle::new(tokio::spawn(task)),
        }
    }

    /// Its URL, for a server without a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// How many connections there have been.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.gate.borrow().made
    }

    /// Swallows every byte of all connections that there are, both ways; they stay open. New ones are let through.
    pub fn swallow(&self) {
        self.gate.send_modify(|gate| gate.swallowed = gate.made);
    }

    /// Keeps what clients send.
    pub fn hold(&self) {
        self.gate.send_modify(|gate| gate.held = true);
    }

    /// Sends on what was kept.
    pub fn release(&self) {
        self.gate.send_modify(|gate| gate.held = false);
    }
}

async fn run(listener: TcpListener, server: String, gate: Arc<watch::Sender<Gate>>) {
    // They end with the relay.
    let mut pumps = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while pumps.try_join_next().is_some() {}
        gate.send_modify(|gate| gate.made += 1);
        let number = gate.borrow().made;
        let Ok(server) = TcpStream::connect(&server).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        pumps.spawn(pump(from_client, to_server, number, true, gate.subscribe()));
        pumps.spawn(pump(
            from_server,
            to_client,
            number,
            false,
            gate.subscribe(),
        ));
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    of_client: bool,
    mut gate: watch::Receiver<Gate>,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buf).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        let open = gate.wait_for(|gate| !(gate.held && of_client)).await;
        let swallowed = open.is_ok_and(|gate| number <= gate.swallowed);
        if !swallowed {
            to.write_all(&buf[..count]).await?;
        }
    }
}
