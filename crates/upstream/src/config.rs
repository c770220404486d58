//! What can be set about the way to a backend.

use std::path::PathBuf;
use std::time::Duration;

use crate::Dialer;

/// How connections are made and kept. One for all backends of a [`Client`](crate::Client).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// The most a connection may take to be made: name lookup, TCP and TLS together.
    /// Lower notices a dead host sooner; too low gives up on a busy one. Default 5 s.
    pub connect_timeout: Duration,
    /// The most that may pass between handing a request to a connection and having the whole
    /// response head; the time the client takes to send its body counts. Default none: a queue in
    /// front of a model may well take minutes.
    pub first_byte_timeout: Option<Duration>,
    /// The longest silence inside a response body, after which it is cut with
    /// [`CutKind::TimedOut`](crate::CutKind). Only time spent waiting for the backend counts.
    /// Default none: a model may think for minutes.
    pub between_bytes_timeout: Option<Duration>,
    /// How long an unused connection is kept. Lower it below what a load balancer in between
    /// allows, or requests meet connections that are just being closed. Default 90 s.
    pub pool_idle_timeout: Duration,
    /// Unused HTTP/1.1 connections kept to one backend; more are closed. Default 64.
    pub pool_max_idle: usize,
    /// Which HTTP is spoken. Default [`Protocol::Auto`].
    pub protocol: Protocol,
    /// PEM file with certificates to trust besides the system's. TLS peers are always verified;
    /// this is the way to a private authority. Default none.
    pub extra_ca_file: Option<PathBuf>,
    /// PEM files with a certificate to show to whoever asks for one, and the key to it. Default none.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Sends small writes at once. Default on; off saves packets of large uploads in many pieces.
    pub tcp_nodelay: bool,
    /// Idle time after which the kernel probes whether the peer still exists. A half-open
    /// connection ends after about nine probes. Default 15 s; none never notices.
    pub tcp_keepalive: Option<Duration>,
    /// The largest response head in bytes; a larger one is refused. At least 8 KiB. Default 64 KiB.
    /// The number of headers is bounded as well, at 100.
    pub max_response_head: usize,
    /// A connection whose descriptor would have this number or a higher one is not made. The system
    /// gives the lowest that is free, so those above are left for others. Default none.
    pub descriptors_below: Option<i32>,
    /// Another way to backends than TCP, without TLS. What is set about TCP has no effect on it. Default none.
    pub dialer: Option<Dialer>,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: None,
            between_bytes_timeout: None,
            pool_idle_timeout: Duration::from_secs(90),
            pool_max_idle: 64,
            protocol: Protocol::Auto,
            extra_ca_file: None,
            client_certificate: None,
            tcp_nodelay: true,
            tcp_keepalive: Some(Duration::from_secs(15)),
            max_response_head: 64 * 1024,
            descriptors_below: None,
            dialer: None,
        }
    }
}

/// Which HTTP version is spoken to a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1 in the clear; what ALPN settles on over TLS, HTTP/2 preferred. A request that asks
    /// for an upgrade always gets HTTP/1.1, where upgrades exist.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only, by prior knowledge in the clear. Upgrades do not pass.
    Http2,
}

/// Why a [`Client`](crate::Client) could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `extra_ca_file` could not be read, or is not PEM.
    #[error("cannot read certificates from {}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// `extra_ca_file` holds no certificate.
    #[error("no certificate in {}", path.display())]
    CaFileEmpty {
        /// The file.
        path: PathBuf,
    },
    /// A certificate in `extra_ca_file` is not usable as an authority.
    #[error("unusable certificate in {}", path.display())]
    CaCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// `max_response_head` is below 8 KiB.
    #[error("the largest response head must be at least 8 KiB")]
    ResponseHead,
    /// `client_certificate` cannot be used.
    #[error(transparent)]
    Certificate(#[from] streamweld_tls::FileError),
    /// TLS cannot be set up at all.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}
