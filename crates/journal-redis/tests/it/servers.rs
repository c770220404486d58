//! The servers that the other tests start.

use std::process::{Command, Stdio};

use streamweld_journal_redis::testing::{Cluster, Fsync, Sentinels, Server, Setup, until};

#[tokio::test]
async fn a_restart_keeps_the_port_and_not_the_data() {
    let mut server = Server::new().await;
    let port = server.port();
    server.cli(&["SET", "a", "1"]).await;
    server.restart().await;
    assert_eq!(server.port(), port);
    assert_eq!(server.cli(&["GET", "a"]).await, "");
}

#[tokio::test]
async fn an_append_only_file_outlives_a_kill() {
    let mut server = Setup::new().append_only(Fsync::Always).start().await;
    server.cli(&["SET", "a", "1"]).await;
    server.kill();
    server.restart().await;
    assert_eq!(server.cli(&["GET", "a"]).await, "1");
    server.shut_down().await;
    server.restart().await;
    assert_eq!(server.cli(&["GET", "a"]).await, "1");
}

#[tokio::test]
async fn a_password_a_limit_and_a_socket() {
    let server = Setup::new()
        .password("let-me-in")
        .max_memory("2mb", "noeviction")
        .unix_socket()
        .start()
        .await;
    assert_eq!(
        server.cli(&["CONFIG", "GET", "maxmemory"]).await,
        "maxmemory\n2097152"
    );
    assert!(server.socket().exists());
    assert!(server.url().contains("let-me-in@127.0.0.1"));
}

#[tokio::test]
async fn a_replica_goes_along() {
    let primary = Server::new().await;
    let replica = Setup::new().replica_of(&primary).start().await;
    replica.wait_replicating().await;
    primary.cli(&["SET", "a", "1"]).await;
    until("it is replicated", async || {
        replica.cli(&["GET", "a"]).await == "1"
    })
    .await;
}

#[tokio::test]
async fn one_that_is_dropped_leaves_nothing() {
    let server = Server::new().await;
    let (folder, address) = (server.folder(), server.address());
    server.pause();
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Not a test: what the next one runs as a process of its own, to kill it.
#[tokio::test]
#[ignore = "it waits until it is killed"]
async fn victim() {
    let server = Server::new().await;
    println!("{} {}", server.address(), server.folder().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn one_dies_with_a_process_that_is_killed() {
    use std::io::{BufRead, BufReader};

    let mut process = Command::new(std::env::current_exe().expect("it runs"))
        .args(["servers::victim", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let output = BufReader::new(process.stdout.take().expect("piped"));
    let line = output
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("127.0.0.1:"))
        .expect("it says where the server is");
    // The harness may have begun the line.
    let (address, folder) = line.split_once(' ').map_or(("", ""), |_| {
        let mut words = line.split(' ').rev();
        let folder = words.next().unwrap_or_default();
        (words.next().unwrap_or_default(), folder)
    });
    assert!(std::net::TcpStream::connect(address).is_ok());
    process.kill().expect("it is ours");
    process.wait().expect("it is ours");
    until("the server is gone", async || {
        std::net::TcpStream::connect(address).is_err() && !std::path::Path::new(folder).exists()
    })
    .await;
}

#[tokio::test]
async fn a_cluster_shares_the_slots() {
    let cluster = Cluster::new().await;
    // The slot of `foo` is 12182.
    let answer = cluster.nodes[0].cli(&["SET", "foo", "1"]).await;
    assert!(answer.starts_with("MOVED 12182 "), "{answer}");
    assert_eq!(cluster.nodes[2].cli(&["SET", "foo", "1"]).await, "OK");
}

#[tokio::test]
async fn sentinels_make_the_replica_the_primary() {
    let mut all = Sentinels::new().await;
    assert_eq!(all.primary_port().await, Some(all.primary.port()));
    all.primary.kill();
    until("the replica takes over", async || {
        all.primary_port().await == Some(all.replica.port())
    })
    .await;
    assert!(all.replica.cli(&["ROLE"]).await.starts_with("master"));
}
