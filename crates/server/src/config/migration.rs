//! What is done when a backend fails.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use streamweld_generation::migration::Policy;

/// How often, how long and by which means an answer is tried to be kept whole.
#[derive(Clone, Debug)]
pub struct MigrationConfig {
    /// Requests for one answer before its first event, on as many backends. Default 3: each costs the reader time, and a
    /// request that three backends fail on is mostly at fault itself.
    pub attempts: NonZeroU32,
    /// How often one answer may move to another backend behind its first event. Default 3.
    pub moves: u32,
    /// How long an answer that was cut waits for a backend to go on. Default 10 s: a restart of one of a few is often
    /// over by then, and readers that hear nothing for longer give up.
    pub wait: Duration,
    /// The policy of each compatibility group that does not go by the default, which is [`Policy::Exact`]. Backends
    /// without a group never go on with what another began.
    pub groups: BTreeMap<String, Policy>,
    /// Groups whose backends are not examined: the operator vouches for engine and model. Default none. It saves the few
    /// tokens that an examination takes, and with it the proof.
    pub vouched: BTreeSet<String>,
    /// After how long without a first event an attempt counts as stalled. Default never: how long a prompt takes depends
    /// on its length and on the queue.
    pub first_token: Option<Duration>,
    /// After how long without a further event an attempt counts as stalled. Default never.
    pub between_tokens: Option<Duration>,
}

/// Far beyond what any prompt takes that a reader would wait for.
const BEGIN: Duration = Duration::from_secs(60);

impl MigrationConfig {
    pub(crate) fn is_vouched(&self, group: Option<&str>) -> bool {
        group.is_some_and(|group| self.vouched.contains(group))
    }

    /// How long a backend that is to go on may take for the beginning of what it adds.
    pub(crate) fn begin(&self) -> Duration {
        self.first_token.unwrap_or(BEGIN)
    }

    /// What may be done for an answer of this group.
    #[must_use]
    pub fn policy(&self, group: Option<&str>) -> Policy {
        let policy = |group| self.groups.get(group).copied().unwrap_or(Policy::Exact);
        group.map_or(Policy::Off, policy)
    }
}

impl Default for MigrationConfig {
    fn default() -> Self {
        Self {
            attempts: NonZeroU32::new(3).expect("not zero"),
            moves: 3,
            wait: Duration::from_secs(10),
            groups: BTreeMap::new(),
            vouched: BTreeSet::new(),
            first_token: None,
            between_tokens: None,
        }
    }
}
