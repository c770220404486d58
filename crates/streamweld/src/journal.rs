//! The journal that was chosen.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use streamweld_journal::{Journal, Level, WindowConfig};
use streamweld_journal_redis::relay::Relay;
use streamweld_journal_redis::{Config, Finding, RedisJournal, RedisUrl, Target, UrlError};
use streamweld_server::config::JournalConfig;

/// Where it is, and what only one that is shared is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) place: Place,
    /// Certificates to trust for a Redis with TLS besides the system's, in a PEM file that is read for each connection.
    pub(crate) ca_file: Option<PathBuf>,
    /// The password of the Redis, in a file that is read for each connection, so that it can be changed at any time.
    pub(crate) password_file: Option<PathBuf>,
    /// How much has to have happened before something is committed.
    pub(crate) level: Level,
    /// Whether to start at all when it is out of reach, or not set up as it has to be.
    pub(crate) required: bool,
    /// How long another replica must have been silent, throughout, to be taken for dead.
    pub(crate) lease: Duration,
}

/// Where the journal is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In this process: it serves one replica, and ends with it.
    Memory,
    /// In a Redis, or a cluster of them: it serves every replica that is given the same one.
    Redis(RedisUrl),
}

impl FromStr for Place {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text {
            "memory" => Ok(Self::Memory),
            url => url.parse().map(Self::Redis),
        }
    }
}

/// How long a start waits for a journal elsewhere. After that it serves, degraded until the journal is there, unless
/// it is required.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes it, or connects to it.
///
/// # Errors
/// It is required, and cannot be reached or is not set up as it has to be.
pub(crate) async fn open(
    settings: &Settings,
    config: &JournalConfig,
    relay: Option<streamweld_relay::Relay>,
) -> anyhow::Result<Arc<dyn Journal>> {
    let url = match &settings.place {
        Place::Memory => return Ok(Arc::new(config.memory())),
        Place::Redis(url) => url,
    };
    let mut target = Target::from(url);
    if let Some(file) = &settings.ca_file {
        target = target.with_ca_file(file.clone());
    }
    if let Some(file) = &settings.password_file {
        target = target.with_password_file(file.clone());
    }
    let journal = RedisJournal::start(
        target,
        Config {
            retention: config.retention,
            tombstone: config.retention,
            claim: config.claim,
            lease: settings.lease,
            total: config.total,
            window: WindowConfig {
                max_bytes: config.per_generation,
            },
            level: settings.level,
            relay: relay.map(|relay| Arc::new(relay) as Arc<dyn Relay>),
            ..Config::default()
        },
    );
    // The others name it so when it is gone.
    tracing::info!(replica = journal.name_of_replica(), journal = %url, "this replica");
    match journal.connected(PATIENCE).await {
        Ok(()) => {}
        Err(error) if settings.required => {
            let error = anyhow::Error::from(error);
            return Err(error.context(format!("the journal at {url} is required")));
        }
        Err(error) => {
            tracing::warn!(journal = %url, %error, "the journal is out of reach; answers are degraded until it is back");
            return Ok(Arc::new(journal));
        }
    }
    // Also when it is not required, so that the first head names the level that there is.
    let findings = journal.examined(PATIENCE).await;
    if settings.required && !findings.is_empty() {
        let findings: Vec<String> = findings.iter().map(Finding::to_string).collect();
        bail!(
            "the journal at {url} is required, and not as it has to be: {}",
            findings.join("; ")
        );
    }
    Ok(Arc::new(journal))
}
