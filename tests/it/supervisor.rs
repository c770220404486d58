//! What a service manager is told (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_tests::{Process, patience};

/// Where a service manager listens. It goes with its test.
struct Manager {
    socket: tokio::net::UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(name: &str) -> Self {
        let name = format!("streamweld-notify-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let socket = tokio::net::UnixDatagram::from_std(socket).expect("a socket");
        Self { socket, path }
    }

    /// Waits until it is told this, and gives all that came with it.
    async fn told(&self, what: &str) -> String {
        let told = async {
            loop {
                let mut bytes = [0; 512];
                let length = self.socket.recv(&mut bytes).await.expect("a message");
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                if text.lines().any(|line| line == what) {
                    return text;
                }
            }
        };
        patience(told).await
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_when_it_serves_lives_and_leaves() {
    let manager = Manager::new("turns");
    let config = MockConfig {
        default: Script::tokens(5).gate_after(2, "never"),
        ..MockConfig::default()
    };
    let mock = Mock::bind("127.0.0.1:0", config).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let arguments = [
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=0.0.0.0:0",
        "--shutdown-grace=7s",
        &backend,
    ];
    let path = manager.path.to_str().expect("plain");
    let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "400000")];
    let mut process = Process::run_with(&arguments, &variables);
    manager.told("READY=1").await;
    // It listens by then: the first try succeeds.
    let admin = process.admin().await;
    assert_eq!(admin.get("/livez").await.status, 200);
    let response = process.client().await.durable_chat().await;
    manager.told("WATCHDOG=1").await;
    manager.told("WATCHDOG=1").await;
    process.signal("TERM");
    let told = manager.told("STOPPING=1").await;
    assert!(
        told.lines()
            .any(|line| line == "EXTEND_TIMEOUT_USEC=13000000"),
        "{told}"
    );
    // It lives for as long as it leaves.
    manager.told("WATCHDOG=1").await;
    drop(response);
    process.signal("TERM");
    patience(process.ended()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stands_still_tells_no_watchdog() {
    let manager = Manager::new("still");
    let path = manager.path.to_str().expect("plain");
    let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "200000")];
    let arguments = [
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--backend=http://127.0.0.1:1",
    ];
    let process = Process::run_with(&arguments, &variables);
    manager.told("WATCHDOG=1").await;
    process.signal("STOP");
    // What was under way has come.
    let mut bytes = [0; 512];
    while manager.socket.try_recv(&mut bytes).is_ok() {}
    let silence = tokio::time::timeout(Duration::from_secs(1), manager.told("WATCHDOG=1")).await;
    assert!(silence.is_err());
    process.signal("CONT");
    manager.told("WATCHDOG=1").await;
}
