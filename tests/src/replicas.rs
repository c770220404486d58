//! Two replicas, or more, over one journal, in front of one mock.

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal::{Journal, MemoryConfig, WindowConfig};
use streamweld_journal_redis::testing::{Cluster, Server as Redis, Setup as RedisSetup};
use streamweld_journal_redis::{Config as RedisConfig, RedisJournal, Target};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::Config;

use crate::client::Client;
use crate::harness::Replica;
use crate::linked::Link;

/// What two replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A journal in this process, with faults between the two.
    Link,
    /// A real Redis of their own.
    Redis,
    /// A real Redis Cluster of their own, of three nodes.
    Cluster,
    /// The same, with a replica for each node.
    ClusterWithReplicas,
}

/// Two replicas, which know of each other by their journal only.
pub struct Pair {
    /// The backend of both.
    pub mock: Mock,
    /// The one that most stories begin on.
    pub one: Replica,
    /// The other one.
    pub other: Replica,
    /// Those that were asked for beside the two.
    pub more: Vec<Replica>,
    between: Between,
}

/// What is between them.
enum Between {
    Link(Arc<Link>),
    Redis(Redis),
    /// The story has it.
    Elsewhere,
    Cluster(Cluster),
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
    pub async fn with(
        over: Over,
        script: Script,
        change: impl Fn(&mut Config) + Send + 'static,
    ) -> Self {
        PairSetup::new(over, script).config(change).start().await
    }

    /// Clients of all of them.
    #[must_use]
    pub fn clients(&self) -> Vec<Client> {
        let two = [&self.one, &self.other].into_iter();
        let all = two.chain(&self.more);
        all.map(|replica| replica.client.clone()).collect()
    }

    /// What is between them, for faults there.
    ///
    /// # Panics
    /// When they are not linked in this process.
    pub fn link(&self) -> &Link {
        match &self.between {
            Between::Link(link) => link,
            Between::Redis(_) | Between::Cluster(_) | Between::Elsewhere => {
                panic!("a real Redis is between them")
            }
        }
    }

    /// The server between them, for faults of it.
    ///
    /// # Panics
    /// When there is none.
    pub fn redis(&mut self) -> &mut Redis {
        match &mut self.between {
            Between::Redis(server) => server,
            Between::Link(_) | Between::Cluster(_) | Between::Elsewhere => {
                panic!("no Redis alone of theirs is between them")
            }
        }
    }

    /// The cluster between them, for faults of it.
    ///
    /// # Panics
    /// When there is none.
    pub fn cluster(&mut self) -> &mut Cluster {
        match &mut self.between {
            Between::Cluster(cluster) => cluster,
            Between::Link(_) | Between::Redis(_) | Between::Elsewhere => {
                panic!("no cluster is between them")
            }
        }
    }
}

/// What two replicas start with.
pub struct PairSetup {
    over: Over,
    mock: MockConfig,
    config: Box<dyn Fn(&mut Config) + Send>,
    heal: HealBounds,
    server: RedisSetup,
    at: Option<String>,
    redis: RedisConfig,
    more: usize,
}

impl PairSetup {
    /// Their defaults, in front of a mock that answers with `script`.
    #[must_use]
    pub fn new(over: Over, script: Script) -> Self {
        let mut heal = HealBounds::default();
        // Stories are told while every core is busy. Those about a journal that is away say how soon it counts as that.
        heal.open = Duration::from_secs(3);
        heal.patience = Duration::from_secs(60);
        Self {
            over,
            mock: MockConfig {
                default: script,
                ..MockConfig::default()
            },
            config: Box::new(|_| {}),
            heal,
            server: RedisSetup::new(),
            at: None,
            redis: RedisConfig::default(),
            more: 0,
        }
    }

    /// With so many replicas beside the two, over Redis.
    #[must_use]
    pub fn more(mut self, count: usize) -> Self {
        self.more = count;
        self
    }

    /// Another configuration than the default, of both.
    #[must_use]
    pub fn config(mut self, change: impl Fn(&mut Config) + Send + 'static) -> Self {
        self.config = Box::new(change);
        self
    }

    /// How many requests the mock keeps.
    #[must_use]
    pub fn keep_requests(mut self, count: usize) -> Self {
        self.mock.keep_requests = count;
        self
    }

    /// Other bounds of healing.
    #[must_use]
    pub fn heal(mut self, change: impl FnOnce(&mut HealBounds)) -> Self {
        change(&mut self.heal);
        self
    }

    /// Another Redis than one that keeps everything in memory; of a cluster, each node.
    #[must_use]
    pub fn server(mut self, setup: RedisSetup) -> Self {
        self.server = setup;
        self
    }

    /// A Redis that the story has started itself, instead of one of their own.
    #[must_use]
    pub fn redis_at(mut self, url: String) -> Self {
        self.at = Some(url);
        self
    }

    /// Another use of Redis, apart from what the configuration of the replicas says.
    #[must_use]
    pub fn redis(mut self, change: impl FnOnce(&mut RedisConfig)) -> Self {
        change(&mut self.redis);
        self
    }

    /// Starts them.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start(self) -> Pair {
        let mock = Mock::bind("127.0.0.1:0", self.mock.clone())
            .await
            .expect("a port for the mock");
        let mut asked = Config::new(streamweld_upstream::Backend::named(
            "llm",
            mock.url().parse().expect("the mock has a plain URL"),
        ));
        (self.config)(&mut asked);
        let (between, journals) = self.journals(&asked).await;
        let mut replicas = Vec::new();
        for journal in journals {
            let heal = self.heal.clone();
            replicas.push(Replica::start(&mock, &self.config, Some(journal), heal).await);
        }
        let mut replicas = replicas.into_iter();
        let mut next = || replicas.next().expect("there are two");
        Pair {
            mock,
            one: next(),
            other: next(),
            more: replicas.collect(),
            between,
        }
    }

    /// The journal of each.
    async fn journals(&self, config: &Config) -> (Between, Vec<Arc<dyn Journal>>) {
        match self.over {
            Over::Link => {
                let (link, [one, other]) = Link::pair(MemoryConfig {
                    retention: config.journal.retention,
                    tombstone: config.journal.retention,
                    max_total: config.journal.total,
                    claim: config.journal.claim,
                });
                assert_eq!(self.more, 0, "only two can be linked in this process");
                (Between::Link(link), vec![Arc::new(one), Arc::new(other)])
            }
            Over::Redis => {
                let (between, url) = match &self.at {
                    Some(url) => (Between::Elsewhere, url.clone()),
                    None => {
                        let server = self.server.clone().start().await;
                        let url = server.url();
                        (Between::Redis(server), url)
                    }
                };
                (between, self.each(&url, config).await)
            }
            Over::Cluster | Over::ClusterWithReplicas => {
                let setup = self.server.clone();
                let cluster = match self.over {
                    Over::Cluster => Cluster::with(setup).await,
                    _ => Cluster::with_replicas(setup).await,
                };
                let journals = self.each(&cluster.url(), config).await;
                (Between::Cluster(cluster), journals)
            }
        }
    }

    async fn each(&self, url: &str, config: &Config) -> Vec<Arc<dyn Journal>> {
        let mut journals = Vec::new();
        for _ in 0..2 + self.more {
            journals.push(self.journal(url, config).await);
        }
        journals
    }

    async fn journal(&self, url: &str, config: &Config) -> Arc<dyn Journal> {
        let target = Target::parse(url).expect("the URL of a server");
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
                ..self.redis.clone()
            },
        );
        let connected = journal.connected(Duration::from_secs(10)).await;
        connected.expect("the server answers");
        Arc::new(journal)
    }
}
