//! What a reader is given next.

use bytes::Bytes;

use super::copies::Form;
use super::listing::Listing;
use super::state::State;
use crate::reader::Step;
use crate::segment::Part;
use crate::types::{Seq, View};

impl State {
    /// The next step of a reader, whose cursor is moved past what it gets and past what it is not shown.
    /// `None`: nothing yet.
    ///
    /// With a `listing` only what is committed is there: it takes down where the entries of a run lie, and what was not
    /// committed has no place that it could have.
    pub(super) fn next(
        &mut self,
        cursor: &mut Seq,
        view: View,
        max: usize,
        listing: Option<&mut Listing>,
    ) -> Option<Step> {
        let visible = match listing {
            Some(_) => self.committed(),
            None => self.visible(),
        };
        let terminal = self.terminal_through(visible).cloned();
        // The terminal is told as such, never sent as an entry.
        let last = terminal
            .as_ref()
            .map_or(visible, |terminal| terminal.seq.prev());
        while *cursor < last {
            let from = cursor.next();
            if from < self.earliest() {
                return Some(Step::Overtaken {
                    earliest: self.earliest(),
                });
            }
            // A run does not mix entries that stand with entries that may not.
            let sequenced = from <= self.committed();
            let limit = if sequenced {
                last.min(self.committed())
            } else {
                last
            };
            let (part, sealed) = self.locate(from).expect("between earliest and received");
            let Some(through) = part.shown(from, limit, view, max) else {
                *cursor = from;
                continue;
            };
            if let Some(listing) = listing {
                listing.take(&part, from, through, self.time(0));
            }
            let form = if view.ids && sequenced {
                Form::Stored
            } else {
                Form::Bare
            };
            let bytes = match (form, sealed) {
                (Form::Stored, Some(sealed)) => sealed.slice(part.run(from, through)),
                _ => self.copy(form, from, through),
            };
            *cursor = self.past_hidden(through, limit, view);
            return Some(Step::Run {
                bytes,
                through: *cursor,
                sequenced,
            });
        }
        if let Some(terminal) = terminal {
            *cursor = terminal.seq;
            let sequenced = terminal.seq <= self.committed();
            return Some(Step::End {
                terminal,
                sequenced,
            });
        }
        self.closed().map(Step::Closed)
    }

    fn copy(&mut self, form: Form, from: Seq, through: Seq) -> Bytes {
        if let Some(bytes) = self.copies.find(form, from, through) {
            return bytes;
        }
        let (part, _) = self.locate(from).expect("located before");
        let bytes = render(&part, form, from, through);
        self.copies.keep(form, from, through, &bytes);
        bytes
    }

    /// Entries right behind a run that the view is not shown are counted as given with it.
    fn past_hidden(&self, through: Seq, limit: Seq, view: View) -> Seq {
        let mut seq = through;
        while seq < limit {
            let (part, _) = self
                .locate(seq.next())
                .expect("between earliest and received");
            if view.shows(part.slot(seq.next()).kind()) {
                break;
            }
            seq = seq.next();
        }
        seq
    }
}

fn render(part: &Part<'_>, form: Form, from: Seq, through: Seq) -> Bytes {
    let stored = &part.bytes[part.run(from, through)];
    match form {
        Form::Stored => Bytes::copy_from_slice(stored),
        Form::Bare => {
            let mut bare = Vec::with_capacity(stored.len());
            part.render_bare(from, through, &mut bare);
            // Trimmed, because a slow socket may keep it for long.
            bare.shrink_to_fit();
            bare.into()
        }
    }
}
