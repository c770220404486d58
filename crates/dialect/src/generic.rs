//! Streams of which nothing is known: everything passes, and only the body's end can be judged.
//!
//! A clean end is `done` with `end: unknown`, because such a stream has no sign of being whole.

use streamweld_sse::Event;

use crate::{BodyEnd, Done, End, Failure, FailureClass, Mark, Verdict, mark::truncated};

pub(crate) fn event(event: &Event<'_>) -> Mark {
    // The standard dispatches nothing for a block without a data field, and a data-less block in
    // our output breaks clients. Empty data is kept: here it may mean something.
    if event.has_data() {
        Mark::Event
    } else {
        Mark::Skip
    }
}

pub(crate) fn end(how: BodyEnd) -> Verdict {
    match how {
        BodyEnd::Clean => Verdict::Done(Done {
            end: End::Unknown,
            reasons: Vec::new(),
        }),
        BodyEnd::Cut => Verdict::Failed(truncated("the connection was lost in mid-stream")),
        BodyEnd::Silence => Verdict::Failed(
            Failure::new(FailureClass::Stalled).message("nothing came for longer than allowed"),
        ),
    }
}
