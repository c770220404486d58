//! Where spans begin.

use opentelemetry::trace::{Link, SpanKind, TraceContextExt, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanLimits};
use tokio::sync::mpsc;

use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::exporter::Exporter;
use crate::place::Place;
use crate::queue::Queue;
use crate::span::{Span, cut};

/// Begins spans. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Tracer {
    tracer: SdkTracer,
    /// With the last of these nothing is taken any more.
    _provider: SdkTracerProvider,
}

/// What a span is to those at its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somebody has asked for it.
    Server,
    /// Somebody else is asked.
    Client,
    /// Neither.
    Internal,
}

/// How the name begins that a service has if nobody gave it one.
const NAMELESS: &str = "unknown_service";
const SERVICE_NAME: Key = Key::from_static_str("service.name");
/// Events and links of one span.
const MOST: u32 = 64;

impl Tracer {
    /// With the exporter that sends what it begins, once that is run. `version` is that of this service.
    ///
    /// # Errors
    /// The way to the collector cannot be set up.
    pub fn new(
        config: &Config,
        version: &'static str,
        counters: &Counters,
    ) -> Result<(Self, Exporter), ConfigError> {
        let resource = resource(version);
        let (spans, ended) = mpsc::channel(config.queue.max(1));
        let exporter = Exporter::new(config, &resource, ended, counters.clone())?;
        let queue = Queue {
            spans,
            counters: counters.clone(),
        };
        // The sampler is the one that the variables name, or else what the caller has decided.
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .with_resource(resource)
            .with_span_limits(SpanLimits {
                max_events_per_span: MOST,
                max_links_per_span: MOST,
                ..SpanLimits::default()
            })
            .build();
        let tracer = Self {
            tracer: provider.tracer("streamweld"),
            _provider: provider,
        };
        Ok((tracer, exporter))
    }

    /// Begins one, below `parent` where there is one, and with links to others.
    #[must_use]
    pub fn start(
        &self,
        name: &str,
        kind: Kind,
        parent: Option<&Place>,
        links: impl IntoIterator<Item = Place>,
    ) -> Span {
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.context().clone()),
            None => Context::new(),
        };
        let links = links.into_iter();
        let links = links.map(|to| Link::with_context(to.context().clone()));
        let builder = self.tracer.span_builder(cut(name).to_owned());
        let builder = builder
            .with_kind(match kind {
                Kind::Server => SpanKind::Server,
                Kind::Client => SpanKind::Client,
                Kind::Internal => SpanKind::Internal,
            })
            .with_links(links.collect());
        Span::new(builder.start_with_context(&self.tracer, &context))
    }
}

/// What this process is, as far as the variables do not say so themselves.
fn resource(version: &'static str) -> Resource {
    let said = Resource::builder().build();
    let name = said.get(&SERVICE_NAME);
    let is_named = name.is_some_and(|name| !name.as_str().starts_with(NAMELESS));
    let mut resource = Resource::builder();
    if !is_named {
        resource = resource.with_service_name("streamweld");
    }
    let version_is_said = said.get(&Key::from_static_str("service.version")).is_some();
    if !version_is_said {
        resource = resource.with_attribute(KeyValue::new("service.version", version));
    }
    resource.build()
}
