//! What of the configuration can change while the server runs, and how it does.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use streamweld_generation::Limits;
use streamweld_generation::lifecycle::Times;
use streamweld_generation::migration::Policy;
use streamweld_upstream::fleet::{Reach, Spec};

use crate::Config;
use crate::config::{EdgeConfig, GenerationConfig, JournalConfig, MigrationConfig, Secret};

/// The settings at one moment. Whoever needs two that belong together asks once for both.
pub(crate) struct Settings {
    pub(crate) edge: EdgeConfig,
    pub(crate) generation: GenerationConfig,
    pub(crate) journal: JournalConfig,
    pub(crate) migration: MigrationConfig,
    pub(crate) admin_token: Option<Secret>,
    pub(crate) tls: Option<streamweld_tls::Listener>,
    pub(crate) admin_tls: Option<streamweld_tls::Listener>,
    pub(crate) shutdown_grace: Duration,
    /// What a generation that begins now is held to.
    pub(crate) limits: Arc<Limits>,
    /// A request that one backend has failed may be sent again, and so has to be kept.
    pub(crate) keep_requests: bool,
}

impl Settings {
    /// Those of `config`, within what cannot change: `fixed`.
    pub(crate) fn of(config: &Config, fixed: &Limits) -> Self {
        Self {
            edge: config.edge.clone(),
            generation: config.generation.clone(),
            journal: config.journal.clone(),
            migration: config.migration.clone(),
            admin_token: config.admin_token.clone(),
            tls: config.tls.clone(),
            admin_tls: config.admin_tls.clone(),
            shutdown_grace: config.shutdown_grace,
            limits: Arc::new(Limits {
                event: streamweld_sse::Limits {
                    max_event: config.generation.max_event,
                },
                times: Times {
                    max_duration: config.generation.max_duration,
                    first_token: config.migration.first_token,
                    between_tokens: config.migration.between_tokens,
                    ..fixed.times
                },
                heal: fixed.heal.clone(),
            }),
            keep_requests: keep_requests(&config.backends, &config.migration),
        }
    }
}

fn keep_requests(backends: &[Spec], migration: &MigrationConfig) -> bool {
    // One alone may be asked again when it is back.
    backends.len() > 1
        || backends.iter().any(|spec| {
            spec.reach == Reach::EveryAddress
                || migration.policy(spec.group.as_deref()) != Policy::Off
        })
}

/// The settings of a server, which are replaced as a whole.
pub(crate) struct Changing(RwLock<Arc<Settings>>);

impl Changing {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn now(&self) -> Arc<Settings> {
        let settings = self.0.read();
        Arc::clone(&settings.unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, settings: Settings) {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(settings);
    }
}
