//! How a backend is found well or not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use streamweld_upstream::fleet::{
    Config, Credential, Family, Fleet, MemberState, Spec, UnavailableReason, Wanted,
};
use streamweld_upstream::{Protocol, Read, UpstreamConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::{Streaming, attempt, fleet, shown, spec, until, watched};
use crate::raw::{FullQueue, Raw, TempFile, client, drain, read_head, within};
use crate::tls::Secure;

#[tokio::test]
async fn probes_take_a_backend_out_and_bring_it_back_while_its_stream_goes_on() {
    let backend = Streaming::start().await;
    let (fleet, _watch) = watched(vec![backend.spec("a")]);
    until(&fleet, "a", MemberState::Up).await;
    let client = client();
    let (_permit, response) = attempt(&fleet, &client, "/stream").await;
    let mut response = response.unwrap();
    let read = within(response.body_mut().read()).await;
    assert!(matches!(read, Read::Data(data) if data == "one "));

    backend.well.store(false, Ordering::SeqCst);
    let down = until(&fleet, "a", MemberState::Down).await;
    assert_eq!(down.last_failure.unwrap().class.as_str(), "probe_status");
    assert_eq!(down.in_flight, 1);
    let refused = fleet.pick(&Wanted::default()).unwrap_err();
    assert_eq!(refused.reason(), UnavailableReason::AllDown);

    backend.finish.send_replace(true);
    assert_eq!(drain(response.body_mut()).await, ("two".into(), None));

    backend.well.store(true, Ordering::SeqCst);
    until(&fleet, "a", MemberState::Up).await;
    fleet.pick(&Wanted::default()).unwrap();
}

#[tokio::test]
async fn each_probe_makes_a_connection_of_its_own() {
    let backend = Streaming::start().await;
    let (fleet, _watch) = watched(vec![backend.spec("a")]);
    until(&fleet, "a", MemberState::Up).await;
    within(async {
        while backend.probes.load(Ordering::SeqCst) < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let probes = backend.probes.load(Ordering::SeqCst);
    assert!(backend.raw.connections() >= probes);
}

/// One that hangs, and one that lets nobody in any more.
#[tokio::test]
async fn a_backend_that_does_not_answer_its_probes_in_time_is_down() {
    let silent =
        Raw::start(|mut stream, _| async move { while read_head(&mut stream).await.is_some() {} })
            .await;
    let full = FullQueue::start().await;
    let config = Config {
        probe_every: Duration::from_millis(20),
        probe_timeout: Duration::from_millis(50),
        ..Config::default()
    };
    let specs = vec![
        spec("silent", &format!("http://127.0.0.1:{}", silent.port)),
        spec("full", &full.url()),
    ];
    let fleet = Fleet::new(specs, config).unwrap();
    let _watch = fleet.watch(&UpstreamConfig::default()).unwrap();
    for name in ["silent", "full"] {
        let down = until(&fleet, name, MemberState::Down).await;
        assert_eq!(down.last_failure.unwrap().class.as_str(), "probe_timeout");
    }
}

#[tokio::test]
async fn a_probe_under_way_ends_with_the_watch() {
    let (probing, mut is_probing) = watch::channel(false);
    let (closed, mut is_closed) = watch::channel(false);
    let raw = Raw::start(move |mut stream, _| {
        let (probing, closed) = (probing.clone(), closed.clone());
        async move {
            read_head(&mut stream).await;
            probing.send_replace(true);
            // Nothing more comes but the end.
            assert!(stream.read_u8().await.is_err());
            closed.send_replace(true);
        }
    })
    .await;
    let (fleet, watch) = watched(vec![spec("a", &format!("http://127.0.0.1:{}", raw.port))]);
    within(is_probing.wait_for(|&it| it)).await.unwrap();
    drop(watch);
    within(is_closed.wait_for(|&it| it)).await.unwrap();
    assert_eq!(raw.connections(), 1);
    assert_eq!(shown(&fleet, "a").unwrap().state, MemberState::Starting);
}

#[tokio::test]
async fn probes_go_the_way_that_attempts_go() {
    for (alpn, protocol) in [("h2", Protocol::Auto), ("http/1.1", Protocol::Http1)] {
        let secure = Secure::start(&[alpn]).await;
        let members = || vec![spec("a", &format!("https://localhost:{}", secure.raw.port))];
        let fleet_of = |config: &UpstreamConfig| {
            let fleet = fleet(members());
            let watch = fleet.watch(config).unwrap();
            (fleet, watch)
        };
        let (trusting, _watch) = fleet_of(&secure.config(protocol));
        until(&trusting, "a", MemberState::Up).await;

        // Whoever speaks another HTTP, or does not trust the certificate, finds it down.
        let other = match protocol {
            Protocol::Http1 => Protocol::Http2,
            Protocol::Auto | Protocol::Http2 => Protocol::Http1,
        };
        for config in [secure.config(other), UpstreamConfig::default()] {
            let (fleet, _watch) = fleet_of(&config);
            let down = until(&fleet, "a", MemberState::Down).await;
            assert_eq!(down.last_failure.unwrap().class.as_str(), "tls");
        }
    }
}

#[tokio::test]
async fn a_backend_with_a_credential_of_the_proxys_is_probed_with_it() {
    let raw = Raw::start(|mut stream, _| async move {
        let head = read_head(&mut stream).await.unwrap();
        let knows_us = head.contains("\r\nauthorization: Bearer s3cret\r\n");
        let status = if knows_us {
            "200 OK"
        } else {
            "401 Unauthorized"
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let file = TempFile::new("s3cret\n");
    let url = format!("http://127.0.0.1:{}", raw.port);
    let with = Spec {
        credential: Credential::from_file(file.path(), Family::Openai).unwrap(),
        ..spec("with", &url)
    };
    let (fleet, _watch) = watched(vec![with, spec("without", &url)]);
    until(&fleet, "with", MemberState::Up).await;
    until(&fleet, "without", MemberState::Down).await;
}
