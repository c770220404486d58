//! A server in front of a mock, on ports that the kernel gives.

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal::Journal;
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::{Config, Server};
use streamweld_upstream::fleet::Spec;
use streamweld_upstream::{Backend, BackendUrl};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;

/// What a story starts with.
pub struct Setup {
    mock: MockConfig,
    config: Box<dyn FnOnce(&mut Config) + Send>,
    journal: Option<Arc<dyn Journal>>,
    heal: HealBounds,
}

impl Setup {
    /// A mock that answers with `script`, and a server with its defaults.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self {
            mock: MockConfig {
                default: script,
                ..MockConfig::default()
            },
            config: Box::new(|_| {}),
            journal: None,
            heal: HealBounds::default(),
        }
    }

    /// The mock as a whole.
    #[must_use]
    pub fn mock(mut self, config: MockConfig) -> Self {
        self.mock = config;
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
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Other bounds of healing.
    #[must_use]
    pub fn heal(mut self, bounds: HealBounds) -> Self {
        self.heal = bounds;
        self
    }

    /// Starts both.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start(self) -> Harness {
        let mock = Mock::bind("127.0.0.1:0", self.mock)
            .await
            .expect("a port for the mock");
        Self::start_before(self.config, self.journal, self.heal, mock).await
    }

    async fn start_before(
        change: Box<dyn FnOnce(&mut Config) + Send>,
        journal: Option<Arc<dyn Journal>>,
        heal: HealBounds,
        mock: Mock,
    ) -> Harness {
        let replica = Replica::start(&mock, change, journal, heal).await;
        Harness {
            mock,
            client: replica.client.clone(),
            admin: replica.admin.clone(),
            replica,
        }
    }
}

/// A running server. It ends with this.
pub struct Replica {
    /// A client of the data listener.
    pub client: Client,
    /// A client of the admin listener.
    pub admin: Client,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Replica {
    /// A server in front of these backends.
    ///
    /// # Panics
    /// When a port cannot be had, or there is no backend.
    pub async fn in_front_of(backends: Vec<Spec>, change: impl FnOnce(&mut Config)) -> Self {
        let url = backends[0].url.clone();
        let change = |config: &mut Config| {
            config.backends = backends;
            change(config);
        };
        Self::begin(url, change, None, HealBounds::default()).await
    }

    pub(crate) async fn start(
        mock: &Mock,
        change: impl FnOnce(&mut Config),
        journal: Option<Arc<dyn Journal>>,
        heal: HealBounds,
    ) -> Self {
        let url = mock.url().parse().expect("the mock has a plain URL");
        Self::begin(url, change, journal, heal).await
    }

    async fn begin(
        url: BackendUrl,
        change: impl FnOnce(&mut Config),
        journal: Option<Arc<dyn Journal>>,
        heal: HealBounds,
    ) -> Self {
        let mut config = Config::new(Backend::named("llm", url));
        config.listen = ([127, 0, 0, 1], 0).into();
        config.admin_listen = ([127, 0, 0, 1], 0).into();
        config.shutdown_grace = Duration::ZERO;
        change(&mut config);
        let server = match journal {
            Some(journal) => Server::bind_with(config, journal, heal).await,
            None => Server::bind(config).await,
        }
        .expect("ports for the server");
        let client = Client::new(server.data_addr().expect("bound"));
        let admin = Client::new(server.admin_addr().expect("bound"));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self {
            client,
            admin,
            stop: Some(stop),
            task,
        }
    }

    /// Begins the shutdown, as SIGTERM does.
    pub fn begin_shutdown(&mut self) {
        self.stop.take();
    }

    /// Waits until the server has shut down.
    ///
    /// # Panics
    /// When it does not within the deadline, or it panicked.
    pub async fn shut_down(mut self) {
        self.begin_shutdown();
        let task = &mut self.task;
        crate::patience(task)
            .await
            .expect("the server did not panic");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A running server in front of a mock. Both end with it.
pub struct Harness {
    /// The backend.
    pub mock: Mock,
    /// A client of the data listener.
    pub client: Client,
    /// A client of the admin listener.
    pub admin: Client,
    replica: Replica,
}

impl Harness {
    /// A server with its defaults in front of a mock that answers with `script`.
    pub async fn start(script: Script) -> Self {
        Setup::new(script).start().await
    }

    /// Begins the shutdown, as SIGTERM does.
    pub fn begin_shutdown(&mut self) {
        self.replica.begin_shutdown();
    }

    /// Waits until the server has shut down.
    ///
    /// # Panics
    /// When it does not within the deadline, or it panicked.
    pub async fn shut_down(self) {
        self.replica.shut_down().await;
    }
}
