//! Log lines: what happened to which generation, never what it said.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::args::{Log, LogFormat, LogLevel};

/// Logs to standard error. Libraries below us are kept at warnings: at finer levels some of them print what they
/// send.
pub(crate) fn start(log: &Log) -> Level {
    let (filter, level) = reload::Layer::new(targets(log.log_level));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match log.log_format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).init(),
        LogFormat::Text => registry.with(layer).init(),
    }
    Level(level)
}

/// How important a line must be, which can change.
pub(crate) struct Level(reload::Handle<Targets, Registry>);

impl Level {
    /// Logs from now on what is at least so important.
    pub(crate) fn set(&self, level: LogLevel) {
        // It is gone at the end of the process only.
        _ = self.0.reload(targets(level));
    }
}

fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("streamweld", level)
}
