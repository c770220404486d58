//! What a scraper reads, by the names that `docs/metrics.md` lists.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use streamweld_generation::{Counters, Handle};
use streamweld_telemetry::Counters as Spans;
use streamweld_upstream::fleet::{MemberState, Tally};

use crate::accept::Name;
use crate::app::App;
use crate::error::ErrorCode;
use crate::panics::Panics;
use crate::process::Process;

/// The metrics of one server.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) readers: Counter,
    pub(crate) joined: Counter,
    refusals: Family<CodeLabels, Counter>,
    running: Gauge,
    readers_now: Gauge,
    journal_bytes: Gauge,
    journal_generations: Family<StateLabels, Gauge>,
    early_evictions: Counter,
    journal_info: Family<JournalLabels, Gauge>,
    journal_checks: Family<CheckLabels, Gauge>,
    ready: Gauge,
    process: Process,
    config_taken: Gauge,
    config_taken_at: Gauge,
    backend_states: Family<BackendStateLabels, Gauge>,
    backend_in_flight: Family<BackendLabels, Gauge>,
    attempts: Family<AttemptLabels, Counter>,
    dropped_lines: Counter,
    connections: Family<ListenerLabels, Gauge>,
    certificates: Family<ListenerLabels, Gauge>,
    panics: Family<TaskLabels, Counter>,
    /// How many there are.
    lines: OnceLock<fn() -> u64>,
    /// What is counted beside the server.
    beside: OnceLock<Registry>,
    /// One scraper at a time: what is cleared is there again before the next one looks.
    scraped: Mutex<()>,
}

/// Every state that a backend can be shown in.
const STATES: [MemberState; 5] = [
    MemberState::Starting,
    MemberState::Up,
    MemberState::Quarantined,
    MemberState::Down,
    MemberState::Draining,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendStateLabels {
    backend: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    backend: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    backend: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JournalLabels {
    journal: &'static str,
    level: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    check: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// Counts a connection for as long as it is open.
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new(counters: &Counters, spans: &Spans) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            readers: Counter::default(),
            joined: Counter::default(),
            refusals: Family::default(),
            running: Gauge::default(),
            readers_now: Gauge::default(),
            journal_bytes: Gauge::default(),
            journal_generations: Family::default(),
            early_evictions: Counter::default(),
            journal_info: Family::default(),
            journal_checks: Family::default(),
            ready: Gauge::default(),
            process: Process::default(),
            config_taken: Gauge::default(),
            config_taken_at: Gauge::default(),
            backend_states: Family::default(),
            backend_in_flight: Family::default(),
            attempts: Family::default(),
            dropped_lines: Counter::default(),
            connections: Family::default(),
            certificates: Family::default(),
            panics: Family::default(),
            lines: OnceLock::new(),
            beside: OnceLock::new(),
            scraped: Mutex::default(),
        };
        let registry = &mut metrics.registry;
        counters.register(registry);
        spans.register(registry);
        registry.register(
            "streamweld_readers_attached",
            "Responses that read a generation",
            metrics.readers.clone(),
        );
        registry.register(
            "streamweld_retries_joined",
            "Repeated requests that joined a running generation",
            metrics.joined.clone(),
        );
        registry.register(
            "streamweld_requests_refused",
            "Requests answered with an error of the proxy, by code",
            metrics.refusals.clone(),
        );
        registry.register(
            "streamweld_generations_running",
            "Generations and candidates with a producer now",
            metrics.running.clone(),
        );
        registry.register(
            "streamweld_readers",
            "Clients that read a running generation, or wait for its head, now",
            metrics.readers_now.clone(),
        );
        registry.register(
            "streamweld_journal_bytes",
            "Bytes that the journal holds",
            metrics.journal_bytes.clone(),
        );
        registry.register(
            "streamweld_journal_generations",
            "Generations in the journal, by state",
            metrics.journal_generations.clone(),
        );
        registry.register(
            "streamweld_journal_early_evictions",
            "Finished generations let go before their retention ended",
            metrics.early_evictions.clone(),
        );
        registry.register(
            "streamweld_journal_info",
            "1 for what the journal is and the level that it reaches",
            metrics.journal_info.clone(),
        );
        registry.register(
            "streamweld_journal_check",
            "1 while something is wrong with what the journal is kept in, by check",
            metrics.journal_checks.clone(),
        );
        registry.register(
            "streamweld_ready",
            "1 while new generations are accepted",
            metrics.ready.clone(),
        );
        registry.register(
            "streamweld_config_last_reload_successful",
            "1 while the settings that were read last are in use",
            metrics.config_taken.clone(),
        );
        registry.register(
            "streamweld_config_last_reload_success_timestamp_seconds",
            "When settings were taken last, in seconds since 1970",
            metrics.config_taken_at.clone(),
        );
        registry.register(
            "streamweld_backend_state",
            "1 for the state that a backend is in, 0 for the others",
            metrics.backend_states.clone(),
        );
        registry.register(
            "streamweld_backend_in_flight",
            "Requests that a backend has now",
            metrics.backend_in_flight.clone(),
        );
        registry.register(
            "streamweld_attempts",
            "Requests to a backend, by what came of them",
            metrics.attempts.clone(),
        );
        registry.register(
            "streamweld_log_lines_dropped",
            "Lines of the log that could not be written",
            metrics.dropped_lines.clone(),
        );
        registry.register(
            "streamweld_connections",
            "Connections that are open, by listener",
            metrics.connections.clone(),
        );
        registry.register(
            "streamweld_tls_certificate_expiry_timestamp_seconds",
            "When the certificate of a listener ends, in seconds since 1970",
            metrics.certificates.clone(),
        );
        registry.register(
            "streamweld_panics",
            "Tasks that a fault of this program has ended, by what they did",
            metrics.panics.clone(),
        );
        for task in ["connection", "producer"] {
            // There from the beginning, so that the first is a change.
            let _ = metrics.panics.get_or_create(&TaskLabels { task });
        }
        metrics.process.register(&mut metrics.registry);
        let build = Family::<BuildLabels, Gauge>::default();
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&BuildLabels { version }).set(1);
        metrics
            .registry
            .register("streamweld_build_info", "1: which version runs", build);
        metrics.config_taken();
        metrics
    }

    /// Settings were taken.
    pub(crate) fn config_taken(&self) {
        self.config_taken.set(1);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default().as_secs();
        self.config_taken_at
            .set(i64::try_from(since).unwrap_or(i64::MAX));
    }

    /// Settings were to be taken, and are refused.
    pub(crate) fn config_refused(&self) {
        self.config_taken.set(0);
    }

    /// From now on the log says how many of its lines were dropped.
    pub(crate) fn count_dropped_lines(&self, dropped: fn() -> u64) {
        // There is one log.
        let _ = self.lines.set(dropped);
    }

    pub(crate) fn refused(&self, code: ErrorCode) {
        self.refusals
            .get_or_create(&CodeLabels {
                code: code.as_str(),
            })
            .inc();
    }

    /// A connection to this listener.
    pub(crate) fn connection(&self, of: Name) -> Open {
        let listener = of.as_str();
        let open = self
            .connections
            .get_or_create_owned(&ListenerLabels { listener });
        open.inc();
        Open(open)
    }

    /// Counts the panic of a task that holds it.
    pub(crate) fn panics(&self, task: &'static str) -> Panics {
        Panics(self.panicked(task))
    }

    /// How many of these tasks have panicked.
    pub(crate) fn panicked(&self, task: &'static str) -> Counter {
        self.panics.get_or_create_owned(&TaskLabels { task })
    }

    /// Everything in the Prometheus text format. Gauges are read now, not kept up to date.
    pub(crate) fn render(&self, app: &App) -> String {
        let _one = self.scraped.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = app.shared.journal.usage();
        let running = app.shared.registry.all();
        self.running.set(count(running.len()));
        // Those of other replicas are counted there.
        let here = |handle: &Arc<Handle>| handle.readers().saturating_sub(handle.replicas());
        let readers: usize = running.iter().map(here).sum();
        self.readers_now.set(count(readers + app.followed.all()));
        self.journal_bytes
            .set(i64::try_from(usage.bytes).unwrap_or(i64::MAX));
        for (state, value) in [
            ("live", usage.live),
            ("finished", usage.finished),
            ("tombstone", usage.tombstones),
        ] {
            self.journal_generations
                .get_or_create(&StateLabels { state })
                .set(count(value));
        }
        // The journal counts by itself; the counter is brought up to it.
        let counted = self.early_evictions.get();
        self.early_evictions
            .inc_by(usage.evicted_early.saturating_sub(counted));
        // So it is with the log.
        let dropped = self.lines.get().map_or(0, |dropped| dropped());
        let counted = self.dropped_lines.get();
        self.dropped_lines.inc_by(dropped.saturating_sub(counted));
        let journal = &app.shared.journal;
        // The level may have changed.
        self.journal_info.clear();
        let labels = JournalLabels {
            journal: journal.name(),
            level: journal
                .level()
                .map_or_else(String::new, |level| level.to_string()),
        };
        self.journal_info.get_or_create(&labels).set(1);
        for check in journal.checks() {
            self.journal_checks
                .get_or_create(&CheckLabels { check: check.name })
                .set(i64::from(check.is_wrong));
        }
        self.process.look();
        self.ready.set(i64::from(!app.is_shutting_down()));
        self.look_at_backends(app);
        self.look_at_certificates(app);
        let mut out = String::new();
        let beside = self.beside.get();
        let written = [Some(&self.registry), beside]
            .into_iter()
            .flatten()
            .try_for_each(|registry| text::encode_registry(&mut out, registry));
        if written.is_err() {
            // Writing into a string cannot fail; a scraper still gets a well-formed answer if it ever does.
            out.clear();
        }
        let _ = out.write_str("# EOF\n");
        out
    }

    /// Gives out what is counted beside the server as well. Only the first is kept.
    pub(crate) fn show(&self, beside: Registry) {
        let _ = self.beside.set(beside);
    }
}

impl Metrics {
    fn look_at_certificates(&self, app: &App) {
        // TLS may have been switched off.
        self.certificates.clear();
        for name in [Name::Data, Name::Admin] {
            let expires = name.tls(&app.settings()).and_then(|tls| tls.expires());
            let Some(Ok(at)) = expires.map(|at| at.duration_since(SystemTime::UNIX_EPOCH)) else {
                continue;
            };
            let listener = name.as_str();
            self.certificates
                .get_or_create(&ListenerLabels { listener })
                .set(i64::try_from(at.as_secs()).unwrap_or(i64::MAX));
        }
    }

    fn look_at_backends(&self, app: &App) {
        let fleet = &app.backends.fleet;
        // Those that DNS names come and go.
        self.backend_states.clear();
        self.backend_in_flight.clear();
        for member in fleet.snapshot() {
            let backend = member.name;
            for state in STATES {
                let labels = BackendStateLabels {
                    backend: backend.clone(),
                    state: state.as_str(),
                };
                let is_in_it = i64::from(member.state == state);
                self.backend_states.get_or_create(&labels).set(is_in_it);
            }
            self.backend_in_flight
                .get_or_create(&BackendLabels { backend })
                .set(count(member.in_flight));
        }
        // The fleet counts by itself; the counters are brought up to it.
        for Tally {
            backend,
            outcome,
            count,
        } in fleet.tally()
        {
            let counter = self
                .attempts
                .get_or_create_owned(&AttemptLabels { backend, outcome });
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
