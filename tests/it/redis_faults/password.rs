//! The binary, and a Redis that wants a password and TLS, each in a file of its own.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use streamweld_journal_redis::testing::{Server, Setup};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_tests::{Client, End, Process, patience};
use tokio::net::TcpListener;

async fn mock() -> Mock {
    let config = MockConfig {
        default: Script::tokens(9).id("fixed"),
        ..MockConfig::default()
    };
    Mock::bind("127.0.0.1:0", config).await.expect("a port")
}

/// Asks until the answer is durable, or until it is not.
async fn wait_durability(client: &Client, durable: bool) {
    let asked = async {
        loop {
            let response = client.chat().await;
            let is_it = response.is_durable() == durable;
            assert_eq!(response.all().await.1, End::Proper);
            if is_it {
                return;
            }
        }
    };
    patience(asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_rotated_needs_no_restart() {
    let redis = Setup::new().password("first-secret").start().await;
    let file = redis.folder().join("password");
    std::fs::write(&file, "first-secret\n").expect("it is ours");
    let mock = mock().await;
    let mut process = Process::run_with(
        &[
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
            &format!("--backend={}", mock.url()),
            &format!("--journal=redis://{}", redis.address()),
        ],
        &[(
            "STREAMWELD_JOURNAL_PASSWORD_FILE",
            file.to_str().expect("plain"),
        )],
    );
    let client = process.client().await;
    wait_durability(&client, true).await;
    let set = ["CONFIG", "SET", "requirepass", "second-secret"];
    assert_eq!(redis.cli(&set).await, "OK");
    let kill = ["CLIENT", "KILL", "TYPE", "normal"];
    let auth = ["-a", "second-secret", "--no-auth-warning"];
    redis.cli(&[&auth[..], &kill].concat()).await;
    process
        .wait_output("redis refuses the user or password")
        .await;
    wait_durability(&client, false).await;
    std::fs::write(&file, "second-secret\n").expect("it is ours");
    wait_durability(&client, true).await;
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert!(status.success(), "{output}");
    assert!(!output.contains("-secret"), "{output}");
    let told = output.matches("redis refuses the user or password").count();
    assert_eq!(told, 1, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_nobody_asked_for_stops_who_requires_a_journal() {
    let redis = Server::new().await;
    let file = redis.folder().join("password");
    std::fs::write(&file, "a-secret\n").expect("it is ours");
    let process = Process::serve(&[
        "--backend=http://127.0.0.1:9",
        &format!("--journal=redis://{}", redis.address()),
        &format!("--journal-password-file={}", file.display()),
        "--journal-required",
    ]);
    let (status, output) = process.ended().await;
    assert!(!status.success(), "{output}");
    assert!(
        output.contains("redis has no password, but one was given"),
        "{output}"
    );
    assert!(output.contains("this replica"), "{output}");
    assert!(!output.contains("a-secret"), "{output}");
}

/// Gives a server a certificate for `localhost` and a port for TLS. Gives that port, and the file of who signed.
async fn secure(redis: &Server) -> (u16, PathBuf) {
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new([]).expect("valid");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).expect("signed").pem();
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(["localhost".to_owned()]).expect("valid");
    let certificate = certificate.signed_by(&key, &Issuer::new(ca, ca_key));
    let write = |name: &str, text: String| {
        let path = redis.folder().join(name);
        std::fs::write(&path, text).expect("it is ours");
        path
    };
    let ca_file = write("ca.pem", ca_pem);
    let certificate = write("certificate.pem", certificate.expect("signed").pem());
    let key = write("key.pem", key.serialize_pem());
    // Somebody else may take the port between its choice and its use.
    for _ in 0..5 {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let (certificate, key) = (certificate.display(), key.display());
        let (certificate, key) = (certificate.to_string(), key.to_string());
        let text = port.to_string();
        let mut set = vec!["CONFIG", "SET", "tls-auth-clients", "no"];
        set.extend(["tls-cert-file", &certificate, "tls-key-file", &key]);
        set.extend(["tls-port", &text]);
        if redis.cli(&set).await == "OK" {
            return (port, ca_file);
        }
    }
    panic!("no free port, or a server without TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_with_a_certificate_of_ones_own_is_trusted_by_its_file() {
    let redis = Server::new().await;
    let (port, ca_file) = secure(&redis).await;
    let mock = mock().await;
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal=rediss://localhost:{port}");
    let ca = format!("--journal-ca-file={}", ca_file.display());
    let mut process = Process::serve(&[&backend, &journal, &ca]);
    let client = process.client().await;
    wait_durability(&client, true).await;
    let mut stranger = Process::serve(&[&backend, &journal]);
    let client = stranger.client().await;
    wait_durability(&client, false).await;
    assert!(stranger.output().contains("redis cannot be reached"));
}
