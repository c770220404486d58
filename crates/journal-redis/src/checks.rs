//! Whether the server is set up as a journal needs it: looked at when a connection is made, and every minute. Of a
//! cluster every node is, and what is wrong with one of them is wrong.
//!
//! `INFO` tells nearly all of it, because those who host a Redis often forbid `CONFIG`. What is wrong is logged once
//! when it appears and once when it is gone, and can be read as a metric meanwhile. Nothing is refused here for it:
//! whoever starts a replica may.

mod info;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::Value;
use streamweld_journal::{Check, Level};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::journal::Inner;
use crate::link::Failure;
use crate::nodes::Route;

use self::info::Info;

/// Something that is wrong with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Finding {
    /// The last write to the append-only file failed.
    AofWriteFailed,
    /// At the level `fsync`, the file reaches the disk later than an answer does.
    FsyncLater,
    /// It may throw logs away that are needed.
    EvictionPolicy,
    /// What was written last has not reached its level.
    LevelMissed,
    /// Its channels cannot be listened to.
    NoFeed,
    /// It does not let itself be looked at.
    NotChecked,
    /// A restart forgets everything.
    Persistence,
    /// It is a replica, which takes no writes.
    ReplicaRole,
    /// It has fewer replicas than the level needs.
    ReplicasMissing,
    /// The last snapshot failed, after which it refuses writes as it is set up by default.
    SnapshotFailed,
    /// There is no connection to it, or to a node of its cluster.
    Unreachable,
    /// It is older than 6.2.
    VersionTooOld,
    /// At the level `fsync`, it cannot say what is on its disk.
    WaitaofMissing,
}

impl Finding {
    /// All there are, by their names.
    pub const ALL: [Self; 13] = [
        Self::AofWriteFailed,
        Self::EvictionPolicy,
        Self::FsyncLater,
        Self::LevelMissed,
        Self::NoFeed,
        Self::NotChecked,
        Self::Persistence,
        Self::ReplicaRole,
        Self::ReplicasMissing,
        Self::SnapshotFailed,
        Self::Unreachable,
        Self::VersionTooOld,
        Self::WaitaofMissing,
    ];

    /// Its name in metrics and logs, which does not change.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AofWriteFailed => "aof_write_failed",
            Self::EvictionPolicy => "eviction_policy",
            Self::FsyncLater => "fsync_later",
            Self::LevelMissed => "level_missed",
            Self::NoFeed => "no_feed",
            Self::NotChecked => "not_checked",
            Self::Persistence => "persistence",
            Self::ReplicaRole => "replica_role",
            Self::ReplicasMissing => "replicas_missing",
            Self::SnapshotFailed => "snapshot_failed",
            Self::Unreachable => "unreachable",
            Self::VersionTooOld => "version_too_old",
            Self::WaitaofMissing => "waitaof_missing",
        }
    }

    /// What is wrong, and what to do.
    fn advice(self) -> &'static str {
        match self {
            Self::AofWriteFailed => {
                "Redis cannot write its append-only file and refuses writes; see to its disk"
            }
            Self::EvictionPolicy => {
                "Redis may evict answers that run; set maxmemory-policy to noeviction"
            }
            Self::FsyncLater => {
                "Redis writes to its disk later than it answers, so that most answers begin degraded; set appendfsync to always"
            }
            Self::LevelMissed => {
                "what is written does not reach the level; see to the replicas or the disk of Redis"
            }
            Self::NoFeed => {
                "what others publish cannot be heard; let this user use the channels streamweld:*, and see whether Redis has room for connections"
            }
            Self::NotChecked => "Redis does not say how it is set up; let this user call INFO",
            Self::Persistence => "a restart of Redis loses every answer; set appendonly to yes",
            Self::ReplicaRole => "Redis is a replica and takes no writes; name the primary",
            Self::ReplicasMissing => {
                "Redis has fewer replicas in touch than the level needs; see to them, or lower the level"
            }
            Self::SnapshotFailed => {
                "Redis could not save its snapshot and may refuse writes; see to its disk"
            }
            Self::Unreachable => "there is no connection to Redis, or to a part of it",
            Self::VersionTooOld => "Redis has to be 6.2 or newer",
            Self::WaitaofMissing => {
                "this Redis, or this user of it, has no WAITAOF, so the level is async; use Redis 7.2 or Valkey, or another level"
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.advice())
    }
}

/// What was found last; `None` before anything was looked at.
pub(crate) struct Checks(watch::Sender<Option<Arc<BTreeSet<Finding>>>>);

impl Default for Checks {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Checks {
    fn found(&self, findings: BTreeSet<Finding>) {
        let before = self.0.borrow().clone().unwrap_or_default();
        for finding in findings.difference(&before) {
            tracing::warn!(check = finding.name(), "{}", finding.advice());
        }
        for finding in before.difference(&findings) {
            tracing::info!(check = finding.name(), "is as it should be again");
        }
        self.0.send_replace(Some(Arc::new(findings)));
    }
}

impl Inner {
    /// Everything that is wrong now, as far as that is known.
    pub(crate) fn findings(&self) -> BTreeSet<Finding> {
        let mut findings =
            (self.checks.0.borrow().as_deref()).map_or_else(BTreeSet::new, Clone::clone);
        for (finding, is_wrong) in [
            (Finding::Unreachable, !self.nodes.is_whole()),
            (Finding::LevelMissed, self.nodes.is_missed()),
            (Finding::NoFeed, self.nodes.deaf().is_some()),
        ] {
            if is_wrong {
                findings.insert(finding);
            }
        }
        findings
    }

    pub(crate) fn checks(&self) -> Vec<Check> {
        let findings = self.findings();
        let each = |finding: Finding| Check {
            name: finding.name(),
            is_wrong: findings.contains(&finding),
        };
        Finding::ALL.map(each).to_vec()
    }

    /// Everything that is wrong, once all servers were looked at; waits for that for so long.
    pub(crate) async fn examined(&self, patience: Duration) -> BTreeSet<Finding> {
        let mut looked = self.checks.0.subscribe();
        let looked = timeout(patience, looked.wait_for(Option::is_some));
        let heard = timeout(patience, self.nodes.heard());
        let (looked, heard) = tokio::join!(looked, heard);
        let (is_looked, is_heard) = (looked.is_ok(), heard.is_ok());
        let mut findings = self.findings();
        if !findings.contains(&Finding::Unreachable) {
            for (finding, is_wrong) in [
                (Finding::NotChecked, !is_looked),
                (Finding::NoFeed, !is_heard),
            ] {
                if is_wrong {
                    findings.insert(finding);
                }
            }
        }
        findings
    }

    /// Tells when channels begin or cease to be heard. Says whether they are not.
    fn listens(&self, was_deaf: bool) -> bool {
        let (check, advice) = (Finding::NoFeed.name(), Finding::NoFeed.advice());
        match self.nodes.deaf() {
            Some(reason) if !was_deaf => tracing::warn!(check, reason, "{advice}"),
            None if was_deaf && self.nodes.hears() => {
                tracing::info!(check, "is as it should be again");
                return false;
            }
            Some(_) | None => return was_deaf,
        }
        true
    }

    /// Looks at every server that there is a connection to. `None` when one of them does not answer.
    async fn inspect(&self) -> Option<BTreeSet<Finding>> {
        let mut findings = BTreeSet::new();
        for server in self.nodes.each() {
            if server.connection().is_some() {
                findings.extend(self.inspect_one(server).await?);
            }
        }
        Some(findings)
    }

    async fn inspect_one(&self, server: Route<'_>) -> Option<BTreeSet<Finding>> {
        let level = self.config.level;
        let info = match server.call(&redis::cmd("INFO"), 0).await {
            Ok(answer) => text(answer.value),
            Err(Failure::Refused(code)) if code.is("LOADING") => return None,
            Err(Failure::Refused(_)) => None,
            Err(Failure::NotSent | Failure::Unanswered) => return None,
        };
        let mut findings = match info {
            Some(info) => Info::read(&info).findings(level),
            None => BTreeSet::from([Finding::NotChecked]),
        };
        // Where nobody writes, nobody else finds out that the level is reached again, or that the server cannot tell.
        if self.nodes.is_missed() || level == Level::Fsync {
            let connection = server.connection()?;
            self.reached(server, connection).await;
        }
        if level == Level::Fsync {
            if self.nodes.is_unsupported() {
                findings.insert(Finding::WaitaofMissing);
            }
            // `INFO` does not have it. Where it may not be asked for, it is not known.
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg("appendfsync");
            if let Ok(answer) = server.call(&command, 0).await {
                if is_later(&answer.value) {
                    findings.insert(Finding::FsyncLater);
                }
            }
        }
        Some(findings)
    }
}

/// Looks until the journal is gone.
pub(crate) async fn watch(inner: Weak<Inner>, mut changes: watch::Receiver<u64>, every: Duration) {
    // The connections that were looked at, and when to look again in any case.
    let (mut known, mut next) = (Vec::new(), Instant::now());
    let mut is_deaf = false;
    loop {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let servers = inner.nodes.each();
        let connections: Vec<_> = servers.iter().filter_map(Route::connection).collect();
        if connections != known || Instant::now() >= next {
            let mut pause = every;
            // A new connection ends the wait.
            if !connections.is_empty() {
                match inner.inspect().await {
                    Some(findings) => inner.checks.found(findings),
                    None => pause = every.min(AGAIN),
                }
            }
            (known, next) = (connections, Instant::now() + pause);
        }
        is_deaf = inner.listens(is_deaf);
        drop(inner);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = sleep_until(next.min(Instant::now() + LISTEN)) => {}
        }
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

fn is_later(value: &Value) -> bool {
    match value {
        Value::Array(pair) => matches!(
            pair.as_slice(),
            [_, Value::BulkString(when)] if when != b"always"
        ),
        _ => false,
    }
}

/// How often it is looked at whether channels are heard.
const LISTEN: Duration = Duration::from_secs(1);
/// When to look again at a server that did not answer.
const AGAIN: Duration = Duration::from_secs(1);
