//! Only replicas are told anything, and only replicas are believed.

use std::io::ErrorKind;

use streamweld_journal_redis::relay::NoAnswer;
use streamweld_relay::{Config, Relay};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::pair::{Ca, Owner, ask, next, patience};

#[tokio::test]
async fn without_the_right_certificate_nobody_is_told_anything() {
    let (ca, other) = (Ca::new(), Ca::new());
    let owner = Owner::new(&ca).await;
    let window = owner.begin(3);
    // One that believes in the CA of the owner, and shows what another has issued.
    let stranger = Ca::new();
    stranger.become_like(&other);
    let ca_file = std::fs::read_to_string(ca.files().ca).unwrap();
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
    let owner = Owner::new(&ca).await;
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
        let error = ca.files().check().unwrap_err().to_string();
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
    ca.files().check().unwrap();
}
