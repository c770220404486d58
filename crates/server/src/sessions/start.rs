//! Where a session starts: its start in terms of what is there, or the definite answer why not.

use std::sync::Arc;
use std::time::SystemTime;

use http::header::HeaderValue;
use streamweld_generation::Durability;
use streamweld_journal::{Cursor, Epoch, Gone, Page, Reader, Seq, Tail, Window};
use tokio::time::{timeout, timeout_at};

use super::Return;
use super::plan::{OnGap, Plan, Start};
use super::told::Verdict;
use crate::app::App;
use crate::attach::{self, Readable, Reading};
use crate::elsewhere;
use crate::error::{Error, ErrorCode};
use crate::head;

/// A reader at the start of a session.
pub(super) struct Started {
    pub(super) reader: Reader,
    /// The cursor of that place, where it has one.
    pub(super) place: Option<Cursor>,
    pub(super) verdict: Verdict,
}

/// Finds the start of a session, and waits until the next entry is at hand.
///
/// # Errors
/// There is no such place, or what follows it is not retained.
pub(super) async fn find(
    app: &App,
    found: &Readable,
    plan: &Plan,
    back: Option<Return>,
    reading: &Reading,
) -> Result<Started, Error> {
    if plan.needs_the_end() {
        see_the_end(app, found).await?;
    }
    let (after, given) = match (back, plan.start) {
        (Some(back), _) => {
            elsewhere::catch_up(app, found, back.cursor).await?;
            attach::check(app, &found.window, back.cursor, back.any_epoch).await?;
            (back.cursor.seq, (!back.any_epoch).then_some(back.cursor))
        }
        (None, Start::Cursor) => (Seq::ZERO, None),
        (None, start) => {
            let after = match start {
                Start::Cursor => Seq::ZERO,
                Start::Seq(seq) => sequence(&found.window, seq.get(), plan.clamp)?,
                Start::Since(time) => since(app, &found.window, time).await?,
                Start::Tail(count) => tail(&found.window, count, plan.clamp)?,
            };
            (after, None)
        }
    };
    let (reader, verdict) = attach_at(app, found, after, plan.on_gap, reading).await?;
    let window = &found.window;
    let at = reader.cursor();
    let place = given.filter(|given| given.seq == at).or_else(|| {
        let epoch = match at {
            Seq::ZERO => Epoch::FIRST,
            at => window.epoch_of(at)?,
        };
        Some(Cursor {
            stream: window.id(),
            seq: at,
            epoch,
        })
    });
    Ok(Started {
        reader,
        place,
        verdict,
    })
}

/// A reader behind an entry; where what follows that is not retained and that is all the same, before the earliest.
async fn attach_at(
    app: &App,
    found: &Readable,
    after: Seq,
    on_gap: OnGap,
    reading: &Reading,
) -> Result<(Reader, Verdict), Error> {
    let window = &found.window;
    let view = reading.view(found.dialect(), Durability::Durable);
    let (mut after, mut verdict) = (after, Verdict::Continue);
    let until = app.held();
    loop {
        let mut reader = Reader::new(Arc::clone(window), after, view);
        match timeout_at(until, reader.prepare()).await {
            Ok(Ok(())) => return Ok((reader, verdict)),
            Ok(Err(Gone { earliest })) => {
                let before = Seq::new(earliest.get().saturating_sub(1));
                // The ring may turn meanwhile; it never turns back.
                if on_gap == OnGap::Fail || before <= after {
                    return Err(attach::expired(window));
                }
                (after, verdict) = (before, Verdict::Gap);
            }
            Err(_) => return Err(elsewhere::out_of_reach(window.id())),
        }
    }
}

/// Waits until this replica has come to what is the end now: whoever counts from there, or asks what is beyond it, means
/// that of the journal.
async fn see_the_end(app: &App, found: &Readable) -> Result<(), Error> {
    if found.follow.is_none() {
        return Ok(());
    }
    let id = found.window.id();
    let asked = elsewhere::ask(id, app.held(), || app.shared.journal.tail(id)).await?;
    let Tail::Last { epoch, last, .. } = asked else {
        return Ok(());
    };
    let cursor = Cursor {
        stream: id,
        seq: last,
        epoch,
    };
    elsewhere::catch_up(app, found, cursor).await
}

/// Behind which entry to start with this one.
fn sequence(window: &Window, seq: u64, clamp: bool) -> Result<Seq, Error> {
    let (after, last) = (Seq::new(seq - 1), window.committed());
    match after <= last {
        true => Ok(after),
        false if clamp => Ok(last),
        false => Err(beyond(window, &format!("entry {seq}"))),
    }
}

/// Behind which entry to start with the last so many.
fn tail(window: &Window, count: u64, clamp: bool) -> Result<Seq, Error> {
    let last = window.committed();
    match last.get().checked_sub(count) {
        Some(after) => Ok(Seq::new(after)),
        None if clamp => Ok(Seq::ZERO),
        None => Err(beyond(window, &format!("{count} entries before the end"))),
    }
}

fn beyond(window: &Window, what: &str) -> Error {
    let last = window.committed();
    let message =
        format!("there is no {what}: the last entry is {last}; start there, or send `clamp=true`");
    Error::new(ErrorCode::StartBeyondEnd, message)
        .about(window.id())
        .with_field(head::TAIL, HeaderValue::from(last.get()))
}

/// Behind which entry to start with the first that is no older.
async fn since(app: &App, window: &Arc<Window>, time: SystemTime) -> Result<Seq, Error> {
    let (earliest, first) = (window.earliest(), window.first_since(time));
    let before = |seq: Seq| Seq::new(seq.get().saturating_sub(1));
    if first > earliest || earliest <= Seq::FIRST {
        return Ok(before(first));
    }
    // What is no older may have begun before what is held.
    let Some(earlier) = window.earlier() else {
        return Ok(before(before(first)));
    };
    let (mut after, mut through) = (Seq::ZERO, before(earliest));
    while after < through {
        let middle = Seq::new(after.get() + (through.get() - after.get()) / 2);
        let page = timeout(
            app.settings().edge.hold,
            Arc::clone(earlier).page(middle, through),
        );
        match page.await {
            Err(_) => return Err(elsewhere::out_of_reach(window.id())),
            // What was let go of there too is told when it is read.
            Ok(Page::Gone { .. }) => after = middle.next(),
            Ok(Page::Here(page)) => {
                let found = page.first_since(time);
                if found > page.committed() {
                    after = page.committed().max(middle.next());
                } else if found > page.earliest().max(middle.next()) {
                    return Ok(before(found));
                } else {
                    through = middle;
                }
            }
        }
    }
    Ok(after.min(before(earliest)))
}
