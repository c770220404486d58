//! A replica whose clients use up its descriptors: a real process over a real Redis.

use std::time::Duration;

use streamweld_journal_redis::testing::Server;
use streamweld_mock::Mock;
use streamweld_tests::{CHAT, End, Process, Response, metric, patience, wait_seq};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{PATH, Reading, in_three, whole};

/// How many a process may have. About a dozen it has with nobody there; of the rest 16 are kept from clients.
const MOST: u32 = 64;
const COME: usize = 100;

/// How many it has.
fn count(process: &Process) -> usize {
    let folder = format!("/proc/{}/fd", process.id());
    std::fs::read_dir(folder).expect("it runs").count()
}

/// The time that it has had of a core, in hundredths of a second.
fn ticks(process: &Process) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()));
    let stat = stat.expect("it runs");
    let fields = stat.rsplit(')').next().expect("behind its name");
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|it| it.parse::<u64>().expect("a number")).sum()
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn clients_cannot_use_up_what_probes_and_the_journal_need() {
    let script = in_three(20);
    let mock = Mock::start(script.clone()).await.expect("a port");
    let redis = Server::new().await;
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal={}", redis.url());
    let mut process = Process::serve_with_descriptors(MOST, &[&backend, &journal]);
    let (client, admin) = (process.client().await, process.admin().await);
    let mut first = Reading::begin(client.chat().await, 20).await;
    let id = first.response.id();
    let expected = whole(&script, &id);
    wait_seq(&client, &id, 21).await;

    let mut crowd = Vec::new();
    for _ in 0..COME {
        let stream = TcpStream::connect(client.addr).await;
        crowd.push(stream.expect("the backlog takes it"));
    }
    process.wait_output("descriptors are short").await;
    assert!(count(&process) < MOST as usize, "some are kept");

    // It waits without a spin.
    let before = ticks(&process);
    sleep(Duration::from_secs(1)).await;
    let spent = ticks(&process) - before;
    assert!(spent < 50, "{spent} hundredths of a second in one");
    // Probes and scrapers are answered.
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    assert_eq!(metric(&admin, "streamweld_ready").await, 1);
    // One of the crowd that is served can have no connection to the backend.
    let mut served = crowd.swap_remove(0);
    let request = client.request("POST", PATH, CHAT);
    served.write_all(&request).await.expect("is sent");
    let refused = patience(Response::read(served)).await.expect("an answer");
    assert_eq!(
        refused.error_code().await,
        (502, "backend_unreachable".to_owned())
    );

    // The connections to Redis can be made anew, and what runs goes on with its ids.
    for kind in ["normal", "pubsub"] {
        redis.cli(&["CLIENT", "KILL", "TYPE", kind]).await;
    }
    mock.gates().release("go");
    first.more(20).await;
    assert!(expected.starts_with(&first.held));

    // When the crowd is gone others are served, and it was told once what the matter was.
    drop(crowd);
    let late = Reading::begin(client.events(&id).await, 40).await;
    let again = client.chat().await;
    assert!(again.is_durable());
    let again_id = again.id();
    mock.gates().release("end");
    for reading in [first, late] {
        assert!(reading.rest().await == (expected.clone(), End::Proper));
    }
    assert!(again.all().await == (whole(&script, &again_id), End::Proper));
    let output = process.output();
    let told = output.matches("descriptors are short").count();
    assert!(told <= 2, "at most once a minute: {output}");
    assert!(!output.contains("cannot accept"), "{output}");
}
