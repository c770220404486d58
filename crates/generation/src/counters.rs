//! What a scraper can ask about generations. Counted at starts and ends and per batch, never per event.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::happening::Onlookers;

/// The counters of this crate. Labels come from closed sets.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Candidates that became generations.
    pub started: Family<StartLabels, Counter>,
    /// Generations that ended.
    pub ended: Family<EndLabels, Counter>,
    /// Events journaled.
    pub events: Counter,
    /// Times that a suffix was shown without ids because the journal could not take it.
    pub unsequenced: Counter,
    /// Times that such a suffix was journaled after all.
    pub healed: Counter,
    /// Attempts that were to be replaced.
    pub migrations: Family<MigrationLabels, Counter>,
    /// Append outcomes that were not yes.
    pub append_failures: Family<AppendLabels, Counter>,
    /// Who is told of what is counted, generation by generation.
    pub onlookers: Onlookers,
}

/// Whether a generation began durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StartLabels {
    /// How its events are understood.
    pub dialect: &'static str,
    /// `durable` or `degraded`.
    pub durability: &'static str,
}

/// How a generation ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EndLabels {
    /// `done`, `error` or `stopped`.
    pub outcome: &'static str,
    /// The terminal's code; empty where there is none.
    pub code: &'static str,
}

/// Why an attempt was to be replaced, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct MigrationLabels {
    /// A failure class, `unhealthy`, `drain` or `operator`.
    pub trigger: &'static str,
    /// `moved`, `refused` or `failed`.
    pub outcome: &'static str,
}

/// Why an append did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AppendLabels {
    /// `full`, `unready`, `unknown`, `vanished`, `fenced`, `ended` or `unexpected`.
    pub reason: &'static str,
}

impl Counters {
    /// Puts them where the scraper looks.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "streamweld_generations_started",
            "Generations that began, by dialect and durability",
            self.started.clone(),
        );
        registry.register(
            "streamweld_generations_ended",
            "Generations that ended, by outcome and code",
            self.ended.clone(),
        );
        registry.register(
            "streamweld_events",
            "Events staged for the journal",
            self.events.clone(),
        );
        registry.register(
            "streamweld_unsequenced_suffixes",
            "Times that readers were shown events without ids because the journal could not take them",
            self.unsequenced.clone(),
        );
        registry.register(
            "streamweld_healed_suffixes",
            "Unsequenced suffixes that were journaled after all",
            self.healed.clone(),
        );
        registry.register(
            "streamweld_migrations",
            "Attempts that were to be replaced, by trigger and outcome",
            self.migrations.clone(),
        );
        registry.register(
            "streamweld_append_failures",
            "Appends whose outcome was not yes, by reason",
            self.append_failures.clone(),
        );
    }
}
