//! Members at addresses that a name leads to.

use std::net::{IpAddr, Ipv4Addr};

use http::Version;
use streamweld_upstream::fleet::{MemberState, Reach, Spec};
use streamweld_upstream::{Backend, Client, Protocol};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::{Streaming, attempt, spec, until, watched};
use crate::raw::{Raw, client, drain, read_head, send};
use crate::tls::Secure;

#[tokio::test]
async fn a_member_at_an_address_is_verified_by_its_name() {
    let secure = Secure::start(&["h2"]).await;
    let client = Client::new(secure.config(Protocol::Auto)).unwrap();
    let at = |host: &str| {
        let url = format!("https://{host}:{}", secure.raw.port);
        Backend::at("a", url.parse().unwrap(), Ipv4Addr::LOCALHOST.into())
    };
    let response = send(&client, &at("localhost")).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let error = send(&client, &at("elsewhere.invalid")).await.unwrap_err();
    assert_eq!(error.kind().as_str(), "tls");
}

#[tokio::test]
async fn members_at_two_addresses_share_no_connection_and_are_asked_by_their_name() {
    let raw = Raw::start(|mut stream, _| async move {
        while let Some(head) = read_head(&mut stream).await {
            let host = head.lines().find_map(|line| line.strip_prefix("host: "));
            let host = host.unwrap_or_default();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{host}",
                host.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let client = client();
    let url = format!("http://pods.invalid:{}", raw.port);
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), mapped.into()] {
        let backend = Backend::at("a", url.parse().unwrap(), address);
        for _ in 0..2 {
            let mut response = send(&client, &backend).await.unwrap();
            let (host, cut) = drain(response.body_mut()).await;
            let expected = format!("pods.invalid:{}", raw.port);
            assert_eq!((host, cut), (expected, None));
        }
    }
    assert_eq!(raw.connections(), 2);
}

#[tokio::test]
async fn a_name_is_looked_up_and_its_members_probed() {
    let listener = match TcpListener::bind("[::]:0").await {
        Ok(both_families) => both_families,
        Err(_) => TcpListener::bind("127.0.0.1:0").await.unwrap(),
    };
    let backend = Streaming::start_on(listener);
    let spec = Spec {
        reach: Reach::EveryAddress,
        ..spec("pods", &format!("http://localhost:{}", backend.raw.port))
    };
    let (fleet, _watch) = watched(vec![spec]);
    until(&fleet, "pods-1", MemberState::Up).await;
    let (permit, response) = attempt(&fleet, &client(), "/400").await;
    assert_eq!(permit.member().name(), "pods-1");
    assert_eq!(response.unwrap().status(), 400);
}
