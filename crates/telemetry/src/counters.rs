//! What became of spans.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The counters of this crate. They are there, and zero, also where nothing is traced.
#[derive(Clone, Debug)]
pub struct Counters {
    spans: Family<OutcomeLabels, Counter>,
    /// The collector has them.
    pub(crate) sent: Counter,
    /// The queue was full.
    pub(crate) queue_full: Counter,
    /// The collector did not take them.
    pub(crate) not_taken: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl Default for Counters {
    fn default() -> Self {
        let spans = Family::<OutcomeLabels, Counter>::default();
        let of = |outcome| spans.get_or_create_owned(&OutcomeLabels { outcome });
        Self {
            sent: of("sent"),
            queue_full: of("queue_full"),
            not_taken: of("not_taken"),
            spans,
        }
    }
}

impl Counters {
    /// Puts them where the scraper looks.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "streamweld_trace_spans",
            "Spans that ended, by what became of them",
            self.spans.clone(),
        );
    }
}
