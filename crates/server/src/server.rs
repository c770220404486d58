//! A server: two listeners, what they share, and how it shuts down.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry as MetricsRegistry;
use streamweld_generation::{
    Counters, CredentialHeaders, HealBounds, Limits, Onlookers, Registry, RetryWindow, Shared,
    steady_now,
};
use streamweld_journal::Journal;
use streamweld_telemetry::{Counters as Spans, Exporter, Tracer};
use streamweld_upstream::fleet::SpecError;
use streamweld_upstream::{Client, UpstreamConfig};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::accept::{Door, Name};
use crate::app::App;
use crate::backends::Backends;
use crate::config::Config;
use crate::connection::{Http, Phase};
use crate::descriptors::Descriptors;
use crate::feed::Feed;
use crate::leaving::leave;
use crate::listen::Listen;
use crate::metrics::Metrics;
use crate::owned_here::OwnedHere;
use crate::settings::Settings;
use crate::traced::Traces;
use crate::{admin, edge, examined, orders, unhealthy};

/// A server that has its listeners, and serves once it is run.
pub struct Server<L = TcpListener> {
    app: Arc<App>,
    data: L,
    admin: L,
    upstream: UpstreamConfig,
    descriptors: Descriptors,
    exporter: Option<Exporter>,
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A listener cannot be had.
    #[error("cannot listen on {addr}")]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The list of backends cannot be used.
    #[error("cannot use the backends: {}", all(.0))]
    Backends(Vec<SpecError>),
    /// The way to the backend cannot be set up.
    #[error("cannot set up the connection to the backend")]
    Upstream(#[from] streamweld_upstream::ConfigError),
    /// The way to the collector of traces cannot be set up.
    #[error("cannot send traces")]
    Traces(#[from] streamweld_telemetry::ConfigError),
}

fn all(errors: &[SpecError]) -> String {
    let errors = errors.iter().map(ToString::to_string);
    errors.collect::<Vec<_>>().join("; ")
}

/// How often expiry is looked after.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How long connections get at the end of a shutdown to send what their readers were given.
const FLUSH: Duration = Duration::from_secs(2);

impl Server {
    /// Takes the listeners, with the memory journal.
    ///
    /// # Errors
    /// A listener cannot be had, or the TLS set-up for the backend is unusable.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let journal = config.journal.memory();
        Self::bind_with(config, Arc::new(journal), HealBounds::default()).await
    }

    /// Takes the listeners, with a journal of the caller's.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub async fn bind_with(
        config: Config,
        journal: Arc<dyn Journal>,
        heal: HealBounds,
    ) -> Result<Self, BindError> {
        let listen = |addr| async move {
            TcpListener::bind(addr)
                .await
                .map_err(|source| BindError::Listen { addr, source })
        };
        let data = listen(config.listen).await?;
        let admin = listen(config.admin_listen).await?;
        Self::on(data, admin, config, journal, heal)
    }
}

impl<L: Listen> Server<L> {
    /// A server on listeners of the caller's; those of `config` do not count.
    ///
    /// # Errors
    /// The backends cannot be used, or the TLS set-up for them.
    pub fn on(
        data: L,
        admin: L,
        config: Config,
        journal: Arc<dyn Journal>,
        heal: HealBounds,
    ) -> Result<Self, BindError> {
        let fixed = Limits {
            heal,
            ..Limits::default()
        };
        let settings = Settings::of(&config, &fixed);
        let feed = Feed::new();
        let spans = Spans::default();
        let traced = config.traces.as_ref();
        let traced = traced.map(|config| Tracer::new(config, env!("CARGO_PKG_VERSION"), &spans));
        let (tracer, exporter) = traced.transpose()?.unzip();
        let traces = Traces::new(tracer);
        let counters = Counters {
            onlookers: Onlookers::of([Arc::clone(&feed) as _, Arc::clone(&traces) as _]),
            ..Counters::default()
        };
        let shared = Shared {
            journal,
            registry: Arc::new(Registry::default()),
            retries: Arc::new(RetryWindow::new(config.generation.retry_join)),
            limits: Arc::new(fixed),
            counters: counters.clone(),
        };
        let descriptors = Descriptors::of_process();
        let upstream = UpstreamConfig {
            descriptors_below: descriptors.clients(),
            ..config.upstream
        };
        let client = Client::new(upstream.clone())?;
        let metrics = Metrics::new(&counters, &spans);
        let backends = Backends::new(config.backends, config.fleet).map_err(BindError::Backends)?;
        let credentials = CredentialHeaders::with(config.generation.credential_headers)
            .with_subject(config.generation.trusted_subject_header);
        let app = App::new(
            backends,
            client,
            shared,
            credentials,
            settings,
            metrics,
            (feed, traces),
        );
        Ok(Self {
            app,
            data,
            admin,
            upstream,
            descriptors,
            exporter,
        })
    }

    /// By which it is told that its settings have changed.
    #[must_use]
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.app))
    }

    /// Counts the lines that its log has dropped, where there is one that may: as many as `dropped` says in all.
    #[must_use]
    pub fn count_dropped_lines(self, dropped: fn() -> u64) -> Self {
        self.app.metrics.count_dropped_lines(dropped);
        self
    }

    /// Where clients connect.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn data_addr(&self) -> io::Result<SocketAddr> {
        self.data.local_addr()
    }

    /// Where operators connect.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn admin_addr(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }

    /// The generations that are written here, for other replicas.
    #[must_use]
    pub fn owned(&self) -> OwnedHere {
        let shared = &self.app.shared;
        OwnedHere::new(Arc::clone(&shared.registry), Arc::clone(&shared.journal))
    }

    /// Shows metrics of what runs beside this server as well. Only the first are kept.
    pub fn show_metrics(&self, beside: MetricsRegistry) {
        self.app.metrics.show(beside);
    }

    /// Serves until `shutdown` resolves, then lets running generations finish within the grace time (protocol.md 8.4).
    /// When it returns, every generation has its terminal and every reader has been given it.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (phase, follow) = watch::channel(Phase::Open);
        let connections = TaskTracker::new();
        let app = Arc::clone(&self.app);
        let sending = self.exporter.map(Sending::of);
        let http = Http::new(&app.settings().edge, app.metrics.panicked("connection"));
        // The set-up of the connections was tried when the server was made.
        let watch = app.backends.fleet.watch(&self.upstream);
        if let Err(error) = &watch {
            tracing::error!(%error, "the backends are not probed");
        }
        let door = |name, descriptors| Door {
            app: Arc::clone(&app),
            name,
            http: http.clone(),
            connections: connections.clone(),
            phase: follow.clone(),
            descriptors,
        };
        let data = door(Name::Data, Some(self.descriptors)).accept(self.data, {
            let app = Arc::clone(&app);
            move |request, peer| edge::handle(Arc::clone(&app), request, peer)
        });
        let admin = door(Name::Admin, None).accept(self.admin, {
            let app = Arc::clone(&app);
            move |request, peer| admin::handle(Arc::clone(&app), request, peer)
        });
        let stop = async {
            shutdown.await;
            app.start_shutdown();
            tracing::info!(running = app.shared.registry.len(), "shutting down");
            let grace = app.settings().shutdown_grace;
            let until = Instant::now() + grace;
            finish_generations(&app, grace).await;
            until
        };
        let until = tokio::select! {
            never = data => match never {},
            never = admin => match never {},
            never = sweep(Arc::clone(&app)) => match never {},
            never = orders::obey(Arc::clone(&app)) => match never {},
            never = examined::look_after(Arc::clone(&app)) => match never {},
            never = unhealthy::look_after(Arc::clone(&app)) => match never {},
            until = stop => until,
        };
        // All that it tells has happened.
        app.feed.close();
        // What passes through may use what is left of the grace time; idle connections close at once.
        phase.send_replace(Phase::Closing);
        connections.close();
        let until = until.max(Instant::now() + FLUSH);
        let journal = &app.shared.journal;
        let (cut, departed) = tokio::join!(
            timeout_at(until, connections.wait()),
            timeout_at(until, journal.depart()),
        );
        if cut.is_err() {
            tracing::warn!(connections = connections.len(), "connections were cut");
        }
        if departed.is_err() {
            tracing::debug!("the other replicas find out by themselves that this one is gone");
        }
        if let Some(sending) = sending {
            sending.finish(until).await;
        }
    }
}

/// The task that sends spans. It ends with this.
struct Sending {
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

impl Sending {
    fn of(exporter: Exporter) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let run = exporter.run(async { drop(stopped.await) });
        Self {
            stop,
            task: AbortOnDropHandle::new(tokio::spawn(run)),
        }
    }

    /// Sends what has ended, for a moment: a collector that hangs makes no shutdown longer than clients do.
    async fn finish(self, until: Instant) {
        drop(self.stop);
        let until = until.min(Instant::now() + FLUSH);
        if timeout_at(until, self.task).await.is_err() {
            tracing::warn!("the last spans were not sent");
        }
    }
}

/// Changes the settings of a server that runs.
#[derive(Clone)]
pub struct Control(Arc<App>);

impl Control {
    /// Lets what can change of these settings hold from now on: for each request that comes, and for generations that begin.
    ///
    /// That is the backends, what is tried when one fails, the admin token, the shutdown grace, TLS for connections that come; of
    /// what clients meet all but how many connections there may be, and their timeouts and sizes; of generations all but `retry_join`, `credential_headers` and `trusted_subject_header`; of the journal
    /// `per_generation`, `request_keys` and `keep_credentials`. The rest stays as it was when the server was made.
    ///
    /// # Errors
    /// The list of backends cannot be used. Then nothing has changed.
    pub fn change(&self, config: Config) -> Result<(), BindError> {
        let Self(app) = self;
        let fleet = &app.backends.fleet;
        fleet.check(&config.backends).map_err(BindError::Backends)?;
        // Whoever sees the backends change finds the settings that belong to them.
        app.change(Settings::of(&config, &app.shared.limits));
        fleet
            .replace(config.backends)
            .map_err(BindError::Backends)?;
        app.metrics.config_taken();
        Ok(())
    }

    /// How long running generations may finish in a shutdown that begins now.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        self.0.settings().shutdown_grace
    }

    /// New settings were to be taken, and are refused before they came here.
    pub fn refused(&self) {
        self.0.metrics.config_refused();
    }
}

/// Waits for what runs; what still runs after the grace time is ended.
async fn finish_generations(app: &Arc<App>, grace: Duration) {
    app.producers.close();
    let until = Instant::now() + grace;
    let finished = async { tokio::join!(leave(app, until), app.producers.wait()) };
    if timeout_at(until, finished).await.is_ok() {
        return;
    }
    for handle in app.shared.registry.all() {
        handle.shut_down();
    }
    if timeout(FLUSH, app.producers.wait()).await.is_err() {
        tracing::warn!(tasks = app.producers.len(), "tasks were cut");
    }
}

async fn sweep(app: Arc<App>) -> std::convert::Infallible {
    let mut tick = interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        app.shared.journal.sweep(steady_now());
        app.shared.retries.prune();
    }
}
