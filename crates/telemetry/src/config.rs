//! Where the collector is, and how it is talked to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use streamweld_upstream::{Backend, BackendUrl, BackendUrlError};

/// How spans are sent.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to.
    pub endpoint: Endpoint,
    /// PEM file with certificates to trust besides the system's. Default none.
    pub ca_file: Option<PathBuf>,
    /// How long a batch may take, repeats included; after that it is dropped. Longer outlasts longer pauses of a collector, and
    /// fills the queue meanwhile. Default 10 s, as everywhere.
    pub timeout: Duration,
    /// How long a batch gathers before it is sent. Longer makes fewer requests. Default 1 s.
    pub every: Duration,
    /// How many spans may wait. Default 2048, as everywhere; at 2 KiB each that is 4 MiB.
    pub queue: usize,
}

impl Config {
    /// The defaults.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            ca_file: None,
            timeout: Duration::from_secs(10),
            every: Duration::from_secs(1),
            queue: 2048,
        }
    }
}

/// A collector's place for traces.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: BackendUrl,
    path: PathAndQuery,
    whole: String,
}

/// Behind the place of a collector, for traces.
const TRACES: &str = "/v1/traces";

impl Endpoint {
    /// The place itself, path included, as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` has it.
    ///
    /// # Errors
    /// It is no URL that one can be reached by.
    pub fn exact(whole: &str) -> Result<Self, BackendUrlError> {
        let url: BackendUrl = whole.parse()?;
        let uri: http::Uri = whole.parse().map_err(|_| BackendUrlError::Syntax)?;
        let path = uri.path_and_query().cloned();
        Ok(Self {
            url,
            path: path.unwrap_or_else(|| PathAndQuery::from_static("/")),
            whole: whole.to_owned(),
        })
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.is_tls()
    }

    /// Host and port: a path may be a secret.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.url.host(), self.url.port())
    }

    pub(crate) fn whole(&self) -> &str {
        &self.whole
    }

    pub(crate) fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Without the path, which requests have.
    pub(crate) fn backend(&self) -> Backend {
        let scheme = if self.url.is_tls() { "https" } else { "http" };
        let host = match self.url.host() {
            ipv6 if ipv6.contains(':') => format!("[{ipv6}]"),
            host => host.to_owned(),
        };
        let bare = format!("{scheme}://{host}:{}", self.url.port());
        let bare = bare.parse().expect("a part of a URL that was one");
        Backend::named("collector", bare)
    }
}

impl FromStr for Endpoint {
    type Err = BackendUrlError;

    /// The place of a collector, `/v1/traces` below it being the one for traces, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    fn from_str(base: &str) -> Result<Self, Self::Err> {
        Self::exact(base)?;
        Self::exact(&format!("{}{TRACES}", base.trim_end_matches('/')))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint")
            .field(&self.host_and_port())
            .finish()
    }
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The way there cannot be set up.
    #[error("cannot set up the connection to the collector")]
    Upstream(#[from] streamweld_upstream::ConfigError),
    /// One of the standard variables has a value that cannot be used. Never repeats it.
    #[error(
        "cannot set up OTLP: OTEL_EXPORTER_OTLP_COMPRESSION may be gzip or none, and no other variable of OTEL_EXPORTER_OTLP_* may be malformed"
    )]
    Exporter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_a_place_below_that_of_the_collector() {
        for (base, whole) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
        ] {
            let endpoint: Endpoint = base.parse().unwrap();
            assert_eq!(endpoint.whole(), whole);
            assert_eq!(Endpoint::exact(whole).unwrap(), endpoint);
        }
        assert_eq!(Endpoint::exact("http://c").unwrap().path(), "/");
        assert_eq!(Endpoint::exact("http://[::1]:4318/t").unwrap().path(), "/t");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for base in ["c:4318", "grpc://c", "http://k:s@c", "http://c/?key=s"] {
            assert!(base.parse::<Endpoint>().is_err(), "{base}");
        }
    }

    #[test]
    fn a_path_is_not_shown() {
        let endpoint = Endpoint::exact("https://c/secret/v1/traces").unwrap();
        assert_eq!(format!("{endpoint:?}"), "Endpoint(\"c:443\")");
    }
}
