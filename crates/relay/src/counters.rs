//! What a scraper is told, by the names that `docs/metrics.md` lists.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of a relay. A clone counts the same.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    followed: Gauge,
    told: Gauge,
    failures: Family<ReasonLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Why a relay is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no connection to the other replica.
    Connect,
    /// It did not show the right certificate, or was not let in.
    Tls,
    /// It did not answer in time.
    Timeout,
    /// It gave an answer that is none.
    BadAnswer,
    /// What it told broke off.
    Cut,
    /// Somebody was not let in here.
    Peer,
}

impl Failure {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::BadAnswer => "bad_answer",
            Self::Cut => "cut",
            Self::Peer => "peer",
        }
    }
}

impl Counters {
    /// Makes them visible.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "streamweld_relay_followed",
            "Generations that are followed at their owner now, because Redis is away",
            self.followed.clone(),
        );
        registry.register(
            "streamweld_relay_told",
            "Generations that other replicas are told of now, one for each replica",
            self.told.clone(),
        );
        registry.register(
            "streamweld_relay_failures",
            "Attempts to ask another replica, or to be asked, that came to nothing, by reason",
            self.failures.clone(),
        );
    }

    pub(crate) fn failed(&self, failure: Failure) {
        let reason = failure.as_str();
        self.failures.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub(crate) fn followed(&self) -> Now {
        Now::new(&self.followed)
    }

    pub(crate) fn told(&self) -> Now {
        Now::new(&self.told)
    }
}

/// Counts one for as long as it lives.
#[derive(Debug)]
pub(crate) struct Now(Gauge);

impl Now {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Now {
    fn drop(&mut self) {
        self.0.dec();
    }
}
