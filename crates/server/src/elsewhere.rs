//! Calls about a generation that another replica writes (protocol.md 8.5).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::EndAs;
use streamweld_generation::lifecycle::By;
use streamweld_journal::{
    Closed, Cursor, Follow, Order, Ordered, Ownerless, StreamId, Tail, Unreachable, Window,
    window_until,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::app::App;
use crate::attach::Readable;
use crate::error::{Error, ErrorCode};

/// How often a journal that is out of reach is asked again.
const EVERY: Duration = Duration::from_millis(100);

/// Has a generation stopped by whoever writes it, and waits for its terminal until then.
pub(crate) async fn stop(
    app: &Arc<App>,
    found: &Readable,
    by: By,
    until: Instant,
) -> Result<(), Error> {
    let (journal, window) = (&app.shared.journal, &found.window);
    let id = window.id();
    // What it waits for is told to readers only.
    let _reads = found.follow.as_ref().map(Follow::reading);
    let order = Order::Stop {
        admin: by == By::Admin,
    };
    let ordered = ask(id, until, || journal.order(id, order)).await?;
    if ordered == Ordered::NoWriter && found.follow.is_some() {
        // It may have ended by itself just now. Else it is ended from here.
        match ask(id, until, || journal.tail(id)).await? {
            Tail::Last {
                epoch,
                terminal: false,
                ..
            } => {
                let label = window.label();
                let log = Ownerless { epoch, label };
                let how = EndAs::Stopped(by, Arc::clone(window));
                app.ownerless.end(app, id, log, how);
            }
            Tail::Last { terminal: true, .. } => {}
            // Nor will there be an end to wait for, unless it is on its way.
            Tail::None if window.terminal().is_none() => return Err(log_lost(id)),
            Tail::None => {}
        }
    }
    let ended = window_until(window, |window| window.terminal().is_some());
    match timeout_at(until, ended).await {
        Ok(()) if window.terminal().is_some() => Ok(()),
        Ok(()) if window.closed() == Some(Closed::Incomplete) => Err(log_lost(id)),
        Ok(()) => Err(owner_lost(id)),
        Err(_) => Err(unseen_end(id)),
    }
}

/// A stop is in force, and its terminal has not come in time.
pub(crate) fn unseen_end(id: StreamId) -> Error {
    let message = "it was told to stop, but its end has not been seen yet; ask again";
    Error::new(ErrorCode::JournalUnavailable, message).about(id)
}

/// Nothing is left of it that a terminal could be written to, on whichever replica.
fn log_lost(id: StreamId) -> Error {
    let message = "the journal has lost this stream; only the replica that runs it can stop it";
    Error::new(ErrorCode::StreamNotFound, message).about(id)
}

/// Waits until this replica has come as far as `cursor`, if that is a place that there is. A client may be faster from
/// one replica to the other than what it has read.
pub(crate) async fn catch_up(app: &App, found: &Readable, cursor: Cursor) -> Result<(), Error> {
    let window = &found.window;
    let reached =
        |window: &Window| cursor.seq <= window.committed() && cursor.epoch <= window.epoch();
    if reached(window) {
        return Ok(());
    }
    let (id, until) = (window.id(), app.held());
    if found.follow.is_some() {
        tokio::select! {
            // While the journal is away its owner may tell.
            () = window_until(window, reached) => {}
            tail = ask(id, until, || app.shared.journal.tail(id)) => match tail? {
                Tail::Last { epoch, last, .. } if cursor.seq <= last && cursor.epoch <= epoch => {}
                Tail::Last { .. } | Tail::None => return Ok(()),
            },
        }
    } else if cursor.epoch > window.epoch() {
        // Another replica may have taken it, and the one that wrote it be the last to hear of that.
        return match ask(id, until, || app.shared.journal.tail(id)).await? {
            Tail::Last { epoch, last, .. } if cursor.seq <= last && cursor.epoch <= epoch => {
                Err(not_so_far(id))
            }
            Tail::Last { .. } | Tail::None => Ok(()),
        };
    } else if cursor.seq > window.received() {
        // What is written here and stands already may be shown elsewhere before the yes is heard here, but no more.
        return Ok(());
    }
    let _reads = found.follow.as_ref().map(Follow::reading);
    let waited = timeout_at(until, window_until(window, reached)).await;
    if waited.is_ok() && reached(window) {
        return Ok(());
    }
    Err(not_so_far(id))
}

/// What a caller asks for may be there, but not here yet.
pub(crate) fn not_so_far(id: StreamId) -> Error {
    let message = "this replica has not come as far as the cursor yet; try again";
    Error::new(ErrorCode::JournalUnavailable, message).about(id)
}

/// Nobody writes it, and it has no end.
pub(crate) fn owner_lost(id: StreamId) -> Error {
    let message =
        "the replica that wrote this stream is gone, and nobody has ended it yet; try again";
    Error::new(ErrorCode::OwnerLost, message).about(id)
}

/// Asks the journal until it answers.
pub(crate) async fn ask<T, F>(
    id: StreamId,
    until: Instant,
    question: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Unreachable>>,
{
    let asked = async {
        loop {
            match question().await {
                Ok(answer) => return answer,
                Err(Unreachable) => sleep(EVERY).await,
            }
        }
    };
    timeout_at(until, asked).await.map_err(|_| out_of_reach(id))
}

/// The journal did not answer for as long as a caller is held.
pub(crate) fn out_of_reach(id: StreamId) -> Error {
    let message = "the journal is out of reach; try again";
    Error::new(ErrorCode::JournalUnavailable, message).about(id)
}
