//! What is logged while a test looks.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, span};

/// Warnings and errors of this thread, for as long as it is held: so the test has a runtime of one thread.
pub(crate) struct Logs {
    lines: Arc<Mutex<Vec<String>>>,
    /// What is for debugging only.
    details: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Logs {
    pub(crate) fn begin() -> Self {
        Self::above(Level::WARN)
    }

    /// The same, and milestones among them; and what is for debugging, for itself.
    pub(crate) fn begin_with_milestones() -> Self {
        Self::above(Level::DEBUG)
    }

    fn above(level: Level) -> Self {
        // With a single collector, a place in the code that is first passed in a thread without one is taken for
        // silent in all threads. So there is always another.
        static OTHER: OnceLock<Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| {
            Dispatch::new(Collector {
                level: Level::DEBUG,
                lines: Arc::default(),
                details: Arc::default(),
            })
        });
        let (lines, details) = (Arc::default(), Arc::default());
        let collector = Collector {
            level,
            lines: Arc::clone(&lines),
            details: Arc::clone(&details),
        };
        Self {
            lines,
            details,
            _guard: tracing::subscriber::set_default(collector),
        }
    }

    /// The lines that hold this.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        let found = lines.iter().filter(|line| line.contains(text));
        found.cloned().collect()
    }

    /// How many lines for debugging hold this.
    pub(crate) fn debug(&self, text: &str) -> usize {
        let lines = self.details.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }
}

struct Collector {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
    details: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let is_detail = *event.metadata().level() > Level::INFO;
        let lines = if is_detail {
            &self.details
        } else {
            &self.lines
        };
        lines.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
