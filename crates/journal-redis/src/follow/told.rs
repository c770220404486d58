//! A follower while its owner tells: when that is wanted, and what is done with it.

use std::sync::Arc;

use streamweld_journal::Closed;

use super::line::News;
use super::{Follower, LIVE, Next, State};
use crate::find::Shown;
use crate::journal::Inner;
use crate::relay::{Ask, Told};

impl Follower {
    /// Has the line there while it is needed.
    pub(super) fn mind_line(&mut self, inner: &Inner) {
        if self.touch.is_none() {
            return;
        }
        let marks = self.window.marks();
        let is_ahead = marks.received > marks.committed;
        if !is_ahead && self.window.is_exposed() {
            self.window.expose(false);
        }
        let is_needed = is_ahead || inner.is_away(self.id);
        // Between being found and being read it stays, so that its owner does not find itself without a reader; it ends
        // with the follower, a while after the last who held that.
        let is_asked_for = self.line.is_open() || self.is_read() || self.is_waited_for();
        let is_wanted = is_needed && is_asked_for && marks.terminal.is_none();
        self.line.want(is_wanted);
        if !is_wanted && !self.registered {
            // It was told by the line alone.
            self.live_no_more();
        }
    }

    /// Something happened on the line to the owner.
    pub(super) fn told(&mut self, inner: &Inner, news: News) -> Next {
        match news {
            News::Due => {
                let ask = Ask {
                    id: self.id,
                    after: self.window.received(),
                    writer: Some(self.place.epoch()),
                };
                self.line.ask(inner.ask_relays(self.owner, ask));
            }
            News::Open(owner) => {
                self.owner = Some(owner);
                tracing::debug!(stream_id = %self.id, "the owner is followed without Redis");
            }
            News::Told(told) => return self.show_told(&told),
            News::Cut => {
                tracing::debug!(stream_id = %self.id, "no replica tells of this stream now");
            }
        }
        Next::GoOn
    }

    fn show_told(&mut self, told: &Told) -> Next {
        match self.place.hear(&self.window, told) {
            Shown::Yes => {}
            Shown::Replaced => return Next::Replaced,
            Shown::Gap | Shown::Broken => {
                tracing::debug!(stream_id = %self.id, "what the owner tells does not go on here");
                self.line.cut();
                return Next::GoOn;
            }
        }
        if self.foreseen.count(&self.window) {
            // As its writer does with what it cannot keep: it is shown, and not held.
            self.window.give_up();
        }
        if self.is_waited_for() && self.window.committed() >= told.committed {
            self.told.send_replace(State::Caught(LIVE));
        }
        self.next()
    }

    /// Whoever saw what does not stand is sent away, and everybody else reads on in a new window, which is to be there when
    /// they look. Whoever follows then has the same registration, so that stays.
    pub(super) fn replaced(&self, inner: &Inner) {
        tracing::debug!(stream_id = %self.id, "what was shown without ids does not stand");
        let window = Arc::clone(&self.window);
        window.expose(false);
        self.over(inner);
        window.close(Closed::Fenced);
    }
}
