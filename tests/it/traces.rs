//! Generations in traces, as a collector is sent them (protocol.md 12.6).

mod collector_away;
mod life;
mod moved;
mod resumed;
mod secret;

use std::time::Duration;

use streamweld_server::Config;
use streamweld_server::config::TracesConfig;
use streamweld_tests::Collector;

/// A span of a caller's.
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// Sends spans there, soon.
fn traced(config: &mut Config, url: &str) {
    let endpoint = url.parse().expect("a place");
    config.traces = Some(TracesConfig {
        every: Duration::from_millis(10),
        ..TracesConfig::new(endpoint)
    });
}

/// What changes a configuration so.
fn to(collector: &Collector) -> impl Fn(&mut Config) + Send + 'static {
    let url = collector.url();
    move |config| traced(config, &url)
}
