//! A collector of traces, by OTLP over HTTP, with the published types.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::client::patience;

/// A collector that runs. It ends with this.
pub struct Collector {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    status: Mutex<StatusCode>,
    received: watch::Sender<Received>,
}

#[derive(Clone, Default)]
struct Received {
    requests: usize,
    spans: Vec<Span>,
    bytes: Vec<u8>,
    fields: Vec<(String, String)>,
}

/// A span as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What it is called.
    pub name: String,
    /// `server`, `client` or `internal`.
    pub kind: &'static str,
    /// The trace that it is in, in hexadecimal digits.
    pub trace: String,
    /// Which one it is.
    pub id: String,
    /// The one above it, empty where there is none.
    pub parent: String,
    /// What is said of it, lists with commas.
    pub said: BTreeMap<String, String>,
    /// What happened in it.
    pub events: Vec<(String, BTreeMap<String, String>)>,
    /// The spans that it has links to.
    pub links: Vec<String>,
    /// It has failed.
    pub failed: bool,
    /// Of what it is.
    pub resource: BTreeMap<String, String>,
    /// When it began and ended, in nanoseconds since 1970.
    pub times: (u64, u64),
}

impl Span {
    /// What is said of it by this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.said.get(name).map(String::as_str)
    }

    /// Whether it is a generation.
    #[must_use]
    pub fn is_generation(&self) -> bool {
        self.said.contains_key("streamweld.dialect")
    }

    /// Whether it is a request to a backend.
    #[must_use]
    pub fn is_attempt(&self) -> bool {
        self.name.starts_with("attempt ")
    }

    /// Whether it is a reader that came later.
    #[must_use]
    pub fn is_resume(&self) -> bool {
        self.name == "resume"
    }

    /// A `traceparent` that names it.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

impl Collector {
    /// One that takes what it is sent.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            status: Mutex::new(StatusCode::OK),
            received: watch::Sender::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            addr,
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Its place, as `--otlp-endpoint` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Answers with this status from now on. Only a success takes what was sent.
    ///
    /// # Panics
    /// When it is none.
    pub fn answer(&self, status: u16) {
        let now = self.shared.status.lock();
        *now.unwrap_or_else(PoisonError::into_inner) =
            StatusCode::from_u16(status).expect("a status");
    }

    /// Every span that it has taken.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.shared.received.borrow().spans.clone()
    }

    /// Every byte of every request, whether it took it or not.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.shared.received.borrow().bytes.clone()
    }

    /// The fields of all requests.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        self.shared.received.borrow().fields.clone()
    }

    /// Waits until there were so many requests.
    ///
    /// # Panics
    /// When there never are.
    pub async fn requests(&self, count: usize) {
        let mut received = self.shared.received.subscribe();
        let came = patience(received.wait_for(|it| it.requests >= count)).await;
        came.expect("it runs");
    }

    /// Waits until so many spans have come that are like that, and gives them.
    ///
    /// # Panics
    /// When they never do.
    pub async fn wait(&self, count: usize, is: impl Fn(&Span) -> bool) -> Vec<Span> {
        let mut received = self.shared.received.subscribe();
        let like_that = |it: &Received| it.spans.iter().filter(|span| is(span)).count() >= count;
        let came = patience(received.wait_for(like_that))
            .await
            .expect("it runs");
        came.spans.iter().filter(|span| is(span)).cloned().collect()
    }

    /// Waits for the one span that is like that.
    ///
    /// # Panics
    /// When it never comes, or there are several.
    pub async fn one(&self, is: impl Fn(&Span) -> bool) -> Span {
        let [one] = &self.wait(1, is).await[..] else {
            panic!("several: {:?}", self.spans())
        };
        one.clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| take(Arc::clone(&shared), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // It ends with its client, or the process.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn take(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let status = *shared.status.lock().unwrap_or_else(PoisonError::into_inner);
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    assert_eq!(head.method, "POST");
    assert_eq!(head.uri.path(), "/v1/traces");
    assert_eq!(head.headers["content-type"], "application/x-protobuf");
    let sent = ExportTraceServiceRequest::decode(&body[..]).expect("OTLP");
    shared.received.send_modify(|received| {
        received.requests += 1;
        received.bytes.extend_from_slice(&body);
        for (name, value) in &head.headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            received.fields.push((name.to_string(), value));
        }
        if status.is_success() {
            received.spans.extend(spans(sent));
        }
    });
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    Ok(response)
}

fn spans(sent: ExportTraceServiceRequest) -> impl Iterator<Item = Span> {
    sent.resource_spans.into_iter().flat_map(|of| {
        let resource = of.resource.map(|resource| said(resource.attributes));
        let resource = resource.unwrap_or_default();
        let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.map(move |span| span_of(span, &resource))
    })
}

fn span_of(span: otlp::Span, resource: &BTreeMap<String, String>) -> Span {
    let kind = match otlp::span::SpanKind::try_from(span.kind) {
        Ok(otlp::span::SpanKind::Server) => "server",
        Ok(otlp::span::SpanKind::Client) => "client",
        Ok(otlp::span::SpanKind::Internal) => "internal",
        other => panic!("odd kind: {other:?}"),
    };
    let events = span.events.into_iter();
    let links = span.links.into_iter();
    let failed = otlp::status::StatusCode::Error as i32;
    Span {
        name: span.name,
        kind,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        said: said(span.attributes),
        events: events.map(|it| (it.name, said(it.attributes))).collect(),
        links: links.map(|link| hex(&link.span_id)).collect(),
        failed: span.status.is_some_and(|status| status.code == failed),
        resource: resource.clone(),
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
    }
}

fn said(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let value = |value| match value {
        any_value::Value::StringValue(text) => text,
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::DoubleValue(number) => number.to_string(),
        any_value::Value::BoolValue(is) => is.to_string(),
        any_value::Value::ArrayValue(list) => {
            let texts = list.values.into_iter().map(|value| match value.value {
                Some(any_value::Value::StringValue(text)) => text,
                other => panic!("odd member: {other:?}"),
            });
            texts.collect::<Vec<_>>().join(",")
        }
        other => panic!("odd value: {other:?}"),
    };
    let attributes = attributes.into_iter().map(
        |KeyValue {
             key, value: said, ..
         }| {
            let said = said.and_then(|said| said.value).expect("a value");
            (key, value(said))
        },
    );
    attributes.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("into memory");
        hex
    })
}
