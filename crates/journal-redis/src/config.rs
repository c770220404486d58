//! What is kept, where and for how long.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_journal::{CLAIM_TIME, Level, Window, WindowConfig};

use crate::keys::Prefix;
use crate::link::Timing;
use crate::relay::Relay;

/// How the journal uses Redis.
#[derive(Clone)]
pub struct Config {
    /// What the names of all keys begin with. Replicas that serve the same clients have the same.
    pub prefix: Prefix,
    /// How long a log without an end is kept after its last sign of life. It has to be longer than any silence of a
    /// backend; what a replica left behind that died stays in Redis for as long.
    pub live: Duration,
    /// How long a finished generation can be read. Longer costs memory of Redis.
    pub retention: Duration,
    /// How long after that its id is remembered, so that a late reader is told `expired` and not `unknown`.
    pub tombstone: Duration,
    /// How long a claim lives that is neither renewed nor followed by its log.
    pub claim: Duration,
    /// How long a replica must have been silent, throughout, before another one takes it for dead; what it left is
    /// ended within two of them. Shorter finds a death sooner, and takes a replica that stands still, or is cut off from
    /// Redis, for dead sooner, which costs its answers. A replica gives six signs of life in it. All replicas should
    /// have the same.
    pub lease: Duration,
    /// Bytes of all windows in this process. When live ones alone exceed it, new generations are served without
    /// durability.
    pub total: u64,
    /// How long the window of a finished generation is kept here after it was read or written, so that readers who
    /// come soon after each other cost Redis one reading; not for longer than `retention` after its end.
    pub cached: Duration,
    /// How much one generation may hold here, for windows that are filled from Redis.
    pub window: WindowConfig,
    /// How much has to have happened before something is committed. A higher level loses less when a server is lost,
    /// and costs the time of a replica or a disk for each batch; while it is not reached, readers get no new ids.
    pub level: Level,
    /// How often the set-up of the server is looked at.
    pub look: Duration,
    /// Deadlines of the connections.
    pub timing: Timing,
    /// How the owner of a generation is asked while Redis is away. Without it its readers here wait.
    pub relay: Option<Arc<dyn Relay>>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("prefix", &self.prefix)
            .field("lease", &self.lease)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// How long the window of a generation that has ended may be read here, from now on. Its retention counts from its end
    /// by the clock of who wrote that: a clock that differs makes this shorter, or leaves it at `cached` from now.
    pub(crate) fn cached_for(&self, window: &Window) -> Duration {
        let since = window.last_time();
        let since = since.and_then(|at| SystemTime::now().duration_since(at).ok());
        let left = self.retention.saturating_sub(since.unwrap_or_default());
        self.cached.min(left)
    }
}

impl Default for Config {
    fn default() -> Self {
        let retention = Duration::from_secs(600);
        Self {
            prefix: Prefix::default(),
            live: Duration::from_secs(2 * 3600),
            retention,
            tombstone: retention,
            claim: CLAIM_TIME,
            lease: Duration::from_secs(10),
            total: 512 << 20,
            cached: Duration::from_secs(10),
            window: WindowConfig::default(),
            level: Level::Async,
            look: Duration::from_secs(60),
            timing: Timing::default(),
            relay: None,
        }
    }
}
