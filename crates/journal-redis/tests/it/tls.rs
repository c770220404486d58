//! A server behind TLS: what is trusted, and what is not.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use streamweld_journal::{Found, Journal, Outcome};
use streamweld_journal_redis::testing::{Sentinels, Server, Setup};
use streamweld_journal_redis::{ConnectError, RedisJournal, Target};

use crate::connect::{config, connect_to};
use crate::follow::{find, next_order, shows};
use crate::writer::Writer;

/// A server with a certificate for `localhost` of an authority of its own, beside its plain port.
struct Secure {
    server: Server,
    port: u16,
    ca_file: PathBuf,
    /// How a server is told its certificate and key, and whom to trust.
    certificate: [(&'static str, String); 3],
}

impl Secure {
    async fn start() -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &issuer).unwrap();

        let server = Server::new().await;
        let write = |name: &str, text: String| {
            let path = server.folder().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let ca_file = write("ca.pem", ca_pem);
        let certificate = write("certificate.pem", certificate.pem());
        let key = write("key.pem", key.serialize_pem());
        let (certificate, key) = (certificate.display(), key.display());
        let (certificate, key) = (certificate.to_string(), key.to_string());
        // Somebody else may take the port between its choice and its use.
        for _ in 0..5 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut set = vec!["CONFIG", "SET", "tls-auth-clients", "no"];
            set.extend(["tls-cert-file", &certificate, "tls-key-file", &key]);
            let text = port.to_string();
            set.extend(["tls-port", &text]);
            let said = server.cli(&set).await;
            if said == "OK" {
                let ca = ca_file.display().to_string();
                return Self {
                    server,
                    port,
                    ca_file,
                    certificate: [
                        ("tls-cert-file", certificate),
                        ("tls-key-file", key),
                        ("tls-ca-cert-file", ca),
                    ],
                };
            }
            assert!(said.contains("listen"), "needs a server with TLS: {said}");
        }
        panic!("no free port");
    }

    fn target(&self, host: &str) -> Target {
        Target::parse(&format!("rediss://{host}:{}", self.port)).unwrap()
    }
}

#[tokio::test]
async fn all_connections_go_through_tls() {
    let secure = Secure::start().await;
    let target = secure.target("localhost");
    let target = target.with_ca_file(secure.ca_file.clone());
    let (here, there) = (
        connect_to(target.clone(), config()).await,
        connect_to(target, config()).await,
    );
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    // More than a record of TLS holds.
    writer.stage(&"x".repeat(100_000));
    assert_eq!(writer.append().await, Outcome::Yes);
    shows(&window, 2).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let found = there.find(writer.id(), SystemTime::now()).await;
    assert!(matches!(found, Ok(Found::Here { .. })), "{found:?}");
    // Those of this test are the only ones on the plain port.
    let clients = secure.server.cli(&["CLIENT", "LIST"]).await;
    let of_tls = format!(" laddr=127.0.0.1:{} ", secure.port);
    let of_tls = clients.lines().filter(|line| line.contains(&of_tls));
    assert_eq!(of_tls.count(), clients.lines().count() - 1, "{clients}");
    assert!(clients.lines().count() >= 7, "{clients}");
}

async fn check_refused(target: Target, expected: ConnectError) {
    let journal = RedisJournal::start(target, config());
    let error = journal.connected(Duration::from_secs(2)).await;
    assert_eq!(error, Err(expected));
}

#[tokio::test]
async fn what_is_not_trusted_is_not_talked_to() {
    let secure = Secure::start().await;
    let untrusted = ConnectError::Io(std::io::ErrorKind::InvalidData);
    check_refused(secure.target("localhost"), untrusted.clone()).await;
    // Trusted, and another name.
    let other = secure.target("127.0.0.1");
    check_refused(other.with_ca_file(secure.ca_file.clone()), untrusted).await;
}

#[tokio::test]
async fn a_file_without_certificates_is_told_until_it_has_some() {
    let secure = Secure::start().await;
    let file = secure.server.folder().join("later.pem");
    let target = secure.target("localhost").with_ca_file(file.clone());
    let error = |kind| ConnectError::CaFile(kind);
    let missing = error(std::io::ErrorKind::NotFound);
    check_refused(target.clone(), missing).await;
    std::fs::write(&file, "nothing").unwrap();
    let journal = RedisJournal::start(target, config());
    let empty = error(std::io::ErrorKind::InvalidData);
    let connected = journal.connected(Duration::from_secs(1)).await;
    assert_eq!(connected, Err(empty));
    std::fs::copy(&secure.ca_file, &file).unwrap();
    journal.connected(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test]
async fn sentinels_and_the_master_that_they_name_are_reached_by_tls() {
    let secure = Secure::start().await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut setup = Setup::new()
        .config("tls-port", &port.to_string())
        .config("tls-auth-clients", "no")
        // How it speaks to the master.
        .config("tls-replication", "yes")
        .config("sentinel resolve-hostnames", "yes")
        .config("sentinel announce-hostnames", "yes");
    for (key, value) in &secure.certificate {
        setup = setup.config(key, value);
    }
    let sentinel = setup.start_sentinel("localhost", secure.port, 1).await;
    let url = format!("rediss+sentinel://localhost:{port}/{}", Sentinels::NAME);
    let target = Target::parse(&url).unwrap();
    check_refused(target.clone(), ConnectError::NoSentinel).await;
    let target = target.with_ca_file(secure.ca_file.clone());
    let journal = connect_to(target, config()).await;
    let writer = Writer::opened(&journal).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    drop(sentinel);
}
