//! What happens to the generations of this replica, as an event stream that operators follow (protocol.md 12.4).
//!
//! It is a window like that of a generation, so its readers are ones too: offsets into a ring, each with a cursor to come back with.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use streamweld_generation::{Happening, Onlooker, timestamp};
use streamweld_journal::{Closed, Cursor, Epoch, Kind, Seq, StreamId, Window, WindowConfig};

/// How much of the past somebody who was away is given: some 5,000 turns.
const HELD: usize = 1 << 20;

/// The stream.
pub(crate) struct Feed {
    window: Arc<Window>,
    /// One at a time stages and commits.
    writing: Mutex<()>,
}

impl Feed {
    pub(crate) fn new() -> Arc<Self> {
        let now = SystemTime::now();
        let config = WindowConfig { max_bytes: HELD };
        let window = Window::new(StreamId::generate(now), Epoch::FIRST, now, config);
        let feed = Arc::new(Self {
            window,
            writing: Mutex::default(),
        });
        // The first entry of a window says what it is. Readers are not shown it.
        feed.push(Kind::Open, "streamweld.open", &serde_json::json!({}));
        feed
    }

    pub(crate) fn window(&self) -> &Arc<Window> {
        &self.window
    }

    /// Behind the last of what was told so far.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor {
            stream: self.window.id(),
            seq: self.window.committed(),
            epoch: self.window.epoch(),
        }
    }

    /// Nothing more is told, and whoever follows comes back elsewhere.
    pub(crate) fn close(&self) {
        self.window.close(Closed::Shutdown);
    }

    fn push(&self, kind: Kind, event: &str, data: &impl Serialize) {
        let data = serde_json::to_string(data).expect("plain structs of strings serialise");
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.window.closed().is_some() {
            return;
        }
        let mut staging = self.window.stage(SystemTime::now());
        let seq = staging.push(kind, |out| {
            out.extend_from_slice(format!("event: {event}\ndata: {data}\n").as_bytes());
        });
        drop(staging);
        self.window.commit(seq);
    }
}

impl Onlooker for Feed {
    fn sees(&self, stream: StreamId, what: &Happening<'_>) {
        let turn = Turn {
            stream_id: stream.to_string(),
            time: timestamp(SystemTime::now()),
            what: What::of(what),
        };
        self.push(Kind::Event, turn.what.name(), &turn);
    }
}

/// The data of an event.
#[derive(Serialize)]
struct Turn<'a> {
    stream_id: String,
    time: String,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Created {
        model: Option<&'a str>,
        dialect: &'static str,
        backend: String,
        durability: &'static str,
        taken_over: bool,
    },
    FirstEvent {},
    Migrated {
        from: &'a str,
        to: &'a str,
        trigger: &'static str,
    },
    Degraded {},
    Healed {},
    Ended {
        status: &'static str,
        code: Option<&'static str>,
    },
    Left {},
}

impl<'a> What<'a> {
    fn of(what: &'a Happening<'_>) -> Self {
        match what {
            Happening::Created {
                handle,
                durability,
                inherited,
            } => Self::Created {
                model: handle.model(),
                dialect: handle.spec().dialect.as_str(),
                backend: handle.backend().to_string(),
                durability: durability.as_str(),
                taken_over: *inherited,
            },
            Happening::FirstEvent => Self::FirstEvent {},
            Happening::Migrated { from, to, trigger } => Self::Migrated { from, to, trigger },
            Happening::Degraded => Self::Degraded {},
            Happening::Healed => Self::Healed {},
            Happening::Ended(end) => Self::Ended {
                status: end.kind().as_str(),
                code: end.code(),
            },
            Happening::Left => Self::Left {},
        }
    }

    /// The type of the event.
    fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::FirstEvent {} => "first_event",
            Self::Migrated { .. } => "migrated",
            Self::Degraded {} => "degraded",
            Self::Healed {} => "healed",
            Self::Ended { .. } => "ended",
            Self::Left {} => "left",
        }
    }
}

/// Whether a cursor is one of this stream, and what is behind it is held.
pub(crate) fn is_held(feed: &Feed, cursor: Cursor) -> bool {
    let window = feed.window();
    cursor.stream == window.id()
        && cursor.epoch == window.epoch()
        && cursor.seq <= window.committed()
        && cursor.seq.next() >= window.earliest()
}

/// Behind what a new follower of `feed` begins.
pub(crate) fn now(feed: &Feed) -> Seq {
    feed.window().committed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(feed: &Feed, count: usize) {
        let id = StreamId::generate(SystemTime::now());
        for _ in 0..count {
            feed.sees(id, &Happening::Healed);
        }
    }

    #[test]
    fn a_cursor_is_held_for_as_long_as_what_follows_it() {
        let feed = Feed::new();
        told(&feed, 3);
        let cursor = feed.cursor();
        assert!(is_held(&feed, cursor));
        told(&feed, 10);
        assert!(is_held(&feed, cursor));
        while feed.window().earliest() <= cursor.seq.next() {
            told(&feed, 100);
        }
        assert!(!is_held(&feed, cursor));
        assert!(feed.window().held() <= HELD);
        // Another process has another one.
        assert!(!is_held(&feed, Feed::new().cursor()));
        let ahead = Cursor {
            seq: feed.cursor().seq.next(),
            ..feed.cursor()
        };
        assert!(!is_held(&feed, ahead));
    }

    #[test]
    fn nothing_is_told_once_it_is_closed() {
        let feed = Feed::new();
        feed.close();
        let before = feed.cursor();
        told(&feed, 1);
        assert_eq!(feed.cursor(), before);
    }
}
