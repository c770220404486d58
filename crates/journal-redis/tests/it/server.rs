//! A Redis server of a test's own, on a socket in a directory of its own.
//!
//! Both go when it is dropped, and also when the test process is killed: a shell holds the other end of a pipe.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use streamweld_journal_redis::{Config, RedisJournal, Target, Timing};

/// A running server.
pub(crate) struct Server {
    /// The shell that ends the server when its input does.
    watcher: Child,
    /// The server's process.
    pid: String,
    dir: PathBuf,
    args: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// One with further arguments.
    pub(crate) fn with(args: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("streamweld-redis-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (watcher, pid) = spawn(&dir, &args);
        let server = Self {
            watcher,
            pid,
            dir,
            args,
        };
        server.answers();
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("s")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// A journal in it that is connected.
    pub(crate) async fn journal(&self) -> RedisJournal {
        self.journal_with(config()).await
    }

    pub(crate) async fn journal_with(&self, config: Config) -> RedisJournal {
        let target = Target::parse(&self.url()).unwrap();
        let journal = RedisJournal::start(target, config);
        journal.connected(Duration::from_secs(10)).await.unwrap();
        journal
    }

    /// What redis-cli prints for a command.
    pub(crate) fn cli(&self, args: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .arg("-s")
            .arg(self.socket())
            .args(args)
            .output()
            .expect("redis-cli is installed");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Stops it where it is, until [`go_on`](Self::go_on).
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }

    /// Kills it and starts another at the same place, which knows nothing.
    pub(crate) fn restart(&mut self) {
        self.end();
        (self.watcher, self.pid) = spawn(&self.dir, &self.args);
        self.answers();
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(&self.pid)
            .status();
        assert!(status.unwrap().success());
    }

    fn answers(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while !self.cli(&["PING"]).contains("PONG") && !self.cli(&["PING"]).contains("NOAUTH") {
            assert!(Instant::now() < until, "redis-server does not answer");
            std::thread::yield_now();
        }
    }

    fn end(&mut self) {
        drop(self.watcher.stdin.take());
        _ = self.watcher.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
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

fn spawn(dir: &Path, args: &[String]) -> (Child, String) {
    std::fs::create_dir_all(dir).unwrap();
    let mut watcher = Command::new("sh")
        .args(["-c", WATCH])
        .arg(dir)
        .args(["--port", "0", "--save", "", "--appendonly", "no"])
        .arg("--unixsocket")
        .arg(dir.join("s"))
        .arg("--dir")
        .arg(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut pid = String::new();
    let stdout = watcher.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut pid).unwrap();
    (watcher, pid.trim().to_owned())
}

/// Starts the server, says its process id, waits for the end of the input, and cleans up.
const WATCH: &str = r#"redis-server "$@" >/dev/null 2>&1 &
echo $!
read -r _
kill -KILL $!
wait
rm -rf "$0""#;
