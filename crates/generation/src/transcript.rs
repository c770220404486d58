//! The transcript of a generation, derived from its entries when somebody asks. Never on the hot path.

use std::sync::Arc;

use streamweld_dialect::{Dialect, Transcript};
use streamweld_journal::{EntryBytes, Kind, Page, Seq, Window};

use crate::leg::of_lines;
use crate::payload::{MigrationPayload, call_of};

/// How many entries are read from the window at once, so that its lock is held briefly.
const PAGE: usize = 256;

/// Reads what is committed and retained. Where the ring has dropped the beginning, the transcript begins later and
/// its counts are estimates.
#[must_use]
pub fn transcript(window: &Window, dialect: Dialect) -> Transcript {
    let mut transcript = begun(window, dialect);
    let mut after = before(window.earliest());
    loop {
        let entries = window.entries(after, PAGE);
        push(&mut transcript, &entries);
        match entries.last() {
            Some(last) => after = last.seq,
            None => return transcript,
        }
    }
}

/// A transcript of all there is.
#[derive(Debug)]
pub struct Whole {
    /// The transcript.
    pub transcript: Transcript,
    /// The first entry that is retained, here or in the journal.
    pub earliest: Seq,
    /// Where it has moved.
    pub moves: Moves,
}

/// What the entries `migration` say, for whoever does not run the generation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// How many there are.
    pub count: u32,
    /// Which attempt the last one has begun; 0 where there is none.
    pub attempt: u32,
    /// The backends that were left and gone on with, in order, as often as that was so.
    pub backends: Vec<String>,
}

impl Moves {
    fn push(&mut self, entries: &[EntryBytes]) {
        for entry in entries.iter().filter(|it| it.kind == Kind::Migration) {
            self.count += 1;
            of_lines(&entry.lines, |event| {
                if let Ok(told) = serde_json::from_str::<MigrationPayload>(&event.data()) {
                    self.attempt = told.attempt;
                    self.backends.extend([told.from, told.to]);
                }
            });
        }
    }
}

/// Reads what is committed and retained, with what the journal alone has of it. It waits while that is out of reach.
///
/// # Cancel safety
/// Dropping the future loses nothing.
pub async fn whole_transcript(window: &Window, dialect: Dialect) -> Whole {
    let mut transcript = begun(window, dialect);
    let mut moves = Moves::default();
    let earliest = walk(window, |entries| {
        push(&mut transcript, entries);
        moves.push(entries);
    })
    .await;
    Whole {
        transcript,
        earliest,
        moves,
    }
}

/// Gives every entry that is committed and retained, here or in the journal, in order and some at once. Returns the first of them.
pub(crate) async fn walk(window: &Window, mut each: impl FnMut(&[EntryBytes])) -> Seq {
    let (mut after, mut earliest) = (Seq::ZERO, None);
    let mut read = |entries: &[EntryBytes]| {
        each(entries);
        entries.last().map(|last| last.seq)
    };
    loop {
        let begins = window.earliest();
        if let Some(earlier) = window.earlier().filter(|_| after.next() < begins) {
            let page = Arc::clone(earlier).page(after, before(begins)).await;
            let mut last = after;
            if let Page::Here(page) = &page {
                while let Some(next) = read(&page.entries(last, PAGE)) {
                    last = next;
                }
            }
            if last > after {
                earliest = earliest.or(Some(after.next()));
                after = last;
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
        let Some(last) = read(&entries) else {
            return earliest;
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

fn push(transcript: &mut Transcript, entries: &[EntryBytes]) {
    for entry in entries.iter().filter(|entry| entry.kind == Kind::Event) {
        of_lines(&entry.lines, |event| transcript.push(event));
    }
}

fn before(seq: Seq) -> Seq {
    Seq::new(seq.get().saturating_sub(1))
}
