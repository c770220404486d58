//! The collector as OTLP sees it: one request, and the same again where that may help.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use opentelemetry_http::{HttpClient, HttpError};
use streamweld_upstream::{Backend, Client, Protocol, UpstreamConfig, UpstreamError};
use tokio::time::sleep;

use crate::config::{Config, ConfigError};

/// Sends to it.
pub(crate) struct Collector {
    client: Client,
    backend: Backend,
    uri: Uri,
    fault: Fault,
}

/// Why the last request has failed, in a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault(Arc<Mutex<String>>);

/// How long the same request waits before it is made again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// The longest answer. There is nothing in it that anybody waits for.
const ANSWER: usize = 64 << 10;

impl Collector {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let upstream = UpstreamConfig {
            protocol: Protocol::Http1,
            extra_ca_file: config.ca_file.clone(),
            pool_max_idle: 1,
            ..UpstreamConfig::default()
        };
        Ok(Self {
            client: Client::new(upstream)?,
            backend: config.endpoint.backend(),
            uri: Uri::from(config.endpoint.path().clone()),
            fault: Fault::default(),
        })
    }

    /// Where it says why it does not take what it is sent.
    pub(crate) fn fault(&self) -> Fault {
        self.fault.clone()
    }

    async fn ask(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, UpstreamError> {
        let mut sent = Request::new(Full::new(request.body().clone()));
        *sent.method_mut() = request.method().clone();
        *sent.uri_mut() = self.uri.clone();
        *sent.headers_mut() = request.headers().clone();
        sent.headers_mut()
            .insert(http::header::CONTENT_LENGTH, request.body().len().into());
        let (parts, body) = self.client.send(&self.backend, sent).await?.into_parts();
        // What it said with its status stands, also where it broke off behind that.
        let body = Limited::new(body.into_body(), ANSWER).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(parts, body))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let answer = self.ask(&request).await;
            let why = match &answer {
                Ok(answer) if answer.status().is_success() => {
                    return Ok(Response::new(Bytes::new()));
                }
                Ok(answer) => answer.status().as_u16().to_string(),
                Err(error) => error.kind().as_str().to_owned(),
            };
            self.fault.set(&why);
            let again = match &answer {
                Ok(answer) => is_passing(answer.status()),
                Err(_) => true,
            };
            match pauses.next().filter(|_| again) {
                Some(pause) => sleep(pause).await,
                None => return Err(why.into()),
            }
        }
    }
}

impl Fault {
    pub(crate) fn set(&self, why: &str) {
        let Self(fault) = self;
        let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone_into(&mut fault);
    }

    pub(crate) fn get(&self) -> String {
        let Self(fault) = self;
        fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the same may be taken a moment later.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}
