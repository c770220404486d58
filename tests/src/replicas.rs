//! Two replicas over one journal, in front of one mock.

use std::sync::Arc;

use streamweld_generation::HealBounds;
use streamweld_journal::{Journal, MemoryConfig};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::Config;

use crate::harness::Replica;
use crate::linked::Link;

/// Two replicas, which know of each other by their journal only.
pub struct Pair {
    /// The backend of both.
    pub mock: Mock,
    /// The one that most stories begin on.
    pub one: Replica,
    /// The other one.
    pub other: Replica,
    /// What is between them.
    pub link: Arc<Link>,
}

impl Pair {
    /// Two with their defaults, in front of a mock that answers with `script`.
    pub async fn start(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    /// Two with another configuration.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn with(script: Script, change: impl Fn(&mut Config)) -> Self {
        let config = MockConfig {
            default: script,
            ..MockConfig::default()
        };
        let mock = Mock::bind("127.0.0.1:0", config)
            .await
            .expect("a port for the mock");
        let mut asked = Config::new(streamweld_upstream::Backend::named(
            "llm",
            mock.url().parse().expect("the mock has a plain URL"),
        ));
        change(&mut asked);
        let (link, [one, other]) = journals(&asked);
        Self {
            one: Replica::start(&mock, &change, Some(one), HealBounds::default()).await,
            other: Replica::start(&mock, &change, Some(other), HealBounds::default()).await,
            mock,
            link,
        }
    }
}

/// The journal of each of the two. Which one it is, is decided here alone.
fn journals(config: &Config) -> (Arc<Link>, [Arc<dyn Journal>; 2]) {
    let (link, [one, other]) = Link::pair(MemoryConfig {
        retention: config.journal.retention,
        tombstone: config.journal.retention,
        max_total: config.journal.total,
        claim: config.journal.claim,
    });
    (link, [Arc::new(one), Arc::new(other)])
}
