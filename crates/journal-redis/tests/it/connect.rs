//! Journals in the server of a test.

use std::time::Duration;

use streamweld_journal_redis::testing::Server;
use streamweld_journal_redis::{Config, RedisJournal, Target, Timing};

/// A journal that is connected.
pub(crate) async fn connect(server: &Server) -> RedisJournal {
    connect_with(server, config()).await
}

pub(crate) async fn connect_with(server: &Server, config: Config) -> RedisJournal {
    connect_to(Target::parse(&server.url()).unwrap(), config).await
}

pub(crate) async fn connect_to(target: Target, config: Config) -> RedisJournal {
    let journal = RedisJournal::start(target, config);
    journal.connected(Duration::from_secs(10)).await.unwrap();
    journal
}

/// Short enough for tests that wait for a deadline.
pub(crate) fn config() -> Config {
    Config {
        timing: Timing {
            answer: Duration::from_millis(500),
            ..Timing::default()
        },
        ..Config::default()
    }
}
