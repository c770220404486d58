//! Several backends that answer alike, and a server in front of them.

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_generation::migration::Policy;
use streamweld_journal::Journal;
use streamweld_mock::{Mock, MockConfig, Request, Script};
use streamweld_server::Config;
use streamweld_upstream::fleet::{Engine, Spec};

use crate::harness::Replica;

/// The group of twins.
pub const GROUP: &str = "twins";

/// Backends that answer from the same scripts, and a server in front of them. All end with it.
///
/// Which of them is asked is drawn. What the first attempt is answered is not: the scripts of [`Twins::next`] are used
/// up in the order of the attempts, whoever is asked.
pub struct Twins {
    /// One for each backend. Scripts, record and gates are those of all.
    pub mocks: Vec<Mock>,
    /// The server.
    pub replica: Replica,
}

/// What is changed of what an operator says of a backend, which is counted from 0.
type Change = Box<dyn Fn(usize, &mut Spec) + Send>;

/// What twins start with.
pub struct TwinsSetup {
    script: Script,
    count: usize,
    policy: Policy,
    specs: Change,
    config: Box<dyn FnOnce(&mut Config) + Send>,
    journal: Option<(Arc<dyn Journal>, HealBounds)>,
}

impl TwinsSetup {
    /// Two backends in one group, which answer with `script` where nothing else is said, and may go on by prefill.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self {
            script,
            count: 2,
            policy: Policy::Prefill,
            specs: Box::new(|_, _| {}),
            config: Box::new(|_| {}),
            journal: None,
        }
    }

    /// So many backends.
    #[must_use]
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// Another policy of their group.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What the operator says of each, counted from 0.
    #[must_use]
    pub fn specs(mut self, change: impl Fn(usize, &mut Spec) + Send + 'static) -> Self {
        self.specs = Box::new(change);
        self
    }

    /// Another configuration than the default.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        self.config = Box::new(change);
        self
    }

    /// Another journal than the memory one.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>, heal: HealBounds) -> Self {
        self.journal = Some((journal, heal));
        self
    }

    /// Starts them.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start(self) -> Twins {
        let mocks = twins(self.script.clone(), self.count).await;
        let engine = engine(&self.script);
        let specs: Vec<Spec> = mocks
            .iter()
            .zip('a'..)
            .enumerate()
            .map(|(at, (mock, name))| {
                let mut spec = spec(mock, name, engine);
                (self.specs)(at, &mut spec);
                spec
            })
            .collect();
        let (policy, config) = (self.policy, self.config);
        let change = |all: &mut Config| {
            all.backends = specs;
            // Nobody is up again by chance while a story is told.
            all.fleet.probe_every = Duration::from_secs(3600);
            all.migration.groups.insert(GROUP.to_owned(), policy);
            all.migration.vouched.insert(GROUP.to_owned());
            config(all);
        };
        let (journal, heal) = self.journal.unzip();
        let replica = Replica::start(&mocks[0], change, journal, heal.unwrap_or_default()).await;
        Twins { mocks, replica }
    }
}

/// Mocks that answer from the same scripts.
///
/// # Panics
/// When a port cannot be had.
pub async fn twins(script: Script, count: usize) -> Vec<Mock> {
    let config = MockConfig {
        default: script,
        ..MockConfig::default()
    };
    let first = Mock::bind("127.0.0.1:0", config).await;
    let mut mocks = vec![first.expect("a port for the mock")];
    for _ in 1..count {
        let twin = mocks[0].twin().await;
        mocks.push(twin.expect("a port for the mock"));
    }
    mocks
}

/// What an operator says of a mock in the group of twins.
///
/// # Panics
/// Never: the mock has a plain URL.
#[must_use]
pub fn spec(mock: &Mock, name: char, engine: Engine) -> Spec {
    let url = mock.url().parse().expect("the mock has a plain URL");
    Spec {
        group: Some(GROUP.to_owned()),
        ..Spec::new(name, url, engine)
    }
}

/// The engine that a mock with this script is.
#[must_use]
pub fn engine(script: &Script) -> Engine {
    match script.engine {
        Some(streamweld_mock::Engine::Vllm) => Engine::Vllm,
        Some(streamweld_mock::Engine::Sglang) => Engine::Sglang,
        Some(streamweld_mock::Engine::LlamaCpp) => Engine::LlamaCpp,
        Some(streamweld_mock::Engine::Anthropic) => Engine::Anthropic,
        None => Engine::Unknown,
    }
}

impl Twins {
    /// The next attempts are answered with these, in order; what comes behind them with the script of all.
    pub fn next(&self, scripts: impl IntoIterator<Item = Script>) {
        for script in scripts {
            self.mocks[0].push_script(script);
        }
    }

    /// The attempts so far, in order, at whichever backend.
    #[must_use]
    pub fn attempts(&self) -> Vec<Request> {
        let mut requests = self.mocks[0].recorder().requests();
        // Tokens are counted beside them.
        let is_attempt = |path: &str| path.contains("/v1/") && !path.ends_with("/count_tokens");
        requests.retain(|request| request.method == "POST" && is_attempt(request.path()));
        requests
    }

    /// Waits until there were so many attempts in all, and gives the last of them.
    ///
    /// # Panics
    /// When there never are.
    pub async fn attempt(&self, number: usize) -> Request {
        let recorder = self.mocks[0].recorder();
        let came = recorder.wait_until(|_| self.attempts().len() >= number);
        came.await.expect("the attempt");
        self.attempts()[number - 1].clone()
    }

    /// The backend that a request came to, counted from 0.
    ///
    /// # Panics
    /// When it came to none of them.
    #[must_use]
    pub fn at(&self, request: &Request) -> usize {
        let host = request.header("host").expect("a host");
        let mut mocks = self.mocks.iter();
        let at = mocks.position(|mock| mock.addr().to_string() == host);
        at.expect("a backend of this name")
    }

    /// The name of that backend.
    #[must_use]
    pub fn name(&self, request: &Request) -> String {
        let name = ('a'..).nth(self.at(request));
        name.map(String::from).unwrap_or_default()
    }
}
