//! Ending a generation that nobody writes.
//!
//! The log decides. Whoever adopts it from exactly its last entry and writer, under a fresh epoch, writes its end; an owner that
//! was only out of touch is refused from then on, and so is everybody else who tries. What is written here is read as
//! if any other replica had written it: the end goes into a window of its own, behind what stands, and no reader sees
//! it before the journal has it. Continuing such an answer would begin with the same adoption.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_dialect::{Dialect, Ending, stopped_ending};
use streamweld_journal::rules::adoptable;
use streamweld_journal::{
    Epoch, Journal, Outcome, Ownerless, Refusal, Seq, StreamId, Tail, Window, WindowConfig,
    window_until,
};
use tokio::time::{sleep, timeout};

use crate::form::error_form;
use crate::lifecycle::{By, End};
use crate::payload::Label;
use crate::producer::Shared;
use crate::producer::finish::{count_end, stage_end};
use crate::transcript::{transcript, whole_transcript};
use crate::window_at::window_at;

/// How to end it.
#[derive(Clone, Debug)]
pub enum EndAs {
    /// As an error: its owner is gone.
    OwnerLost,
    /// As an error: the journal has lost its end, and it is not known any more how it was.
    Incomplete,
    /// As asked for. What has been said so far is in the window, which follows the log.
    Stopped(By, Arc<Window>),
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenOver {
    /// It has its end, from here.
    Ended,
    /// It has an end, or another writer, or is gone: somebody else was first.
    NotOurs,
    /// The journal has not answered, and nobody wants to go on asking. It may be adopted.
    GivenUp,
}

/// How often a journal that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(250);
/// How long a window that follows may take to come as far as the log.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Ends a generation that nobody writes, for as long as `keep_on` says so.
///
/// # Cancel safety
/// None: dropped in between, it leaves a generation that this process has adopted and nobody ends.
pub async fn take_over(
    shared: &Shared,
    id: StreamId,
    log: &Ownerless,
    how: &EndAs,
    keep_on: impl Fn() -> bool,
) -> TakenOver {
    let journal = &*shared.journal;
    let epoch = log.epoch.fresh();
    let last = match adopt(journal, id, (log.epoch, epoch), None, &keep_on).await {
        Ok(last) => last,
        Err(outcome) => return outcome,
    };
    let label: Option<Label> = serde_json::from_slice(&log.label).ok();
    let dialect = label.and_then(|label| label.open.dialect.parse().ok());
    let dialect = dialect.unwrap_or(Dialect::Generic);
    let now = SystemTime::now();
    let (end, shown): (End, Option<Ending>) = match how {
        EndAs::OwnerLost => (End::OwnerLost, None),
        EndAs::Incomplete => (End::Incomplete, None),
        EndAs::Stopped(by, read) => {
            // The adoption has been told to whoever follows, so what is missing comes now.
            _ = timeout(
                CATCH_UP,
                window_until(read, |window| window.committed() >= last),
            )
            .await;
            let whole = timeout(CATCH_UP, whole_transcript(read, dialect)).await;
            let said = whole.map_or_else(|_| transcript(read, dialect), |whole| whole.transcript);
            let shown = stopped_ending(&said);
            (End::Stopped(*by), Some(shown))
        }
    };
    let shown = match shown {
        None if dialect.numbers_events() => form_behind(journal, id, last, dialect, &end).await,
        shown => shown,
    };
    let window = Window::new(id, epoch, now, WindowConfig::default());
    window.begin_after(last);
    window.set_label(log.label.clone());
    let payload = end.payload(id, last.next(), now);
    stage_end(&window, dialect, &end, &payload, now, shown);
    let outcome = finish(journal, &window, last, &keep_on).await;
    if outcome == TakenOver::Ended {
        count_end(&shared.counters, id, &end);
        tracing::info!(
            stream_id = %id,
            outcome = end.kind().as_str(),
            code = end.code(),
            entries = window.received().get(),
            "generation ended that nobody wrote"
        );
    }
    outcome
}

/// Adopts a log that is still written under the epoch `gone`, to be written under `by`, which is [fresh](Epoch::fresh);
/// from exactly `seam`, where that is given. Gives the last entry.
///
/// # Errors
/// It is not this process' now.
pub async fn adopt(
    journal: &dyn Journal,
    id: StreamId,
    (gone, by): (Epoch, Epoch),
    seam: Option<Seq>,
    keep_on: impl Fn() -> bool,
) -> Result<Seq, TakenOver> {
    loop {
        if let Ok(tail) = journal.tail(id).await {
            let Some(adoption) = adoptable(&tail, gone, by, seam) else {
                return Err(TakenOver::NotOurs);
            };
            match journal.adopt(id, adoption, SystemTime::now()).await {
                Outcome::Yes => return Ok(adoption.last()),
                Outcome::No(_) => return Err(TakenOver::NotOurs),
                // It may stand, or come to. Then it does when the same is asked for again.
                Outcome::Unknown => {}
            }
        }
        if !keep_on() {
            return Err(TakenOver::GivenUp);
        }
        sleep(AGAIN).await;
    }
}

/// Appends the end that is staged behind `last`.
async fn finish(
    journal: &dyn Journal,
    window: &Arc<Window>,
    last: Seq,
    keep_on: impl Fn() -> bool,
) -> TakenOver {
    loop {
        match journal.finish(window, last, SystemTime::now()).await {
            Outcome::Yes => return TakenOver::Ended,
            Outcome::No(Refusal::Full) => {}
            Outcome::No(_) => return TakenOver::NotOurs,
            // It may stand.
            Outcome::Unknown => match journal.tail(window.id()).await {
                Ok(Tail::Last {
                    terminal: true,
                    last,
                    digest,
                    ..
                }) if window.digest(last) == Some(digest) => return TakenOver::Ended,
                Ok(Tail::Last {
                    terminal: false,
                    epoch,
                    ..
                }) if epoch == window.epoch() => {}
                Ok(_) => return TakenOver::NotOurs,
                Err(_) => {}
            },
        }
        if !keep_on() {
            return TakenOver::GivenUp;
        }
        sleep(AGAIN).await;
    }
}

/// The error form with the number that follows that of the last event. `None`: that cannot be read now.
async fn form_behind(
    journal: &dyn Journal,
    id: StreamId,
    last: Seq,
    dialect: Dialect,
    end: &End,
) -> Option<Ending> {
    let window = window_at(journal, id, last, CATCH_UP).await?;
    if window.received() != last {
        return None;
    }
    let message = end.message().unwrap_or_default();
    Some(error_form(&window, dialect, end.code()?, &message))
}
