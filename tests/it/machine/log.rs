//! Nobody reads what a replica logs. Row 50 of the faults.

use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, End, Process, metric, patience};
use tokio::task::JoinSet;

use super::whole;

const DROPPED: &str = "streamweld_log_lines_dropped_total";

fn script() -> Script {
    Script::tokens(20).id("fixed")
}

/// A replica that logs as much as it can.
async fn replica() -> (Mock, Process) {
    let mock = Mock::start(script()).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let process = Process::serve(&[&backend, "--log-level=trace", "--retention=1s"]);
    (mock, process)
}

/// Asks, some at a time, until lines are dropped; each of the answers is whole. What an operator asks for stands in the log.
async fn ask_until_dropped(client: &Client, admin: &Client) {
    let before = metric(admin, DROPPED).await;
    let nobody = format!("/admin/backends/{}/undrain", "x".repeat(4000));
    let dropped = async {
        while metric(admin, DROPPED).await <= before {
            let mut asking = JoinSet::new();
            for _ in 0..4 {
                let client = client.clone();
                asking.spawn(async move {
                    let response = client.chat().await;
                    let whole = whole(&script(), &response.id());
                    assert!(response.all().await == (whole, End::Proper));
                });
            }
            for _ in 0..64 {
                assert_eq!(admin.send("POST", &nobody, "").await.status, 404);
            }
            asking.join_all().await;
        }
    };
    patience(dropped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_no_answer() {
    let (_mock, mut process) = replica().await;
    let (client, admin) = (process.client().await, process.admin().await);
    assert_eq!(metric(&admin, DROPPED).await, 0);
    process.hold_output();
    ask_until_dropped(&client, &admin).await;
    // Once it is read again it says that something is missing, and goes on.
    process.read_output();
    process.wait_output("lines of this log were dropped").await;
    assert_eq!(client.chat().await.all().await.1, End::Proper);
    // It does not wait for a reader when it ends, and what is there to be read then is whole lines.
    process.hold_output();
    ask_until_dropped(&client, &admin).await;
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0));
    let is_line = |line: &&str| line.starts_with("20") && line.contains("streamweld");
    let torn: Vec<_> = output.lines().filter(|line| !is_line(line)).collect();
    // The pipe was full when the process ended.
    assert!(torn.len() <= 1, "{torn:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_closed_holds_up_no_answer() {
    let (_mock, mut process) = replica().await;
    let (client, admin) = (process.client().await, process.admin().await);
    process.close_output();
    ask_until_dropped(&client, &admin).await;
    process.signal("TERM");
    let (status, _) = process.ended().await;
    assert_eq!(status.code(), Some(0));
}

/// What a process says last comes out behind everything before it, in either form.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_come_behind_the_log() {
    for format in ["text", "json"] {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let taken = taken.expect("a port");
        let listen = format!("--listen={}", taken.local_addr().expect("bound"));
        let format = format!("--log-format={format}");
        let backend = "--backend=http://127.0.0.1:9";
        let process = Process::run(&[
            "serve",
            backend,
            &listen,
            "--admin-listen=127.0.0.1:0",
            &format,
        ]);
        let (status, output) = process.ended().await;
        assert_eq!(status.code(), Some(1), "{output}");
        let lines: Vec<_> = output.lines().collect();
        let (last, before) = lines.split_last().expect("lines");
        assert!(last.starts_with("streamweld: cannot listen on"), "{output}");
        assert!(before.len() > 3, "{output}");
    }
}
