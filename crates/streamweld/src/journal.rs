//! The journal that was chosen.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use streamweld_journal::{Journal, WindowConfig};
use streamweld_journal_redis::{Config, Finding, RedisJournal, Target};
use streamweld_server::config::{JournalConfig, Place};

/// How long a start waits for a journal elsewhere. After that it serves, degraded until the journal is there, unless
/// it is required.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes it, or connects to it.
///
/// # Errors
/// It is required, and cannot be reached or is not set up as it has to be.
pub(crate) async fn open(config: &JournalConfig) -> anyhow::Result<Arc<dyn Journal>> {
    let url = match &config.place {
        Place::Memory => return Ok(Arc::new(config.memory())),
        Place::Redis(url) => url,
    };
    let mut target =
        Target::parse(url.secret()).with_context(|| format!("cannot use the journal at {url}"))?;
    if let Some(file) = &config.ca_file {
        target = target.with_ca_file(file.clone());
    }
    if let Some(file) = &config.password_file {
        target = target.with_password_file(file.clone());
    }
    let journal = RedisJournal::start(
        target,
        Config {
            retention: config.retention,
            tombstone: config.retention,
            claim: config.claim,
            lease: config.lease,
            total: config.total,
            window: WindowConfig {
                max_bytes: config.per_generation,
            },
            level: config.level,
            ..Config::default()
        },
    );
    // The others name it so when it is gone.
    tracing::info!(replica = journal.name_of_replica(), journal = %url, "this replica");
    match journal.connected(PATIENCE).await {
        Ok(()) => {}
        Err(error) if config.required => {
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
    if config.required && !findings.is_empty() {
        let findings: Vec<String> = findings.iter().map(Finding::to_string).collect();
        bail!(
            "the journal at {url} is required, and not as it has to be: {}",
            findings.join("; ")
        );
    }
    Ok(Arc::new(journal))
}
