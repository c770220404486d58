//! How much has to have happened before something stands: the level (docs/journal.md, "Levels").
//!
//! What has been written is nobody's to see before it is at the level. The writer waits after each of its writes; one
//! that does not get there is unknown to its owner, who reads the tail, which waits as well. An append goes out only
//! behind a predecessor that is at the level, so of a log that is read elsewhere only the newest record is in doubt.

use std::sync::atomic::{AtomicBool, Ordering};

use streamweld_journal::{Level, StreamId};

use crate::journal::Inner;
use crate::keys::Keys;
use crate::link::Confirmed;
use crate::nodes::Route;
use crate::script;
use crate::write::millis;

/// How that goes at one server.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// It cannot say whether it has reached the level.
    unsupported: AtomicBool,
    /// The last that was written there has not reached it.
    missed: AtomicBool,
}

impl Standing {
    pub(crate) fn is_unsupported(&self) -> bool {
        self.unsupported.load(Ordering::Relaxed)
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed)
    }

    /// Whether what was written stands, after a round that came to this.
    pub(crate) fn stands(&self, level: Level, confirmed: Confirmed) -> bool {
        if confirmed == Confirmed::Unknown {
            return false;
        }
        self.unsupported
            .store(confirmed == Confirmed::Unsupported, Ordering::Relaxed);
        let misses = confirmed == Confirmed::Below;
        if self.missed.swap(misses, Ordering::Relaxed) != misses {
            if misses {
                tracing::warn!(check = "level_missed", %level, "what is written does not reach its level; readers see no new ids until it does");
            } else {
                tracing::info!(check = "level_missed", %level, "what is written reaches its level again");
            }
        }
        !misses
    }
}

impl Inner {
    /// What a yes means now.
    pub(crate) fn level(&self) -> Level {
        if self.nodes.is_unsupported() {
            Level::Async
        } else {
            self.config.level
        }
    }

    /// Whether what this process has written on this connection is at the level, after waiting for that.
    pub(crate) async fn reached(&self, route: Route<'_>, connection: u64) -> bool {
        match self.config.level {
            Level::Async => true,
            level => route.reaches(connection, level).await,
        }
    }

    /// The same for a log that was read on this connection, whoever has written it and where.
    pub(crate) async fn is_sure(&self, route: Route<'_>, connection: u64, keys: &Keys) -> bool {
        if self.level() == Level::Async {
            return true;
        }
        let live = millis(self.config.live);
        let said = script::TOUCH
            .run(route, &[&keys.log], &[live.as_bytes()])
            .await;
        let touched =
            matches!(said, Ok(said) if said.word() == "ok" && said.connection == connection);
        touched && self.reached(route, connection).await
    }

    /// Tells those who read a log elsewhere that its end is at the level, and marks it for those who come later, who
    /// need not ask the server then. Nobody waits for either. Below the levels that wait, `finish` has told them.
    pub(crate) fn announce_end(&self, id: StreamId, connection: u64, keys: &Keys, record: &[u8]) {
        if self.config.level == Level::Async {
            return;
        }
        self.publish(id, connection, keys, record);
        let mut mark = redis::cmd("HSET");
        mark.arg(&keys.meta).arg("sure").arg("1");
        // A hash that was gone must not stay for ever.
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(&keys.meta).arg(millis(self.config.retention));
        for command in [mark, expire] {
            let call = self.nodes.appends(id).call_later(connection, command, 0);
            self.publishes.begin(async move { _ = call.await });
        }
    }
}
