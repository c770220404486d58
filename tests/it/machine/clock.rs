//! The time of day is set by an hour, this way and that, while a replica runs. Row 49 of the faults.
//!
//! What stands before the clock is the library of the package `libfaketime`, which reads the offset from a file; the clock that
//! nobody can set is left alone, as it is on a real machine. `scripts/setup-test.sh` installs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use streamweld_journal_redis::testing::Server;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{
    Client, End, Onlooker, Process, blocks, patience, state, wait_end, wait_state,
};
use tokio::time::sleep;

use super::whole;

const AHEAD: &str = "+3600";
const BACK: &str = "-3600";

/// A clock that can be set.
pub(crate) struct Clock {
    file: PathBuf,
    library: PathBuf,
}

impl Clock {
    pub(crate) fn new(offset: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("clock-{}-{number}", std::process::id());
        let clock = Self {
            file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
            library: library(),
        };
        clock.set(offset);
        clock
    }

    /// Sets it so many seconds off the true time.
    fn set(&self, offset: &str) {
        // Nobody reads a half of it.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset}\n")).expect("a file");
        fs::rename(&new, &self.file).expect("a file");
    }

    /// What a process needs in its environment.
    pub(crate) fn variables(&self) -> [(&str, &str); 4] {
        [
            ("LD_PRELOAD", self.library.to_str().expect("text")),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_str().expect("text")),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Where the package has its library.
fn library() -> PathBuf {
    let folders = ["/usr/lib", "/usr/lib64"].map(|folder| fs::read_dir(folder).ok());
    let folders = folders.into_iter().flatten().flatten().flatten();
    let mut libraries = folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .chain([PathBuf::from("/usr/lib/faketime/libfaketimeMT.so.1")]);
    let library = libraries.find(|library| library.is_file());
    library.expect("libfaketime is installed; see scripts/setup-test.sh")
}

/// Waits until a replica tells the time of day with this offset, so that a story is about what it says.
async fn told(client: &Client, offset: &str) {
    let offset: f64 = offset.parse().expect("seconds");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let expected = now.expect("after 1970").as_secs_f64() + offset;
    let response = client.chat().await;
    let id = response.id();
    response.all().await;
    // The first ten characters of an id are the milliseconds at which it was made.
    let made = id[..10].bytes().fold(0, |sum: u64, byte| {
        let digits = b"0123456789abcdefghjkmnpqrstvwxyz";
        let digit = digits.iter().position(|it| *it == byte);
        sum * 32 + digit.expect("an id") as u64
    });
    let off = (made as f64 / 1000.0 - expected).abs();
    assert!(off < 60.0, "the clock of the process is not set: {off}");
}

fn script() -> Script {
    Script::tokens(20).id("fixed")
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn what_is_kept_in_memory_is_kept_for_as_long_as_before() {
    let clock = Clock::new("+0");
    let mock = Mock::start(script()).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let arguments = [
        &*backend,
        "--heartbeat=100ms",
        "--retention=10m",
        "--max-duration=10m",
        "--between-tokens-timeout=5m",
    ];
    let mut process = Process::serve_with(&clock.variables(), &arguments);
    let client = process.client().await;
    let keyed = client.with("idempotency-key", "k");
    let ended = keyed.chat().await;
    let (ended, all) = (ended.id(), ended.all().await);
    assert!(all == (whole(&script(), &ended), End::Proper));
    wait_end(&client, &ended).await;
    let script = script().gate_after(10, "go");
    mock.push_script(script.clone());
    let onlooker = Onlooker::start(client.addr).await;
    let mut response = Client::new(onlooker.addr()).chat().await;
    let id = response.id();
    let mut shown = response.body.blocks(10).await;
    let mut beats = 0;
    for offset in [AHEAD, BACK, "+0"] {
        clock.set(offset);
        told(&client, offset).await;
        beats += 5;
        onlooker
            .wait_heartbeats(beats, Duration::from_secs(20))
            .await;
        assert_eq!(state(&client, &id).await["status"], "streaming");
        assert!(
            client.events(&ended).await.all().await == all,
            "at {offset}"
        );
        let again = keyed.chat().await;
        assert_eq!(again.id(), ended, "at {offset}");
        assert!(again.all().await == all);
    }
    mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    // Heartbeats are between its events.
    let whole = blocks(&whole(&script, &id));
    assert_eq!((blocks(&shown), end), (whole, End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn what_is_kept_in_memory_goes_in_time() {
    let clock = Clock::new("+0");
    let mock = Mock::start(script()).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let mut process = Process::serve_with(&clock.variables(), &[&backend, "--retention=2s"]);
    let client = process.client().await;
    let ended = client.chat().await;
    let id = ended.id();
    ended.all().await;
    wait_end(&client, &id).await;
    clock.set(BACK);
    told(&client, BACK).await;
    let gone = async {
        while client.events(&id).await.status == 200 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    patience(gone).await;
    let gone = client.events(&id).await.error_code().await;
    assert!(
        [
            (410, "stream_expired".to_owned()),
            (404, "stream_not_found".to_owned())
        ]
        .contains(&gone),
        "{gone:?}"
    );
}

const LEASE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_lease_is_not_lost_over_it() {
    let clock = Clock::new("+0");
    let script = script().gate_after(10, "go");
    let mock = Mock::start(script.clone()).await.expect("a port");
    let redis = Server::new().await;
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal={}", redis.url());
    let lease = format!("--presence-lease={}ms", LEASE.as_millis());
    let arguments = [&*backend, &*journal, &*lease];
    let mut owner = Process::serve_with(&clock.variables(), &arguments);
    let mut other = Process::serve(&arguments);
    let (one, other) = (owner.client().await, other.client().await);
    let mut response = one.durable_chat().await;
    let id = response.id();
    let mut shown = response.body.blocks(10).await;
    let there = other.events(&id).await;
    for offset in [AHEAD, BACK] {
        clock.set(offset);
        mock.push_script(Script::tokens(3));
        told(&one, offset).await;
        // Long enough for whoever would judge.
        sleep(LEASE * 2).await;
        let state = wait_state(&other, &id, |state| state["owner_alive"] == true).await;
        assert_eq!(state["status"], "streaming");
    }
    mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    let whole = whole(&script, &id);
    assert!((shown, end) == (whole.clone(), End::Proper));
    assert!(there.all().await == (whole, End::Proper));
}
