//! The mock server: its listener, its scripts, its end.

mod accept;

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
};

use tokio::{
    net::{TcpListener, ToSocketAddrs},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{Cut, Gates, Recorder, Script};
use accept::Command;

/// What a mock is at its start.
#[derive(Debug, Clone)]
pub struct MockConfig {
    /// What it answers where nothing else is set.
    pub default: Script,
    /// What it speaks.
    pub protocol: Protocol,
    /// How many requests the recorder keeps. Each costs its head and body.
    pub keep_requests: usize,
    /// How many bytes of a request body are kept. The facts of a request are read from what is
    /// kept, so a longer one is answered as if it asked for nothing.
    pub keep_body: usize,
}

/// What a mock speaks on its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1 and HTTP/1.0, with every fault.
    #[default]
    Http1,
    /// HTTP/2 without TLS, prior knowledge. Cuts become stream resets; what is about HTTP/1
    /// framing (raw bytes, interim answers, framing, trailers) has no effect.
    Http2,
}

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            default: Script::default(),
            protocol: Protocol::default(),
            keep_requests: 4096,
            keep_body: 16 << 20,
        }
    }
}

/// A running mock. Dropping it ends it: the listener and every connection close at once.
#[derive(Debug)]
pub struct Mock {
    addr: SocketAddr,
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    /// Owns the listener and, in a join set, the connections.
    task: JoinHandle<()>,
}

/// What the connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: MockConfig,
    pub(crate) recorder: Recorder,
    pub(crate) gates: Gates,
    /// The status of `/health`.
    pub(crate) health: AtomicU16,
    /// Whether connections that are dropped are reset.
    pub(crate) reset_on_drop: Arc<AtomicBool>,
    scripts: Mutex<Scripts>,
}

#[derive(Debug)]
struct Scripts {
    default: Arc<Script>,
    queue: VecDeque<Arc<Script>>,
    paths: HashMap<String, Arc<Script>>,
}

impl Mock {
    /// Listens on `addr` and serves until it is dropped.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(addr: impl ToSocketAddrs, config: MockConfig) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        Self::serve(listener, Arc::new(Shared::new(config)))
    }

    fn serve(listener: TcpListener, shared: Arc<Shared>) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        let (commands, inbox) = mpsc::channel(4);
        let task = tokio::spawn(accept::run(listener, Arc::clone(&shared), inbox));
        Ok(Self {
            addr,
            shared,
            commands,
            task,
        })
    }

    /// An HTTP/1 mock on a free loopback port, answering with `script`.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::bind(
            "127.0.0.1:0",
            MockConfig {
                default: script,
                ..MockConfig::default()
            },
        )
        .await
    }

    /// Another one on a free loopback port that answers from the same scripts, so that whichever of the two is
    /// asked next takes the next queued one. Record, gates and health are the same, too; its connections and its end are
    /// its own.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn twin(&self) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        Self::serve(listener, Arc::clone(&self.shared))
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What it saw.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// Its gates.
    pub fn gates(&self) -> &Gates {
        &self.shared.gates
    }

    /// Replaces the default script, for requests that come from now on.
    pub fn set_script(&self, script: Script) {
        self.shared.lock().default = Arc::new(script);
    }

    /// Answers the next request that has no script of its own with this one, once. Several queue.
    pub fn push_script(&self, script: Script) {
        self.shared.lock().queue.push_back(Arc::new(script));
    }

    /// Always answers requests to this path with this script, in any method. It stands above the
    /// built-in paths: `set_script_at("/tokenize", Script::answer(200, json))`.
    pub fn set_script_at(&self, path: impl Into<String>, script: Script) {
        self.shared
            .lock()
            .paths
            .insert(path.into(), Arc::new(script));
    }

    /// Whether `/health` says 200 or 503.
    pub fn set_healthy(&self, healthy: bool) {
        self.set_health(if healthy { 200 } else { 503 });
    }

    /// What `/health`, and `/ready` where there is one, says. A request `POST /mock/health` does the same.
    pub fn set_health(&self, status: u16) {
        self.shared.health.store(status, Ordering::Release);
    }

    /// Cuts every open connection at once and goes on listening.
    pub async fn cut_connections(&self, cut: Cut) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(Command::Cut(cut, done)).await.is_ok() {
            // An error only says that the task has ended, and its connections with it.
            let _ = wait.await;
        }
    }

    /// Ends it like `kill -9`: the port is closed, every connection cut. Returns when that is so.
    /// The recorder and the gates stay usable.
    pub async fn kill(self, cut: Cut) -> Recorder {
        let _ = self.commands.send(Command::Kill(cut)).await;
        let recorder = self.shared.recorder.clone();
        let mut this = self;
        // Its panics, if any, were already reported by the runtime.
        let _ = (&mut this.task).await;
        recorder
    }

    /// Ends it with closed connections, and waits until it has ended.
    pub async fn shutdown(self) {
        self.kill(Cut::Fin).await;
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    pub(crate) fn new(config: MockConfig) -> Self {
        let scripts = Scripts {
            default: Arc::new(config.default.clone()),
            queue: VecDeque::new(),
            paths: HashMap::new(),
        };
        Self {
            recorder: Recorder::new(config.keep_requests),
            gates: Gates::default(),
            health: AtomicU16::new(200),
            reset_on_drop: Arc::default(),
            scripts: Mutex::new(scripts),
            config,
        }
    }

    /// The script set for this very path.
    pub(crate) fn script_at(&self, path: &str) -> Option<Arc<Script>> {
        self.lock().paths.get(path).cloned()
    }

    /// The next queued script, or the default.
    pub(crate) fn next_script(&self) -> Arc<Script> {
        let mut scripts = self.lock();
        scripts
            .queue
            .pop_front()
            .unwrap_or_else(|| Arc::clone(&scripts.default))
    }

    /// The next script, if it answers on paths that say nothing about a dialect.
    pub(crate) fn script_for_any_path(&self) -> Option<Arc<Script>> {
        let any =
            |script: &Script| script.dialect.is_some() || script.raw.is_some() || script.is_plain();
        let mut scripts = self.lock();
        match scripts.queue.front() {
            Some(front) if any(front) => scripts.queue.pop_front(),
            Some(_) => None,
            None => Some(Arc::clone(&scripts.default)).filter(|script| any(script)),
        }
    }

    pub(crate) fn default_script(&self) -> Arc<Script> {
        Arc::clone(&self.lock().default)
    }

    fn lock(&self) -> MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
