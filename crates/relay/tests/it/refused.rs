//! Only replicas are told anything, and only replicas are believed.

use std::io::ErrorKind;
use std::process::Command;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, date_time_ymd};
use streamweld_journal_redis::relay::NoAnswer;
use streamweld_relay::{Config, Files, Relay};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::pair::{Ca, Owner, ask, next, patience};

#[tokio::test]
async fn without_the_right_certificate_nobody_is_told_anything() {
    let (ca, other) = (Ca::new(), Ca::new());
    let owner = Owner::new(&ca).await;
    let window = owner.begin(3);
    // One that believes in the CA of the owner as well, and shows what another has issued.
    let stranger = Ca::new();
    stranger.become_like(&other);
    let both = [&ca, &other].map(|ca| std::fs::read_to_string(ca.files().ca).unwrap());
    let ca_file = both.concat();
    let [certificate, key] = [stranger.files().certificate, stranger.files().key]
        .map(|file| std::fs::read_to_string(file).unwrap());
    stranger.put(&certificate, &key, &ca_file);
    let asks = Owner::new(&stranger).await;
    let answer = ask(&asks.relay, &owner.addr.to_string(), &window, 0).await;
    assert_eq!(answer.unwrap_err(), NoAnswer::Unreachable);

    // Without TLS, in either version of HTTP.
    let get = format!(
        "GET /v1/generations/{}?after=0 HTTP/1.1\r\nhost: a\r\n\r\n",
        window.id()
    );
    for said in [get.as_bytes(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = TcpStream::connect(owner.addr).await.unwrap();
        stream.write_all(said).await.unwrap();
        let mut told = Vec::new();
        match patience(stream.read_to_end(&mut told)).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert!(told.len() < 16 && !told.starts_with(b"HTTP"), "{told:?}");
    }
}

#[tokio::test]
async fn who_shows_another_certificate_is_not_believed() {
    let (ca, other) = (Ca::new(), Ca::new());
    let impostor = Owner::new(&other).await;
    let asks = Owner::new(&ca).await;
    let window = impostor.begin(3);
    let answer = ask(&asks.relay, &impostor.addr.to_string(), &window, 0).await;
    assert_eq!(answer.unwrap_err(), NoAnswer::Unreachable);
    // Nor is one of the same CA under another name, unless that is the name of all.
    ca.issue("relay.streamweld");
    let owner = Owner::with(&ca, None, Some("relay.streamweld")).await;
    let window = owner.begin(3);
    let address = owner.addr.to_string();
    let answer = ask(&asks.relay, &address, &window, 0).await;
    assert_eq!(answer.unwrap_err(), NoAnswer::Unreachable);
    let named = Owner::with(&ca, None, Some("relay.streamweld")).await;
    assert!(ask(&named.relay, &address, &window, 0).await.is_ok());
}

#[tokio::test]
async fn certificates_are_replaced_without_a_restart() {
    let (ca, later) = (Ca::new(), Ca::new());
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let window = owner.begin(3);
    let address = owner.addr.to_string();
    let mut held = ask(&asks.relay, &address, &window, 0)
        .await
        .unwrap()
        .telling;
    assert!(next(&mut held).await.is_some());
    drop(held);
    // Both are of another CA from now on, and a stranger is one of the old.
    let old = Ca::new();
    old.become_like(&ca);
    ca.become_like(&later);
    let stranger = Owner::new(&old).await;
    assert!(ask(&asks.relay, &address, &window, 0).await.is_ok());
    let answer = ask(&stranger.relay, &address, &window, 0).await;
    assert_eq!(answer.unwrap_err(), NoAnswer::Unreachable);
    // A file that is half written changes nothing.
    ca.put("-----BEGIN CERTIFICATE-----\n", "", "");
    assert!(ask(&asks.relay, &address, &window, 0).await.is_ok());
}

#[tokio::test]
async fn files_that_cannot_be_used_are_told_by_name() {
    let (ca, other) = (Ca::new(), Ca::new());
    let read = |ca: &Ca| {
        let files = ca.files();
        [files.certificate, files.key, files.ca].map(|file| std::fs::read_to_string(file).unwrap())
    };
    let [certificate, key, authority] = read(&ca);
    let [_, other_key, _] = read(&other);
    for (files, said) in [
        (["", &key, &authority], "cert.pem"),
        ([&certificate, "no key", &authority], "key.pem"),
        ([&certificate, &key, "\n"], "ca.pem"),
        ([&certificate, &other_key, &authority], "do not go together"),
    ] {
        ca.put(files[0], files[1], files[2]);
        let error = ca.files().check("127.0.0.1").unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("BEGIN"), "{error}");
        let config = Config {
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: None,
            name: None,
            files: ca.files(),
        };
        assert!(Relay::bind(config).await.is_err());
    }
    ca.put(&certificate, &key, &authority);
    ca.files().check("127.0.0.1").unwrap();
}

/// What this certificate is refused with at the start.
#[track_caller]
fn is_refused(ca: &Ca, name: Option<&str>, said: &[&str]) {
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        advertise: None,
        name: name.map(str::to_owned),
        files: ca.files(),
    };
    let error = config.check().unwrap_err().to_string();
    for part in said {
        assert!(error.contains(part), "{part}: {error}");
    }
}

fn params(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    change(&mut params);
    params
}

#[test]
fn certificates_that_nobody_would_believe_are_refused_at_the_start() {
    let (ca, other) = (Ca::new(), Ca::new());
    let [certificate, key] = [other.files().certificate, other.files().key]
        .map(|file| std::fs::read_to_string(file).unwrap());
    let authority = std::fs::read_to_string(ca.files().ca).unwrap();
    ca.put(&certificate, &key, &authority);
    is_refused(
        &ca,
        None,
        &["cert.pem", "ca.pem", "does not come from the CA"],
    );

    ca.issue_as(params(|it| it.not_after = date_time_ymd(2001, 2, 3)));
    is_refused(
        &ca,
        None,
        &["cert.pem", "expired", "days ago", "issue a new one"],
    );
    ca.issue_as(params(|it| it.not_before = date_time_ymd(4000, 2, 3)));
    is_refused(&ca, None, &["not valid before", "days from now", "clock"]);

    for (usage, missing) in [
        (ExtendedKeyUsagePurpose::ServerAuth, "clientAuth"),
        (ExtendedKeyUsagePurpose::ClientAuth, "serverAuth"),
    ] {
        ca.issue_as(params(|it| it.extended_key_usages = vec![usage]));
        is_refused(&ca, None, &["cert.pem", missing, "extended key usage"]);
    }
    let both = [
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    ca.issue_as(params(|it| it.extended_key_usages = both.to_vec()));
    ca.files().check("127.0.0.1").unwrap();

    is_refused(
        &ca,
        Some("relay.streamweld"),
        &["not for relay.streamweld", "127.0.0.1"],
    );
    ca.issue("relay.streamweld");
    is_refused(&ca, None, &["not for 127.0.0.1", "relay.streamweld"]);
    ca.issue_as(params(|it| it.subject_alt_names.clear()));
    is_refused(
        &ca,
        None,
        &["not for 127.0.0.1", "nothing as subjectAltName"],
    );
}

/// It runs out while it is used: what there was is used on, and a new one is taken as soon as it is there.
#[tokio::test]
async fn one_that_is_no_good_any_more_changes_nothing() {
    let ca = Ca::new();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let window = owner.begin(3);
    let address = owner.addr.to_string();
    ca.issue_as(params(|it| it.not_after = date_time_ymd(2001, 2, 3)));
    assert!(ask(&asks.relay, &address, &window, 0).await.is_ok());
    ca.issue("another.name");
    assert!(ask(&asks.relay, &address, &window, 0).await.is_ok());
}

/// The example for operators, as it stands there.
#[test]
fn the_certificates_of_the_documents_can_be_used() {
    let document = include_str!("../../../../docs/operations.md");
    let (_, section) = document
        .split_once("### The relay's certificates")
        .expect("the section");
    let (_, commands) = section.split_once("```sh\n").expect("commands");
    let (commands, _) = commands.split_once("```").expect("their end");
    let ca = Ca::new();
    let folder = ca.files().ca.parent().unwrap().to_owned();
    let run = Command::new("sh")
        .args(["-euc", commands])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let files = Files {
        certificate: folder.join("relay.pem"),
        key: folder.join("relay.key"),
        ca: folder.join("ca.pem"),
    };
    files.check("relay.streamweld").unwrap();
    // Without its extensions it is of version 1.
    let plain = "openssl x509 -req -in relay.csr -CA ca.pem -CAkey ca.key -days 365 -out relay.pem";
    let run = Command::new("sh")
        .args(["-euc", plain])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(run.status.success());
    let error = files.check("relay.streamweld").unwrap_err().to_string();
    // Newer versions of openssl make version 3 all the same, without a name.
    assert!(
        error.contains("X.509 version 1") || error.contains("nothing as subjectAltName"),
        "{error}"
    );
}
