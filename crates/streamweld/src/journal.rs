//! The journal that was chosen.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use streamweld_journal::{Journal, WindowConfig};
use streamweld_journal_redis::{Config, RedisJournal, Target};
use streamweld_server::config::{JournalConfig, Place};

/// How long a start waits for a journal elsewhere. After that it serves, degraded until the journal is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes it, or connects to it.
pub(crate) async fn open(config: &JournalConfig) -> anyhow::Result<Arc<dyn Journal>> {
    let url = match &config.place {
        Place::Memory => return Ok(Arc::new(config.memory())),
        Place::Redis(url) => url,
    };
    let target =
        Target::parse(url.secret()).with_context(|| format!("cannot use the journal at {url}"))?;
    let journal = RedisJournal::start(
        target,
        Config {
            retention: config.retention,
            tombstone: config.retention,
            claim: config.claim,
            total: config.total,
            window: WindowConfig {
                max_bytes: config.per_generation,
            },
            ..Config::default()
        },
    );
    if let Err(error) = journal.connected(PATIENCE).await {
        tracing::warn!(journal = %url, %error, "the journal is out of reach; answers are degraded until it is back");
    }
    Ok(Arc::new(journal))
}
