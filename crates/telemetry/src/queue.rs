//! Spans that have ended, until they are sent. Whoever ends one waits for nobody.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc::Sender;

use crate::counters::Counters;

/// The end of the queue where spans come in.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) spans: Sender<SpanData>,
    pub(crate) counters: Counters,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(span).is_err() {
            self.counters.queue_full.inc();
        }
    }

    /// The exporter is asked for that.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
