//! Places as clients count them that know nothing of our sequences: by the number that an event has in its data, or by
//! how many events they have seen (protocol.md 6.1, 6.8).
//!
//! Nothing is kept for this. When somebody asks, the generation is read from its start, as that client was shown it and
//! with what the journal alone has of it, until the place is found. So it costs the one who asks, and the way of an
//! event nothing.

use std::sync::Arc;

use serde::Deserialize;
use streamweld_journal::{Closed, Cursor, Follow, Kind, Reader, Seq, Step, Terminal, View, Window};
use streamweld_sse::{Decoder, Event, Limits};
use tokio::time::timeout_at;

use crate::app::App;
use crate::attach::{self, Readable};
use crate::elsewhere;
use crate::error::{Error, ErrorCode};

/// How much is looked at before others get their turn.
const RUN: usize = 64 << 10;

/// What a client says of where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It has seen so many events.
    Events(u64),
    /// The last event that it has seen has this number.
    Number(u64),
}

/// Where that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind this entry.
    After(Seq),
    /// Behind everything, the form of its end included.
    End,
}

/// Finds a place. One that the generation has not come to yet is waited for, as long as any caller is held.
///
/// # Errors
/// There is no such place (yet), or it cannot be told any more where it is.
pub(crate) async fn find(app: &App, found: &Readable, counted: Counted) -> Result<Place, Error> {
    if counted == Counted::Events(0) {
        return Ok(Place::After(Seq::ZERO));
    }
    let (window, until) = (&found.window, app.held());
    let id = window.id();
    // What is waited for is told to readers only.
    let _reads = found.follow.as_ref().map(Follow::reading);
    let start = match counted {
        // A number can be found wherever the ring begins.
        Counted::Number(_) if window.earlier().is_none() => before(window.earliest()),
        Counted::Number(_) | Counted::Events(_) => Seq::ZERO,
    };
    let view = View {
        ids: true,
        control: false,
    };
    let mut reader = Reader::new(Arc::clone(window), start, view);
    let mut count = Count::new(counted, start);
    let walk = async {
        if reader.prepare().await.is_err() {
            return Err(attach::expired(window));
        }
        loop {
            let place = match reader.next(RUN).await {
                Step::Run {
                    bytes,
                    sequenced: true,
                    ..
                } => each(&bytes, |event| count.event(event)),
                Step::End {
                    terminal,
                    sequenced: true,
                } => Some(count.end(&terminal)),
                Step::Overtaken { .. } | Step::Closed(Closed::Incomplete) => {
                    Some(Err(Lost::Expired))
                }
                // What has no sequence yet is no place to come back to.
                Step::Run { .. } | Step::End { .. } | Step::Closed(_) => {
                    return Err(elsewhere::not_so_far(id));
                }
            };
            if let Some(place) = place {
                return place.map_err(|lost| lost.error(window));
            }
            tokio::task::yield_now().await;
        }
    };
    match timeout_at(until, walk).await {
        Ok(place) => place,
        Err(_) if found.handle.is_some() => Err(Lost::Ahead.error(window)),
        Err(_) => Err(elsewhere::not_so_far(id)),
    }
}

fn before(seq: Seq) -> Seq {
    Seq::new(seq.get().saturating_sub(1))
}

/// Calls `look` for each event of whole blocks, until it gives something.
fn each<T>(bytes: &[u8], mut look: impl FnMut(&Event<'_>) -> Option<T>) -> Option<T> {
    let max_event = usize::MAX;
    let mut decoder = Decoder::new(Limits { max_event });
    let mut rest = bytes;
    // What stands in a journal was decoded before.
    while let Ok(Some(event)) = decoder.decode(&mut rest) {
        if let Some(found) = look(&event) {
            return Some(found);
        }
    }
    None
}

/// Why what was asked for is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The generation has not come there.
    Ahead,
    /// Nobody has what comes behind it any more.
    Expired,
    /// The events have no numbers, or do not count on.
    NotNumbered,
}

impl Lost {
    fn error(self, window: &Window) -> Error {
        let (code, message) = match self {
            Self::Ahead => (
                ErrorCode::CursorAhead,
                "the stream has not come to this place, or never had it; start again without it",
            ),
            Self::Expired => return attach::expired(window),
            Self::NotNumbered => (
                ErrorCode::InvalidParameter,
                "the events of this response are not numbered one after the other, so `starting_after` names no place; ask without it",
            ),
        };
        Error::new(code, message).about(window.id())
    }
}

/// Counts on from event to event.
#[derive(Debug)]
struct Count {
    wanted: Counted,
    /// Where it began; not at the start of the generation where that is gone.
    start: Seq,
    /// The last entry that the client has seen for sure.
    seen: Seq,
    events: u64,
    number: Option<u64>,
}

impl Count {
    fn new(wanted: Counted, start: Seq) -> Self {
        Self {
            wanted,
            start,
            seen: start,
            events: 0,
            number: None,
        }
    }

    /// The place, if it is in front of this event or right behind it.
    fn event(&mut self, event: &Event<'_>) -> Option<Result<Place, Lost>> {
        let cursor = Cursor::parse(event.id()?.as_bytes()).ok()?;
        self.events += 1;
        let wanted = match self.wanted {
            Counted::Events(wanted) => {
                return (self.events == wanted).then_some(Ok(Place::After(cursor.seq)));
            }
            Counted::Number(wanted) => wanted,
        };
        // One without a number is shown again rather than not at all.
        let number = number_of(event)?;
        let last = self.number.replace(number);
        if last.is_some_and(|last| number <= last) {
            return Some(Err(Lost::NotNumbered));
        }
        if number <= wanted {
            self.seen = cursor.seq;
            return (number == wanted).then_some(Ok(Place::After(cursor.seq)));
        }
        let some_are_gone = last.is_none() && self.start > Seq::ZERO && number - wanted > 1;
        Some(if some_are_gone {
            Err(Lost::Expired)
        } else {
            Ok(Place::After(self.seen))
        })
    }

    /// The place, if it is at the end. Its clients count what an end of ours looks like as well.
    fn end(&self, terminal: &Terminal) -> Result<Place, Lost> {
        let (mut forms, mut last) = (0, self.number);
        if terminal.kind == Kind::Stopped {
            each(&terminal.ending, |event| {
                forms += 1;
                last = number_of(event).or(last);
                None::<()>
            });
        }
        let (wanted, events, all) = match self.wanted {
            Counted::Events(wanted) => (wanted, self.events, self.events + forms),
            Counted::Number(_) if self.events > 0 && self.number.is_none() => {
                return Err(Lost::NotNumbered);
            }
            Counted::Number(wanted) => {
                let next =
                    |number: Option<u64>| number.map_or(0, |number| number.saturating_add(1));
                (wanted.saturating_add(1), next(self.number), next(last))
            }
        };
        match terminal.kind {
            // Whoever was told of it is told again: nobody must take it for an end of another kind.
            Kind::Error if wanted <= events + 1 => Ok(Place::After(before(terminal.seq))),
            Kind::Error => Err(Lost::Ahead),
            _ if wanted < all => Ok(Place::After(before(terminal.seq))),
            _ if wanted == all => Ok(Place::End),
            _ => Err(Lost::Ahead),
        }
    }
}

/// The number that an event has in its data.
pub(crate) fn number_of(event: &Event<'_>) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        sequence_number: Option<u64>,
    }
    let data = event.data();
    // A derived struct would also read itself from an array, by position.
    if !data.trim_ascii_start().starts_with('{') {
        return None;
    }
    serde_json::from_str::<Numbered>(&data)
        .ok()?
        .sequence_number
}
