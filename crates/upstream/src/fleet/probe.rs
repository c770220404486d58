//! Asking a member whether it can take a request.
//!
//! Each probe makes a connection of its own, because that is what the next attempt may have to do:
//! one that is kept open would still be answered by a backend that accepts no more.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri};
use http_body_util::Empty;

use super::{FailureClass, Member};
use crate::{Client, ConfigError, UpstreamConfig};

/// Sends probes.
pub(super) struct Prober {
    client: Client,
    timeout: Duration,
}

impl Prober {
    /// Probes the way that `config` has attempts go: the same HTTP, the same trust.
    pub(super) fn new(config: &UpstreamConfig, timeout: Duration) -> Result<Self, ConfigError> {
        let client = Client::new(UpstreamConfig {
            first_byte_timeout: None,
            between_bytes_timeout: None,
            // No connection is kept: over HTTP/1.1 not at all, over HTTP/2 not until the next probe.
            pool_max_idle: 0,
            pool_idle_timeout: Duration::ZERO,
            // Want of descriptors here says nothing of a backend, and must not take all of them
            // out. Probes are few: they may use those that are left for others.
            descriptors_below: None,
            ..config.clone()
        })?;
        Ok(Self { client, timeout })
    }

    /// Whether `member` says in time that it is well. Of the answer only the head is awaited.
    pub(super) async fn probe(
        &self,
        member: &Member,
        path: &PathAndQuery,
    ) -> Result<(), FailureClass> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = Uri::from(path.clone());
        let agent = HeaderValue::from_static("streamweld-probe");
        request.headers_mut().insert(USER_AGENT, agent);
        member.credential().apply(request.headers_mut());

        let sent = self.client.send(member.backend(), request);
        let backend = member.name();
        let class = match tokio::time::timeout(self.timeout, sent).await {
            Ok(Ok(response)) if response.status().is_success() => return Ok(()),
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                tracing::debug!(backend, status, "probe failed");
                FailureClass::ProbeStatus
            }
            Ok(Err(error)) => {
                let cause = error.source();
                tracing::debug!(backend, %error, ?cause, "probe failed");
                FailureClass::Request(error.kind())
            }
            Err(_) => {
                tracing::debug!(backend, "probe not answered in time");
                FailureClass::ProbeTimeout
            }
        };
        Err(class)
    }
}
