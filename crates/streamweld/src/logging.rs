//! Log lines: what happened to which generation, never what it said.

mod lines;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use self::lines::Lines;
use crate::args::{Log, LogFormat, LogLevel};

/// Of the one log that a process has.
static LINES: Lines = Lines::new();

/// How long an exit waits for what is still to be written.
const LAST: Duration = Duration::from_secs(1);
/// How long whoever panics waits for that to be written: what follows may end the process.
const PANICKED: Duration = Duration::from_millis(100);

/// Logs to standard error. Libraries below us are kept at warnings: at finer levels some of them print what they
/// send.
///
/// # Errors
/// There is no thread to be had that writes.
pub(crate) fn start(log: &Log) -> anyhow::Result<Level> {
    let (filter, level) = reload::Layer::new(targets(log.log_level));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(|| &LINES)
        .with_ansi(io::stderr().is_terminal());
    match log.log_format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).init(),
        LogFormat::Text => registry.with(layer).init(),
    }
    // It is never waited for: it may hang in a write, and goes with the process.
    thread::Builder::new()
        .name("log".to_owned())
        .spawn(|| LINES.write_to(io::stderr()))
        .context("cannot start the thread that writes the log")?;
    std::panic::set_hook(Box::new(panicked));
    Ok(Level(level))
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

/// How many lines were dropped, because nobody took them.
pub(crate) fn dropped() -> u64 {
    LINES.dropped()
}

/// Waits until everything is written, for a while.
pub(crate) fn flush() {
    LINES.flush(LAST);
}

/// Says why the process ends, behind everything else that was logged.
pub(crate) fn say_last(words: &str) {
    let words = format!("{words}\n");
    if LINES.is_written() {
        LINES.put(words.as_bytes());
        flush();
    } else {
        // There is nobody to tell that nobody can be told.
        let _ = io::stderr().write_all(words.as_bytes());
    }
}

/// The same text as without a log, on the way of the log: a thread that wrote it itself would stand still with it.
fn panicked(info: &PanicHookInfo<'_>) {
    let current = thread::current();
    let mut words = format!("thread '{}' {info}\n", current.name().unwrap_or("unnamed"));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        words.push_str(&trace.to_string());
        words.push('\n');
    }
    LINES.put(words.as_bytes());
    LINES.flush(PANICKED);
}

/// Tells of a panic where it was, and not in its own words: those may hold what it was about.
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.as_deref().unwrap_or("unknown");
        tracing::error!(
            place,
            "a fault of this program has ended a task; please report it"
        );
    }));
}
