//! A primary, a replica, and three sentinels that watch them.

use super::server::{DEFAULTS, Mode, Server, Setup, free_port};
use super::until;

/// A primary with a replica that takes over about two seconds after it is gone.
#[derive(Debug)]
pub struct Sentinels {
    /// Who watches.
    pub sentinels: Vec<Server>,
    /// Who is the primary at the start.
    pub primary: Server,
    /// Who is its replica at the start.
    pub replica: Server,
}

impl Sentinels {
    /// The name by which the sentinels know the primary.
    pub const NAME: &'static str = "streamweld";

    /// Starts all of them, and waits until every sentinel knows every other and the replica.
    ///
    /// # Panics
    /// When they do not start, or do not find each other.
    pub async fn new() -> Self {
        let primary = Setup::new().start().await;
        let replica = Setup::new().replica_of(&primary).start().await;
        replica.wait_replicating().await;
        let mut sentinels = Vec::new();
        for _ in 0..SENTINELS {
            let setup = Setup::new();
            sentinels.push(setup.start_sentinel("127.0.0.1", primary.port(), 2).await);
        }
        for sentinel in &sentinels {
            until("the sentinels know each other", async || {
                let state = sentinel.cli(&["SENTINEL", "MASTER", Self::NAME]).await;
                let lines: Vec<_> = state.lines().collect();
                let has = |key, value| lines.windows(2).any(|pair| pair == [key, value]);
                has("flags", "master") && has("num-slaves", "1") && has("num-other-sentinels", "2")
            })
            .await;
        }
        Self {
            sentinels,
            primary,
            replica,
        }
    }

    /// The URL of whatever is the primary, by its sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        let all: Vec<_> = self.sentinels.iter().map(Server::address).collect();
        format!("redis+sentinel://{}/{}", all.join(","), Self::NAME)
    }

    /// The port of the primary, as the sentinels that answer see it; none while they do not agree.
    pub async fn primary_port(&self) -> Option<u16> {
        let mut seen = None;
        for sentinel in &self.sentinels {
            let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::NAME];
            let answer = sentinel.cli(&ask).await;
            let port = answer.lines().nth(1)?.parse().ok()?;
            if seen.is_some_and(|seen| seen != port) {
                return None;
            }
            seen = Some(port);
        }
        seen
    }
}

impl Setup {
    /// Starts a sentinel that watches over a primary by the name [`Sentinels::NAME`]. So many of them have to agree
    /// that it is gone.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_sentinel(self, host: &str, port: u16, quorum: usize) -> Server {
        let own_port = free_port();
        let name = Sentinels::NAME;
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let mut config = vec![("port".to_owned(), own_port.to_string())];
        config.extend(DEFAULTS[..3].iter().copied().map(own));
        let (lines, password) = self.into_parts();
        // It has no master to log in at, and does not know the word.
        config.extend(lines.into_iter().filter(|(key, _)| key != "masterauth"));
        config.extend([
            own(("dir", ".")),
            own((
                "sentinel monitor",
                &format!("{name} {host} {port} {quorum}"),
            )),
            own(("sentinel down-after-milliseconds", &format!("{name} 1000"))),
            own(("sentinel failover-timeout", &format!("{name} 5000"))),
        ]);
        let mut server = Server::run(Mode::Sentinel, &config, own_port, password);
        assert!(
            server.answers_or_ends().await,
            "the sentinel does not start: {}",
            server.log()
        );
        server
    }
}

const SENTINELS: usize = 3;
