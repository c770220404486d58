//! Ends that Redis has lost again.
//!
//! An end has its answer, its generation is over, and then Redis falls back to a moment before it: a failover, a file
//! that was torn. Nobody would append it once more, and whoever reads elsewhere would wait for it. So each process
//! keeps the ends that it wrote for a moment, and for as long as Redis is away; whenever it may have other data than
//! before, it looks whether they stand, and writes them again where they do not. One that cannot be written again, because
//! more was lost before it than its window holds, is told as lost: it ends in another way.

use std::sync::Arc;

use streamweld_journal::{Notice, Outcome, Ownerless, Refusal, Tail};

use crate::journal::Inner;

impl Inner {
    /// Looks after all that are in doubt, one after the other. When Redis does not answer, the rest stays in doubt.
    pub(crate) async fn look_after_ends(self: Arc<Self>) {
        let doubted = self.table().doubted_ends();
        for window in doubted {
            let id = window.id();
            let Ok(tail) = self.tail(id).await else {
                return;
            };
            let outcome = match tail {
                Tail::Last {
                    epoch,
                    last,
                    terminal: false,
                    ..
                } if epoch == window.epoch() => {
                    tracing::warn!(stream_id = %id, "Redis has lost the end of a generation; it is written again");
                    self.finish(&window, last).await
                }
                // It stands, or is somebody else's business, or all of it is gone.
                Tail::Last { .. } | Tail::None => Outcome::Yes,
            };
            if outcome != Outcome::Unknown {
                self.table().end_stands(id);
            }
            // The ring has let go of what lies between: nobody has it any more.
            if outcome == Outcome::No(Refusal::Vanished) {
                let (epoch, label) = (window.epoch(), window.label());
                self.notify(id, Notice::EndLost(Ownerless { epoch, label }));
            }
        }
    }
}
