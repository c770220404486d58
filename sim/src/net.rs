//! A network without sockets: connections that keep their order, between hosts that need not be there.
//!
//! Each piece takes a time that is drawn for it, so pieces of different connections overtake one another and those of
//! one do not. While the way between two hosts is cut, what is sent waits, as it does with TCP, and goes on when it
//! is whole again. A connection may be reset at any time, and what was under way on it is lost then. A host that
//! dies resets its connections, or says nothing any more; then the other side finds out late, or by sending something.

mod listener;
mod state;
mod stream;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::{Clock, Moment};
use crate::random::Random;

pub use listener::Listener;
pub use state::Death;
use state::{Knock, State};
pub use stream::Stream;

/// A host, by its number in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// A handle; clones are the same network.
#[derive(Clone)]
pub struct Net(Arc<Mutex<State>>);

/// A network as one host sees it.
#[derive(Clone)]
pub struct Port {
    pub(crate) net: Net,
    pub(crate) host: HostId,
    pub(crate) clock: Clock,
}

/// The shortest time from one host to another. A step of the simulation is not longer.
pub const SHORTEST: Duration = Duration::from_millis(5);

impl Net {
    /// One between hosts of these names.
    pub fn new(names: Vec<String>, random: Random) -> Self {
        Self(Arc::new(Mutex::new(State::new(names, random))))
    }

    /// What a host is given when it starts.
    pub fn start(&self, host: HostId, clock: Clock) -> Port {
        self.with(|state| state.start(host));
        Port {
            net: self.clone(),
            host,
            clock,
        }
    }

    /// Tells what time it is where no host runs.
    pub fn at(&self, moment: Moment) {
        self.with(|state| state.round = moment);
    }

    /// A host dies. What it still does while it is put away is seen by nobody.
    pub fn kill(&self, host: HostId, death: Death) {
        self.with(|state| state.kill(host, death));
    }

    /// Cuts the way from one host to another, or makes it whole.
    pub fn cut(&self, from: HostId, to: HostId, is_cut: bool) {
        self.with(|state| state.cut(from, to, is_cut));
    }

    /// How much longer everything takes from one host to another.
    pub fn slow(&self, from: HostId, to: HostId, by: Duration) {
        self.with(|state| state.slow(from, to, by));
    }

    /// Resets every connection between two hosts. What is under way is lost.
    pub fn reset(&self, one: HostId, other: HostId) {
        self.with(|state| state.reset(one, other));
    }

    /// How many connections of a host are open.
    pub fn open(&self, host: HostId) -> usize {
        self.with(|state| state.open(host))
    }

    /// Changes the state. Whoever is woken by it is woken when that is done: a waker may be the last of its task.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (done, woken) = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let done = change(&mut state);
            (done, std::mem::take(&mut state.woken))
        };
        woken.into_iter().for_each(std::task::Waker::wake);
        done
    }
}

impl Port {
    /// Listens on a port of this host.
    pub fn listen(&self, port: u16) -> Listener {
        Listener::new(self.clone(), port)
    }

    /// Connects to a port of a host, by its name.
    ///
    /// # Errors
    /// Nobody listens there. Of a host that is silent nothing is heard.
    pub async fn connect(self, host: String, port: u16) -> io::Result<Stream> {
        let to = self.net.with(|state| state.find(&host));
        let to = to.ok_or(io::ErrorKind::NotFound)?;
        loop {
            let now = self.clock.now();
            match self.net.with(|state| state.knock(self.host, to, port, now)) {
                Knock::Opened { conn, after } => {
                    // It is ours from here on, and is closed should nobody wait for it any more.
                    let stream = Stream::new(self, conn, 0);
                    sleep(after).await;
                    return Ok(stream);
                }
                Knock::Refused { after } => {
                    sleep(after).await;
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                // As the first piece of TCP is sent again.
                Knock::Silence => sleep(Duration::from_millis(200)).await,
            }
        }
    }
}
