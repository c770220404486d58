//! The one task that sends spans.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use opentelemetry_otlp::{Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout};

use crate::collector::{Collector, Fault};
use crate::config::{Config, ConfigError};
use crate::counters::Counters;

/// Sends spans that have ended, one batch at a time.
pub struct Exporter {
    otlp: opentelemetry_otlp::SpanExporter,
    ended: Receiver<SpanData>,
    every: Duration,
    timeout: Duration,
    counters: Counters,
    fault: Fault,
    trouble: Trouble,
}

/// The most in one request, as everywhere.
const BATCH: usize = 512;
/// How often the log hears that spans are lost.
const TELL_EVERY: Duration = Duration::from_secs(60);

impl Exporter {
    pub(crate) fn new(
        config: &Config,
        resource: &Resource,
        ended: Receiver<SpanData>,
        counters: Counters,
    ) -> Result<Self, ConfigError> {
        let collector = Collector::new(config)?;
        let fault = collector.fault();
        let mut otlp = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(config.endpoint.whole())
            .with_timeout(config.timeout)
            // Its own way to wait holds a thread up.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|_| ConfigError::Exporter)?;
        otlp.set_resource(resource);
        Ok(Self {
            otlp,
            ended,
            every: config.every,
            timeout: config.timeout,
            counters,
            fault,
            trouble: Trouble::default(),
        })
    }

    /// Sends until `stop` resolves, and then what has ended by then. Whoever cannot wait for that drops the future: what was
    /// not sent yet is lost then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut stopped = false;
        loop {
            let mut batch = Vec::new();
            if stopped {
                // It is closed, so that nothing is waited for.
                self.ended.recv_many(&mut batch, BATCH).await;
                if batch.is_empty() {
                    return;
                }
            } else {
                tokio::select! {
                    () = gather(&mut self.ended, &mut batch, self.every) => {}
                    () = &mut stop => {
                        stopped = true;
                        self.ended.close();
                    }
                }
            }
            if !batch.is_empty() {
                self.send(batch).await;
            }
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len() as u64;
        self.fault.set("timeout");
        let sent = timeout(self.timeout, self.otlp.export(batch)).await;
        let is_taken = matches!(sent, Ok(Ok(())));
        match is_taken {
            true => self.counters.sent.inc_by(count),
            false => self.counters.not_taken.inc_by(count),
        };
        let lost = self.counters.queue_full.get() + self.counters.not_taken.get();
        self.trouble.look(is_taken, lost, &self.fault);
    }
}

/// Waits for a span, and for others for a while.
async fn gather(ended: &mut Receiver<SpanData>, batch: &mut Vec<SpanData>, every: Duration) {
    if ended.recv_many(batch, BATCH).await == 0 {
        // Nobody begins any.
        return std::future::pending().await;
    }
    let mut late = pin!(sleep(every));
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        tokio::select! {
            more = ended.recv_many(batch, room) => if more == 0 { return },
            () = &mut late => return,
        }
    }
}

/// What the log was told of spans that are lost.
#[derive(Default)]
struct Trouble {
    told: Option<Instant>,
    /// How many there were by then.
    lost: u64,
    /// It was told that the collector takes none, and not yet that it does.
    lasts: bool,
}

impl Trouble {
    /// A batch was taken or not, and so many spans are lost in all.
    fn look(&mut self, is_taken: bool, lost: u64, fault: &Fault) {
        if is_taken && std::mem::take(&mut self.lasts) {
            tracing::info!("the collector takes spans again");
        }
        let now = Instant::now();
        let is_told = self.told.is_some_and(|told| now < told + TELL_EVERY);
        if is_told || lost == self.lost {
            return;
        }
        let spans = lost - self.lost;
        if is_taken {
            tracing::warn!(
                spans,
                "spans were dropped: more end than the collector takes"
            );
        } else {
            let why = fault.get();
            tracing::warn!(
                spans,
                why,
                "spans were dropped: the collector does not take them"
            );
            self.lasts = true;
        }
        self.told = Some(now);
        self.lost = lost;
    }
}
