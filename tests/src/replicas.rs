//! Two replicas over one journal, in front of one mock.

use std::sync::Arc;

use streamweld_generation::HealBounds;
use streamweld_journal::{Journal, MemoryConfig, WindowConfig};
use streamweld_journal_redis::testing::Server as Redis;
use streamweld_journal_redis::{Config as RedisConfig, RedisJournal, Target};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::Config;

use crate::harness::Replica;
use crate::linked::Link;

/// What two replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A journal in this process, with faults between the two.
    Link,
    /// A real Redis of their own.
    Redis,
}

/// Two replicas, which know of each other by their journal only.
pub struct Pair {
    /// The backend of both.
    pub mock: Mock,
    /// The one that most stories begin on.
    pub one: Replica,
    /// The other one.
    pub other: Replica,
    between: Between,
}

/// What is between them.
enum Between {
    Link(Arc<Link>),
    Redis(Redis),
}

impl Pair {
    /// Two with their defaults, in front of a mock that answers with `script`.
    pub async fn start(over: Over, script: Script) -> Self {
        Self::with(over, script, |_| {}).await
    }

    /// Two with another configuration.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn with(over: Over, script: Script, change: impl Fn(&mut Config)) -> Self {
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
        let (between, [one, other]) = journals(over, &asked).await;
        Self {
            one: Replica::start(&mock, &change, Some(one), HealBounds::default()).await,
            other: Replica::start(&mock, &change, Some(other), HealBounds::default()).await,
            mock,
            between,
        }
    }

    /// What is between them, for faults there.
    ///
    /// # Panics
    /// When they are not linked in this process.
    pub fn link(&self) -> &Link {
        match &self.between {
            Between::Link(link) => link,
            Between::Redis(_) => panic!("a real Redis is between them"),
        }
    }

    /// The server between them, for faults of it.
    ///
    /// # Panics
    /// When there is none.
    pub fn redis(&mut self) -> &mut Redis {
        match &mut self.between {
            Between::Redis(server) => server,
            Between::Link(_) => panic!("no Redis is between them"),
        }
    }
}

/// The journal of each of the two.
async fn journals(over: Over, config: &Config) -> (Between, [Arc<dyn Journal>; 2]) {
    match over {
        Over::Link => {
            let (link, [one, other]) = Link::pair(MemoryConfig {
                retention: config.journal.retention,
                tombstone: config.journal.retention,
                max_total: config.journal.total,
                claim: config.journal.claim,
            });
            (Between::Link(link), [Arc::new(one), Arc::new(other)])
        }
        Over::Redis => {
            let server = Redis::new().await;
            let journal = async || {
                let target = Target::parse(&server.url()).expect("the URL of a server");
                let journal = RedisJournal::start(
                    target,
                    RedisConfig {
                        retention: config.journal.retention,
                        tombstone: config.journal.retention,
                        total: config.journal.total,
                        claim: config.journal.claim,
                        window: WindowConfig {
                            max_bytes: config.journal.per_generation,
                        },
                        ..RedisConfig::default()
                    },
                );
                let connected = journal.connected(std::time::Duration::from_secs(10)).await;
                connected.expect("the server answers");
                Arc::new(journal) as Arc<dyn Journal>
            };
            let journals = [journal().await, journal().await];
            (Between::Redis(server), journals)
        }
    }
}
