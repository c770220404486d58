//! The proxies that are measured, and what they use.

use std::net::SocketAddr;

use streamweld_tests::{Process, Usage};

use crate::backend::Backend;

/// A proxy that runs, with one worker.
pub(crate) struct Contender {
    process: Process,
    addr: SocketAddr,
}

impl Contender {
    pub(crate) async fn start(backend: &Backend, arguments: &[&str]) -> Self {
        let backend = format!("--backend=http://{}", backend.addr());
        let plain = [&backend, "--threads=1"];
        let mut process = Process::serve(&[&plain[..], arguments].concat());
        let addr = process.client().await.addr;
        Self { process, addr }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.process.id())
    }
}
