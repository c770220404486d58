//! The transcript of a generation, derived from its entries when somebody asks. Never on the hot path.

use std::sync::Arc;

use streamweld_dialect::{Dialect, Transcript};
use streamweld_journal::{EntryBytes, Kind, Page, Seq, Window};
use streamweld_sse::{Decoder, Limits};

use crate::payload::call_of;

/// How many entries are read from the window at once, so that its lock is held briefly.
const PAGE: usize = 256;

/// Reads what is committed and retained. Where the ring has dropped the beginning, the transcript begins later and
/// its counts are estimates.
#[must_use]
pub fn transcript(window: &Window, dialect: Dialect) -> Transcript {
    let mut transcript = begun(window, dialect);
    push_from(&mut transcript, window, before(window.earliest()));
    transcript
}

/// A transcript of all there is.
#[derive(Debug)]
pub struct Whole {
    /// The transcript.
    pub transcript: Transcript,
    /// The first entry that is retained, here or in the journal.
    pub earliest: Seq,
}

/// Reads what is committed and retained, with what the journal alone has of it. It waits while that is out of reach.
///
/// # Cancel safety
/// Dropping the future loses nothing.
pub async fn whole_transcript(window: &Window, dialect: Dialect) -> Whole {
    let mut transcript = begun(window, dialect);
    let (mut after, mut earliest) = (Seq::ZERO, None);
    loop {
        let begins = window.earliest();
        if let Some(earlier) = window.earlier().filter(|_| after.next() < begins) {
            let page = Arc::clone(earlier).page(after, before(begins)).await;
            let read = match &page {
                Page::Here(page) => push_from(&mut transcript, page, after),
                Page::Gone { .. } => after,
            };
            if read > after {
                earliest = earliest.or(Some(after.next()));
                after = read;
                continue;
            }
            // What is missing is left out, as it is where there is nothing but a ring.
            let next = match page {
                Page::Gone { earliest } => {
                    earliest.filter(|next| (after.next()..begins).contains(next))
                }
                Page::Here(_) => None,
            };
            after = after.next().max(before(next.unwrap_or(begins)));
            continue;
        }
        let entries = window.entries(after, PAGE);
        let turned = entries
            .first()
            .is_some_and(|first| first.seq > after.next());
        if turned && window.earlier().is_some() {
            // The ring has let go of some in between.
            continue;
        }
        let first = entries.first().map_or(begins, |first| first.seq);
        let earliest = *earliest.get_or_insert(first);
        let Some(last) = push(&mut transcript, &entries) else {
            return Whole {
                transcript,
                earliest,
            };
        };
        after = last;
    }
}

/// A transcript with what is known beside the events.
fn begun(window: &Window, dialect: Dialect) -> Transcript {
    let mut transcript = Transcript::new(dialect);
    // A generic stream may turn out to answer a call.
    if matches!(dialect, Dialect::Mcp | Dialect::Generic) {
        transcript.answers(call_of(window));
    }
    transcript
}

/// Reads what a window holds behind `after`. Returns the last entry that was read.
fn push_from(transcript: &mut Transcript, window: &Window, mut after: Seq) -> Seq {
    while let Some(last) = push(transcript, &window.entries(after, PAGE)) {
        after = last;
    }
    after
}

/// Returns the last one, if there is any.
fn push(transcript: &mut Transcript, entries: &[EntryBytes]) -> Option<Seq> {
    for entry in entries.iter().filter(|entry| entry.kind == Kind::Event) {
        let mut decoder = Decoder::new(Limits {
            max_event: usize::MAX,
        });
        for mut piece in [&entry.lines[..], b"\n"] {
            if let Ok(Some(event)) = decoder.decode(&mut piece) {
                transcript.push(&event);
            }
        }
    }
    Some(entries.last()?.seq)
}

fn before(seq: Seq) -> Seq {
    Seq::new(seq.get().saturating_sub(1))
}
