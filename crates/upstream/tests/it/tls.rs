//! TLS: what is trusted, and which HTTP comes of it.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{Request, Response, Version};
use http_body_util::{Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use streamweld_upstream::{
    Backend, Client, ConfigError, ErrorKind, Protocol, UpstreamConfig, UpstreamError,
};
use tokio_rustls::TlsAcceptor;

use crate::raw::{Raw, TempFile, backend, chain, client, drain, send, within};

/// A backend with a certificate for `localhost` of an authority of its own.
pub(crate) struct Secure {
    pub(crate) raw: Raw,
    ca_file: TempFile,
}

impl Secure {
    pub(crate) async fn start(alpn: &[&str]) -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &issuer).unwrap();

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                key.serialize_der().try_into().unwrap(),
            )
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let raw = Raw::start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                    let version = format!("{:?}", request.version());
                    Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(version)))
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            }
        })
        .await;
        Self {
            raw,
            ca_file: TempFile::new(&ca_pem),
        }
    }

    fn backend(&self) -> Backend {
        backend(&format!("https://localhost:{}", self.raw.port))
    }

    fn client(&self, protocol: Protocol) -> Client {
        Client::new(self.config(protocol)).unwrap()
    }

    /// Trusts it.
    pub(crate) fn config(&self, protocol: Protocol) -> UpstreamConfig {
        UpstreamConfig {
            extra_ca_file: Some(self.ca_file.path().to_owned()),
            protocol,
            ..UpstreamConfig::default()
        }
    }
}

/// What is spoken with a peer that offers `alpn`.
async fn check(alpn: &[&str], protocol: Protocol, expected: Version) {
    let secure = Secure::start(alpn).await;
    let client = secure.client(protocol);
    for _ in 0..3 {
        let mut response = send(&client, &secure.backend()).await.unwrap();
        assert_eq!(response.version(), expected, "{alpn:?}");
        let (seen, cut) = drain(response.body_mut()).await;
        assert_eq!((seen, cut), (format!("{expected:?}"), None), "{alpn:?}");
    }
    assert_eq!(secure.raw.connections(), 1);
}

#[tokio::test]
async fn alpn_decides() {
    check(&["h2", "http/1.1"], Protocol::Auto, Version::HTTP_2).await;
    check(&["http/1.1"], Protocol::Auto, Version::HTTP_11).await;
    check(&[], Protocol::Auto, Version::HTTP_11).await;
}

#[tokio::test]
async fn a_configured_protocol_is_all_that_is_offered() {
    check(&["h2", "http/1.1"], Protocol::Http1, Version::HTTP_11).await;
    check(&["h2", "http/1.1"], Protocol::Http2, Version::HTTP_2).await;
    check(&[], Protocol::Http2, Version::HTTP_2).await;
}

#[tokio::test]
async fn an_upgrade_is_asked_for_over_http_1() {
    let secure = Secure::start(&["h2", "http/1.1"]).await;
    let client = secure.client(Protocol::Auto);
    let response = send(&client, &secure.backend()).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let request = Request::get("/x")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "echo")
        .body(Empty::new())
        .unwrap();
    let response = within(client.send(&secure.backend(), request))
        .await
        .unwrap();
    assert_eq!(response.version(), Version::HTTP_11);
    assert_eq!(secure.raw.connections(), 2);
}

#[track_caller]
fn assert_tls(error: &UpstreamError) {
    assert_eq!(error.kind(), ErrorKind::Tls, "{}", chain(error));
    assert!(!error.request_sent() && error.is_retry_safe());
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let secure = Secure::start(&[]).await;
    assert_tls(&send(&client(), &secure.backend()).await.unwrap_err());
}

#[tokio::test]
async fn another_name_is_refused() {
    let secure = Secure::start(&[]).await;
    let other = backend(&format!("https://127.0.0.1:{}", secure.raw.port));
    let client = secure.client(Protocol::Auto);
    assert_tls(&send(&client, &other).await.unwrap_err());
}

#[tokio::test]
async fn no_common_protocol_is_refused() {
    let secure = Secure::start(&["http/1.1"]).await;
    let client = secure.client(Protocol::Http2);
    assert_tls(&send(&client, &secure.backend()).await.unwrap_err());
}

fn client_error(ca_file: PathBuf) -> ConfigError {
    let config = UpstreamConfig {
        extra_ca_file: Some(ca_file),
        ..UpstreamConfig::default()
    };
    Client::new(config).unwrap_err()
}

#[test]
fn bad_authority_files_are_found_at_start() {
    let missing = client_error("/no/such/file.pem".into());
    assert!(matches!(missing, ConfigError::CaFile { .. }), "{missing:?}");
    let empty = TempFile::new("");
    let error = client_error(empty.path().to_owned());
    assert!(
        matches!(error, ConfigError::CaFileEmpty { .. }),
        "{error:?}"
    );
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let junk = TempFile::new(junk);
    let error = client_error(junk.path().to_owned());
    assert!(
        matches!(error, ConfigError::CaCertificate { .. }),
        "{error:?}"
    );
}

#[test]
fn a_head_limit_below_what_can_be_is_refused() {
    let config = UpstreamConfig {
        max_response_head: 8 * 1024 - 1,
        ..UpstreamConfig::default()
    };
    let error = Client::new(config).unwrap_err();
    assert!(matches!(error, ConfigError::ResponseHead), "{error:?}");
}
