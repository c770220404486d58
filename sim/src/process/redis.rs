//! The fake Redis on its port.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::REDIS;
use crate::clock::Clock;
use crate::host::Host;
use crate::net::{Port, Stream};
use crate::redis::{Broken, Lost, Server, parse};

/// What outlives its process: the data.
#[derive(Clone, Default)]
pub struct Redis(Arc<Mutex<Server>>);

impl Redis {
    /// Runs it on a host.
    pub fn run(&self, host: &Host, port: Port) {
        let this = self.clone();
        host.run(async move {
            let listener = port.listen(REDIS);
            loop {
                let stream = listener.accept().await;
                tokio::spawn(this.clone().serve(stream, port.clock));
            }
        });
    }

    /// A rule is left out from now on.
    pub fn break_rule(&self, rule: Broken) {
        self.lock().break_rule(rule);
    }

    /// Its process begins anew.
    pub fn restart(&self) {
        self.lock().restart();
    }

    /// The end of what was written is lost.
    pub fn lose(&self, writes: usize) -> Lost {
        self.lock().lose(writes)
    }

    /// Connections that stay are told that the data is another.
    pub fn tell_of_loss(&self) {
        self.lock().tell_of_loss();
    }

    async fn serve(self, mut stream: Stream, clock: Clock) {
        let (number, bell) = self.lock().connect();
        let client = Connected {
            redis: self,
            number,
        };
        let mut input = BytesMut::new();
        loop {
            let out = client.redis.lock().outbox(number);
            if !out.is_empty() {
                if stream.write_all(&out).await.is_err() {
                    return;
                }
                continue;
            }
            tokio::select! {
                biased;
                read = stream.read_buf(&mut input) => {
                    if !matches!(read, Ok(1..)) {
                        return;
                    }
                    let now = BEGINNING + clock.now().as_millis() as u64;
                    while let Some(words) = match parse(&mut input) {
                        Ok(words) => words,
                        Err(_) => return,
                    } {
                        tracing::trace!(now, number, ?words, "Redis is asked");
                        client.redis.lock().ask(number, now, &words);
                    }
                }
                () = bell.notified() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the connection off the server when it is gone.
struct Connected {
    redis: Redis,
    number: u64,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.redis.lock().disconnect(self.number);
    }
}

/// When the simulation begins, in milliseconds since 1970. The time of day of everybody else stands still there.
const BEGINNING: u64 = 1_700_000_000_000;
