//! Traces for whoever operates this: spans, and their way to a collector by OTLP over HTTP.
//!
//! ```text
//!  Tracer ──start──> Span ──ends──> Queue (bounded) ──> Exporter ──> collector
//!     ▲                │
//!   Place <────────────┘     a position in a trace, as `traceparent` carries it
//! ```
//!
//! What this crate promises:
//!
//! * whoever ends a span waits for nobody: it goes into a bounded queue, or is dropped and counted;
//! * a collector that is away, slow or silent costs one task and one batch;
//! * a text in a span is bounded, whoever chose it, and so is what is kept of a caller's `tracestate`;
//! * neither the fields that a collector is sent nor its address reach a log line.
//!
//! It knows OpenTelemetry, and no other crate does. It does not know what a generation is.
//!
//! What the standard variables say beyond the collector's place is read by the libraries below: `OTEL_EXPORTER_OTLP_HEADERS`,
//! `OTEL_EXPORTER_OTLP_COMPRESSION`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and its argument.

mod collector;
mod config;
mod counters;
mod exporter;
mod place;
mod queue;
mod span;
mod tracer;

pub use self::config::{Config, ConfigError, Endpoint};
pub use self::counters::Counters;
pub use self::exporter::Exporter;
pub use self::place::Place;
pub use self::span::Span;
pub use self::tracer::{Kind, Tracer};
pub use opentelemetry::Value;
