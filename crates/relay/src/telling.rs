//! What a replica that asks is told: the body of its answer.
//!
//! It is a reader of the owner's window, which sees what other readers see when they see it. It has no queue, so a
//! replica that takes it slowly holds back nobody.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use streamweld_journal::{Reader, Seq, Step, View, Window};
use streamweld_journal_redis::record;
use streamweld_journal_redis::relay::{About, Ask, Told};

use crate::counters::Now;
use crate::listener::Owned;
use crate::wire::{encode_about, encode_told};

/// Ends with the generation, or when it cannot go on.
pub(crate) struct Telling {
    window: Arc<Window>,
    reader: Reader,
    /// Everything through this entry was told.
    through: Seq,
    /// What comes before all entries.
    first: Option<Bytes>,
    is_over: bool,
    _hold: Box<dyn Any + Send>,
    _now: Now,
}

impl Telling {
    /// `None` where what was asked for is not here.
    pub(crate) fn new(owned: Owned, ask: &Ask, now: Now) -> Option<Self> {
        let Owned {
            window,
            access,
            hold,
        } = owned;
        let marks = window.marks();
        let (through, about) = match ask.writer {
            // What comes before was another's, or this one was replaced: only the log can say what stands there.
            Some(writer) if writer != marks.epoch => return None,
            Some(_) => (ask.after, None),
            None => {
                // Who knows nothing of it begins where it can.
                let through = ask.after.min(marks.committed);
                let begins = Seq::new(marks.earliest.get().saturating_sub(1));
                let created = window.time_of(marks.earliest)?;
                let about = About {
                    access,
                    created,
                    label: window.label(),
                    epoch: marks.epoch,
                };
                (through.max(begins), Some(about))
            }
        };
        if through > marks.received || through.next() < marks.earliest {
            return None;
        }
        let mark = encode_told(&Told {
            stands: through <= marks.committed,
            committed: marks.committed,
            record: record::stand(marks.epoch, through).into(),
        });
        let about = about.map(|about| encode_about(&about));
        let first = [about.unwrap_or_default(), mark].concat().into();
        let view = View {
            ids: true,
            control: true,
        };
        Some(Self {
            reader: Reader::new(Arc::clone(&window), through, view),
            window,
            through,
            first: Some(first),
            is_over: false,
            _hold: hold,
            _now: now,
        })
    }

    /// The entries from where it stands to there.
    fn tell(&mut self, through: Seq, stands: bool) -> Option<Bytes> {
        let window = &self.window;
        let batch = window.staged_through(self.through, through);
        // The ring may have gone on over it.
        if batch.after != self.through || batch.through() != through || batch.is_empty() {
            return None;
        }
        let epoch = window.epoch_of(through)?;
        self.through = through;
        Some(encode_told(&Told {
            stands,
            committed: window.committed(),
            record: record::encode(&batch, epoch).into(),
        }))
    }
}

impl Body for Telling {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let told = match ready!(self.reader.poll_next(cx, MOST)) {
            Step::Run {
                through, sequenced, ..
            } => self.tell(through, sequenced),
            Step::End {
                terminal,
                sequenced,
            } => {
                self.is_over = true;
                self.tell(terminal.seq, sequenced)
            }
            Step::Overtaken { .. } | Step::Closed(_) => None,
        };
        self.is_over |= told.is_none();
        Poll::Ready(told.map(|told| Ok(Frame::data(told))))
    }
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling")
            .field("id", &self.window.id())
            .field("through", &self.through)
            .finish_non_exhaustive()
    }
}

/// Bytes in one piece, but for a single entry that is larger.
const MOST: usize = 64 << 10;
