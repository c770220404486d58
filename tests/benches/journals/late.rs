//! A Redis that is further away: everything it is told arrives later, in order, however much is under way.
//!
//! Threads, since the runtime's timers count whole milliseconds.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Runs until the process ends.
pub(crate) struct Late {
    port: u16,
}

impl Late {
    pub(crate) fn start(server: u16, latency: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).expect("it is connected");
                }
                let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
                pass(copy(&client), copy(&server), latency);
                pass(server, client, Duration::ZERO);
            }
        });
        Self { port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Passes on what `from` sends, each piece so much later than it came.
fn pass(mut from: TcpStream, mut to: TcpStream, latency: Duration) {
    let (send, receive) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(size @ 1..) = from.read(&mut buffer) {
            if send
                .send((Instant::now() + latency, buffer[..size].to_vec()))
                .is_err()
            {
                return;
            }
        }
    });
    #[expect(
        clippy::disallowed_methods,
        reason = "the time is what this thread is for"
    )]
    thread::spawn(move || {
        for (due, bytes) in receive {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
