//! A TCP relay that does to a connection what networks do: delay, split, throttle, corrupt, cut,
//! half-close, fall silent.
//!
//! It stands in front of any TCP server and knows nothing of what passes. Each connection follows
//! a [`RelayPlan`]; when its steps are used up the rest is passed on faithfully, closes and resets
//! included.

mod connection;
mod plan;
mod pump;

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};
use tracing::warn;

use crate::{Cut, Gates, TimedOut, recorder::Deadline};

pub use plan::{Direction, RelayPlan, RelayStep, Welcome};

/// A running relay. Dropping it ends it: the listener and every connection close at once.
#[derive(Debug)]
pub struct FaultRelay {
    addr: SocketAddr,
    shared: Arc<Shared>,
    /// Owns the listener and, in a join set, the connections.
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    gates: Gates,
    plans: Mutex<Plans>,
    paused: watch::Sender<bool>,
    /// Cuts all connections when it changes.
    cut: watch::Sender<Cut>,
    accepted: AtomicUsize,
    open: AtomicUsize,
    to_server: AtomicU64,
    to_client: AtomicU64,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Plans {
    target: SocketAddr,
    default: RelayPlan,
    queue: VecDeque<RelayPlan>,
}

impl FaultRelay {
    /// A faithful relay to `target`, on a free loopback port.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let plans = Plans {
            target,
            default: RelayPlan::new(),
            queue: VecDeque::new(),
        };
        let shared = Arc::new(Shared {
            gates: Gates::default(),
            plans: Mutex::new(plans),
            paused: watch::Sender::new(false),
            cut: watch::Sender::new(Cut::Fin),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            changed: watch::Sender::new(()),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { addr, shared, task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Its gates, for [`RelayStep::Gate`].
    pub fn gates(&self) -> &Gates {
        &self.shared.gates
    }

    /// The plan of connections that come from now on.
    pub fn set_plan(&self, plan: RelayPlan) {
        self.shared.lock().default = plan;
    }

    /// The plan of the next connection only. Several queue.
    pub fn push_plan(&self, plan: RelayPlan) {
        self.shared.lock().queue.push_back(plan);
    }

    /// The server of connections that come from now on.
    pub fn set_target(&self, target: SocketAddr) {
        self.shared.lock().target = target;
    }

    /// Passes nothing on, in either direction, until [`resume`](Self::resume). Sockets stay open
    /// and their buffers fill, as with a black-holed flow.
    pub fn pause(&self) {
        self.shared.paused.send_replace(true);
    }

    /// Passes on again.
    pub fn resume(&self) {
        self.shared.paused.send_replace(false);
    }

    /// Cuts every open connection, on both sides, and goes on listening.
    pub fn cut_connections(&self, cut: Cut) {
        self.shared.cut.send_replace(cut);
    }

    /// How many connections were accepted in all.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Acquire)
    }

    /// How many connections are open now.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Acquire)
    }

    /// How many bytes were passed on in all, in this direction.
    pub fn passed(&self, direction: Direction) -> u64 {
        self.shared.counter(direction).load(Ordering::Acquire)
    }

    /// Waits until so many connections are open.
    pub async fn wait_open(&self, count: usize) -> Result<(), TimedOut> {
        self.wait(|| self.open() == count).await
    }

    /// Waits until so many connections were accepted in all.
    pub async fn wait_accepted(&self, count: usize) -> Result<(), TimedOut> {
        self.wait(|| self.accepted() >= count).await
    }

    /// Waits until so many bytes were passed on in all, in this direction.
    pub async fn wait_passed(&self, direction: Direction, bytes: u64) -> Result<(), TimedOut> {
        self.wait(|| self.passed(direction) >= bytes).await
    }

    async fn wait(&self, holds: impl Fn() -> bool) -> Result<(), TimedOut> {
        Deadline::default()
            .wait(&self.shared.changed, || holds().then_some(()))
            .await
    }
}

impl Drop for FaultRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn counter(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    fn next_plan(&self) -> (SocketAddr, RelayPlan) {
        let mut plans = self.lock();
        let plan = plans
            .queue
            .pop_front()
            .unwrap_or_else(|| plans.default.clone());
        (plans.target, plan)
    }

    fn lock(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open connection: counted, and told when it has to be cut.
#[derive(Debug)]
struct Open {
    shared: Arc<Shared>,
    cuts: watch::Receiver<Cut>,
}

impl Open {
    fn new(shared: &Arc<Shared>) -> Self {
        // Before it is counted: who sees the count may cut.
        let cuts = shared.cut.subscribe();
        shared.accepted.fetch_add(1, Ordering::AcqRel);
        shared.open.fetch_add(1, Ordering::AcqRel);
        shared.changed.send_replace(());
        Self {
            shared: Arc::clone(shared),
            cuts,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::AcqRel);
        self.shared.changed.send_replace(());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let open = Open::new(&shared);
                    let (target, plan) = shared.next_plan();
                    connections.spawn(connection::serve(stream, target, plan, open));
                }
                Err(error) => {
                    warn!(%error, "accept failed");
                    sleep(Duration::from_millis(10)).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    warn!(%error, "a relay task failed");
                }
            }
        }
    }
}
