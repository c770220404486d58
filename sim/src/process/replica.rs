//! A replica: the whole server with its journal in Redis, over the simulated network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal_redis::{
    Config as RedisConfig, Dialer as RedisDialer, RedisJournal, Target,
};
use streamweld_server::{Config, Server};
use streamweld_upstream::fleet::{Engine, Spec};
use streamweld_upstream::{Backend, Dialer};
use tokio::sync::oneshot;

use super::{ADMIN, DATA, ENGINE, REDIS};
use crate::host::Host;
use crate::net::Port;

/// A process.
pub struct Replica {
    leave: Option<oneshot::Sender<()>>,
    has_left: Arc<AtomicBool>,
}

/// Short, so that much of it passes in a run.
const LEASE: Duration = Duration::from_secs(2);

impl Replica {
    /// Runs one on a host, in front of the engine on another.
    pub fn run(host: &Host, port: Port, engine: String) -> Self {
        let (leave, left) = oneshot::channel();
        let has_left = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&has_left);
        host.run(async move {
            serve(port, engine, left).await;
            done.store(true, Ordering::Relaxed);
        });
        Self {
            leave: Some(leave),
            has_left,
        }
    }

    /// What SIGTERM does.
    pub fn leave(&mut self) {
        self.leave.take();
    }

    /// Whether it was told to leave, and its process has ended.
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}

async fn serve(port: Port, engine: String, left: oneshot::Receiver<()>) {
    let way = port.clone();
    let dialer = RedisDialer::new(move |host, number| way.clone().connect(host.to_owned(), number));
    let target = Target::parse(&format!("redis://redis:{REDIS}")).expect("a URL");
    let redis = RedisConfig {
        lease: LEASE,
        ..RedisConfig::default()
    };
    let journal = RedisJournal::start(target.with_dialer(dialer), redis);
    // As at every start: degraded until it is there.
    _ = journal.connected(Duration::from_secs(5)).await;
    let server = Server::on(
        port.listen(DATA),
        port.listen(ADMIN),
        config(&port, &engine),
        Arc::new(journal),
        HealBounds::default(),
    );
    let server = server.expect("the configuration is sound");
    server.run(async { drop(left.await) }).await;
}

fn config(port: &Port, engine: &str) -> Config {
    let url = format!("http://{engine}:{ENGINE}");
    let url = || url.parse().expect("a URL");
    let mut config = Config::new(Backend::named(engine, url()));
    config.backends = vec![Spec {
        group: Some(GROUP.to_owned()),
        ..Spec::new(engine, url(), Engine::Vllm)
    }];
    config.migration.vouched.insert(GROUP.to_owned());
    let way = port.clone();
    let dialer = Dialer::new(move |host, number| way.clone().connect(host.to_owned(), number));
    config.upstream.dialer = Some(dialer);
    // Readers give up on a connection that says nothing for longer than two of these.
    config.edge.heartbeat = Duration::from_secs(2);
    config.shutdown_grace = Duration::from_secs(5);
    config
}

const GROUP: &str = "g";
