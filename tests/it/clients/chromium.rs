//! A Chromium without a window, for one page at a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use streamweld_mock::{Mock, Request};
use tokio::sync::{Mutex, MutexGuard};

pub(super) const CLIENT: &str = "Chromium";

/// Whoever has this has the only browser.
pub(crate) static TURN: Mutex<()> = Mutex::const_new(());

/// A browser that shows one page. It ends when it is dropped.
pub(super) struct Browser {
    process: Child,
    profile: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// Opens this page, once no other test has a browser: each takes more than a core until it stands.
    pub(super) async fn open(url: &str) -> Self {
        let turn = TURN.lock().await;
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Its helpers may write a little longer than it lives, so that some of this can be left behind.
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("chromium-{}-{number}", std::process::id()));
        let binary = std::env::var_os("CHROMIUM").unwrap_or_else(|| "chromium".into());
        let process = Command::new(&binary)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-quic",
                "--disable-sync",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--no-proxy-server",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{binary:?} cannot be run ({error}): `make test` installs it, or set CHROMIUM to its path")
            });
        Self {
            process,
            profile,
            _turn: turn,
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // All of this fails only where there is nothing left to end or to remove.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Waits for the page's report.
pub(super) async fn report(mock: &Mock) -> Value {
    let is_report = |request: &Request| request.path() == "/echo/report";
    let recorder = mock.recorder().with_deadline(Duration::from_secs(120));
    recorder
        .wait_until(|recorder| recorder.requests().iter().any(is_report))
        .await
        .expect("the page reports");
    let requests = recorder.requests();
    let report = requests
        .into_iter()
        .find(is_report)
        .expect("it has just been seen");
    let seen: Value = serde_json::from_slice(&report.body).expect("JSON");
    assert!(seen.get("thrown").is_none(), "{seen}");
    seen
}

/// The requests to this path that reached the backend.
pub(super) fn asked(mock: &Mock, path: &str) -> Vec<Request> {
    let mut requests = mock.recorder().requests();
    requests.retain(|request| request.path() == path);
    requests
}
