//! What `INFO` says, as far as it matters here.

use std::collections::{BTreeSet, HashMap};

use streamweld_journal::Level;

use super::Finding;

/// The lines of an answer, by name.
pub(super) struct Info<'a>(HashMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        Self(
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .collect(),
        )
    }

    /// What is wrong. What a server does not tell is not.
    pub(super) fn findings(&self, level: Level) -> BTreeSet<Finding> {
        let differs = |name, expected| self.0.get(name).is_some_and(|value| *value != expected);
        [
            (
                Finding::EvictionPolicy,
                differs("maxmemory_policy", "noeviction"),
            ),
            (Finding::Persistence, differs("aof_enabled", "1")),
            (
                Finding::AofWriteFailed,
                differs("aof_last_write_status", "ok"),
            ),
            (
                Finding::SnapshotFailed,
                differs("rdb_last_bgsave_status", "ok"),
            ),
            (Finding::ReplicaRole, differs("role", "master")),
            (Finding::VersionTooOld, self.is_too_old()),
            (Finding::ReplicasMissing, self.lacks_replicas(level)),
        ]
        .into_iter()
        .filter(|(_, is_wrong)| *is_wrong)
        .map(|(finding, _)| finding)
        .collect()
    }

    /// Valkey tells the version of Redis that it is like.
    fn is_too_old(&self) -> bool {
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
        let Some(version) = self.0.get("redis_version") else {
            return false;
        };
        let mut parts = version.split('.');
        match (number(parts.next()), number(parts.next())) {
            (Some(major), Some(minor)) => (major, minor) < (6, 2),
            _ => false,
        }
    }

    /// Those that have all data and go along: one that still loads is none.
    fn lacks_replicas(&self, level: Level) -> bool {
        let Level::Replicated(wanted) = level else {
            return false;
        };
        let is_online = |(name, value): (&&str, &&str)| {
            let is_replica = name.strip_prefix("slave").is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
            });
            is_replica && value.split(',').any(|part| part == "state=online")
        };
        let online = self.0.iter().filter(|line| is_online(*line)).count();
        self.0.contains_key("role") && online < usize::from(wanted.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server says that is well.
    const WELL: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
        aof_last_write_status:ok\r\nrdb_last_bgsave_status:ok\r\nrole:master\r\nconnected_slaves:2\r\n\
        slave0:ip=127.0.0.1,port=1,state=online,offset=14,lag=0\r\n\
        slave1:ip=127.0.0.1,port=2,state=wait_bgsave,offset=0,lag=0\r\n";

    #[track_caller]
    fn check(level: &str, line: (&str, &str), expected: &[Finding]) {
        let text = WELL.replace(line.0, line.1);
        let found = Info::read(&text).findings(level.parse().expect("a level"));
        assert_eq!(found, expected.iter().copied().collect(), "{line:?}");
    }

    #[test]
    fn each_fault_is_found_alone() {
        let none = ("", "");
        for level in ["async", "replicated:1", "fsync"] {
            check(level, none, &[]);
        }
        check("replicated:2", none, &[Finding::ReplicasMissing]);
        for (line, finding) in [
            (("noeviction", "allkeys-lru"), Finding::EvictionPolicy),
            (("aof_enabled:1", "aof_enabled:0"), Finding::Persistence),
            (
                ("write_status:ok", "write_status:err"),
                Finding::AofWriteFailed,
            ),
            (
                ("bgsave_status:ok", "bgsave_status:err"),
                Finding::SnapshotFailed,
            ),
            (("role:master", "role:slave"), Finding::ReplicaRole),
            (("7.0.15", "6.0.16"), Finding::VersionTooOld),
        ] {
            check("async", line, &[finding]);
        }
        for version in ["6.2.0", "10.0.0", "255.255.255", "unstable"] {
            check("async", ("7.0.15", version), &[]);
        }
    }

    #[test]
    fn what_is_not_told_is_not_wrong() {
        for level in ["async", "replicated:1", "fsync"] {
            let found = Info::read("# Server\r\nfoo\r\n").findings(level.parse().expect("a level"));
            assert_eq!(found, BTreeSet::new());
        }
    }
}
