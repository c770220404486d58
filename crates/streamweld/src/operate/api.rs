//! One call of the admin API.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use serde_json::Value;
use streamweld_upstream::{Backend, Client, UpstreamConfig};
use tokio::time::timeout;

use crate::args::Admin;

/// The largest answer that is read: a list of a thousand streams has a few hundred KiB.
const LARGEST: usize = 64 << 20;

/// A running server's admin listener.
pub(super) struct Api {
    client: Client,
    listener: Backend,
    token: Option<HeaderValue>,
}

/// What it has answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Api {
    pub(super) fn new(admin: &Admin) -> anyhow::Result<Self> {
        let token = admin.admin_token_file.as_ref().map(|token| {
            let value = [b"Bearer ", token.as_bytes()].concat();
            let mut value = HeaderValue::from_bytes(&value).expect("a token is visible ASCII");
            value.set_sensitive(true);
            value
        });
        Ok(Self {
            client: Client::new(UpstreamConfig {
                extra_ca_file: admin.admin_ca_file.clone(),
                client_certificate: admin
                    .admin_cert_file
                    .clone()
                    .zip(admin.admin_key_file.clone()),
                ..UpstreamConfig::default()
            })?,
            listener: Backend::named("admin listener", admin.admin.checked()?),
            token,
        })
    }

    /// Sends a request without a body. Tells why there was no answer.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        within: Duration,
    ) -> Result<Answer, String> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| error.to_string())?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let call = async {
            let response = self.client.send(&self.listener, request).await;
            let response = response.map_err(|error| {
                let kind = error.kind().as_str();
                format!("the admin listener did not answer ({kind}); is --admin where it listens, and does it run?")
            })?;
            let (head, source) = response.into_parts();
            let body = Limited::new(source.into_body(), LARGEST).collect().await;
            let body = body.map_err(|_| "the answer of the admin listener broke off".to_owned())?;
            let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
            let status = head.status;
            Ok(Answer { status, body })
        };
        let waited = timeout(within, call).await;
        let seconds = within.as_secs();
        waited.map_err(|_| format!("the admin listener did not answer within {seconds} s"))?
    }
}

impl Answer {
    /// Checks that somebody answered who knows what was asked.
    pub(super) fn ours(self, object: &str) -> Result<Self, String> {
        let is_ours = match self.status.is_success() {
            true => self.body["object"] == object,
            false => self.body["error"]["type"] == "streamweld_error",
        };
        if is_ours {
            return Ok(self);
        }
        Err(format!(
            "what answered with {} is no admin listener of Streamweld, or one of another version; --admin has to name it",
            self.status.as_u16()
        ))
    }
}
