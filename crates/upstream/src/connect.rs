//! Making a connection: name, TCP, TLS.
//!
//! The three have one deadline together. TCP is hyper-util's connector (it tries IPv6 and IPv4 side
//! by side); the name lookup is wrapped and TLS done here only so that an error can say which of
//! the three failed. Trust anchors are the system's (found as `rustls-native-certs` documents) plus
//! the configured file.

use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use streamweld_tls::pem;
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt};

use crate::cut::find;
use crate::transport::Transport;
use crate::{Backend, BoxError, ConfigError, Dialer, ErrorKind, Protocol, UpstreamConfig};

/// Which HTTP a connection may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    /// HTTP/1.1, because of an upgrade.
    Http1,
}

/// Which HTTP a connection does speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
}

/// Makes connections as configured.
pub(crate) struct Connector {
    tcp: HttpConnector<Resolver>,
    /// Offers what the configured protocol allows.
    tls: TlsConnector,
    /// Offers HTTP/1.1 only.
    tls_http1: TlsConnector,
    protocol: Protocol,
    timeout: Duration,
    descriptors_below: Option<i32>,
    dialer: Option<Dialer>,
}

/// Why there is no connection.
pub(crate) struct ConnectError {
    pub(crate) kind: ErrorKind,
    pub(crate) source: BoxError,
}

impl Connector {
    pub(crate) fn new(config: &UpstreamConfig) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.enforce_http(false);
        tcp.set_nodelay(config.tcp_nodelay);
        tcp.set_keepalive(config.tcp_keepalive);
        tcp.set_keepalive_interval(config.tcp_keepalive);

        let roots = Arc::new(trust_anchors(config.extra_ca_file.as_deref())?);
        let tls = |alpn: &[&[u8]]| -> Result<TlsConnector, ConfigError> {
            // The provider is named, so that no process-wide default is needed.
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(ConfigError::Tls)?
                .with_root_certificates(Arc::clone(&roots));
            let mut tls = match &config.client_certificate {
                None => tls.with_no_client_auth(),
                Some((certificate, key)) => tls
                    .with_client_auth_cert(pem::certificates(certificate)?, pem::key(key)?)
                    .map_err(ConfigError::Tls)?,
            };
            tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
            Ok(Arc::new(tls).into())
        };
        Ok(Self {
            tcp,
            tls: match config.protocol {
                Protocol::Auto => tls(&[b"h2", b"http/1.1"])?,
                Protocol::Http1 => tls(&[b"http/1.1"])?,
                Protocol::Http2 => tls(&[b"h2"])?,
            },
            tls_http1: tls(&[b"http/1.1"])?,
            protocol: config.protocol,
            timeout: config.connect_timeout,
            descriptors_below: config.descriptors_below,
            dialer: config.dialer.clone(),
        })
    }

    /// What may be used for a request that asks for an upgrade, or does not.
    pub(crate) fn wanted(&self, asks_upgrade: bool) -> Wanted {
        if asks_upgrade && self.protocol == Protocol::Auto {
            Wanted::Http1
        } else {
            Wanted::Any
        }
    }

    pub(crate) async fn connect(
        &self,
        backend: &Backend,
        wanted: Wanted,
    ) -> Result<(Transport, Spoken), ConnectError> {
        match tokio::time::timeout(self.timeout, self.establish(backend, wanted)).await {
            Ok(result) => result,
            Err(elapsed) => Err(ConnectError {
                kind: ErrorKind::ConnectTimeout,
                source: elapsed.into(),
            }),
        }
    }

    async fn establish(
        &self,
        backend: &Backend,
        wanted: Wanted,
    ) -> Result<(Transport, Spoken), ConnectError> {
        let url = backend.url();
        if let Some(dialer) = &self.dialer {
            return self.dialled(dialer, backend).await;
        }
        let tcp = self.tcp.clone().oneshot(backend.connect_uri()).await;
        let tcp = tcp.map_err(ConnectError::tcp)?.into_inner();
        let number = tcp.as_raw_fd();
        if self.descriptors_below.is_some_and(|below| number >= below) {
            return Err(ConnectError::tcp("no descriptor is left for it"));
        }
        if !url.is_tls() {
            return Ok((Transport::Plain(tcp), self.in_the_clear()));
        }

        let name = ServerName::try_from(url.host().to_owned()).map_err(ConnectError::tls)?;
        let connector = match wanted {
            Wanted::Any => &self.tls,
            Wanted::Http1 => &self.tls_http1,
        };
        let tls = connector.connect(name, tcp).await;
        let tls = tls.map_err(ConnectError::tls)?;
        let spoken = match (tls.get_ref().1.alpn_protocol(), self.protocol) {
            (Some(b"h2"), _) => Spoken::Http2,
            // A peer that knows no ALPN: prior knowledge still holds.
            (None, Protocol::Http2) => Spoken::Http2,
            _ => Spoken::Http1,
        };
        Ok((Transport::Tls(Box::new(tls)), spoken))
    }

    async fn dialled(
        &self,
        dialer: &Dialer,
        backend: &Backend,
    ) -> Result<(Transport, Spoken), ConnectError> {
        let url = backend.url();
        if url.is_tls() {
            return Err(ConnectError::tls("what is dialled has no TLS"));
        }
        let stream = dialer.dial(url.host(), url.port()).await;
        let stream = stream.map_err(ConnectError::tcp)?;
        Ok((Transport::Dialled(stream), self.in_the_clear()))
    }

    fn in_the_clear(&self) -> Spoken {
        match self.protocol {
            Protocol::Http2 => Spoken::Http2,
            Protocol::Auto | Protocol::Http1 => Spoken::Http1,
        }
    }
}

impl ConnectError {
    fn tcp(source: impl Into<BoxError>) -> Self {
        let source = source.into();
        let io = find::<io::Error>(&*source).map(io::Error::kind);
        let kind = match io {
            _ if find::<LookupError>(&*source).is_some() => ErrorKind::Dns,
            Some(io::ErrorKind::ConnectionRefused) => ErrorKind::ConnectRefused,
            Some(io::ErrorKind::TimedOut) => ErrorKind::ConnectTimeout,
            _ => ErrorKind::ConnectFailed,
        };
        Self { kind, source }
    }

    fn tls(source: impl Into<BoxError>) -> Self {
        Self {
            kind: ErrorKind::Tls,
            source: source.into(),
        }
    }
}

/// The system's trust anchors and those of `extra`.
fn trust_anchors(extra: Option<&Path>) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::debug!(%error, "a system trust anchor could not be loaded");
    }
    let (added, ignored) = roots.add_parsable_certificates(native.certs);
    tracing::debug!(added, ignored, "system trust anchors loaded");

    let Some(path) = extra else {
        return Ok(roots);
    };
    let unreadable = |source| ConfigError::CaFile {
        path: path.to_owned(),
        source,
    };
    let mut found = false;
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let added = roots.add(certificate.map_err(unreadable)?);
        added.map_err(|source| ConfigError::CaCertificate {
            path: path.to_owned(),
            source,
        })?;
        found = true;
    }
    if !found {
        return Err(ConfigError::CaFileEmpty {
            path: path.to_owned(),
        });
    }
    Ok(roots)
}

/// The system's resolver, whose errors can be told from those of TCP.
#[derive(Clone)]
struct Resolver(GaiResolver);

/// A name lookup failed.
#[derive(Debug, thiserror::Error)]
#[error("name lookup failed")]
struct LookupError(#[source] io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, LookupError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        self.0.poll_ready(cx).map_err(LookupError)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let lookup = self.0.call(name);
        Box::pin(async move { lookup.await.map_err(LookupError) })
    }
}
