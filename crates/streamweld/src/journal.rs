//! The journal that was chosen.

use std::sync::Arc;

use anyhow::bail;
use streamweld_journal::Journal;
use streamweld_server::config::{JournalConfig, Place};

/// Makes it, or connects to it.
pub(crate) async fn open(config: &JournalConfig) -> anyhow::Result<Arc<dyn Journal>> {
    match &config.place {
        Place::Memory => Ok(Arc::new(config.memory())),
        // Never memory in its place: a replica that keeps its answers to itself must not look like one that shares.
        Place::Redis(url) => bail!("cannot use the journal at {url}: this build has none in Redis"),
    }
}
