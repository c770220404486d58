//! Waiting for the generation of another replica that has the key.
//!
//! What that replica knows shows here in two places only: its claim, which it renews for as long as its request waits
//! and which is gone when that came to nothing, and its log, once it is open. Both are looked at now and then. A log
//! may be opened before its backend has answered, so that only its second entry says that there is an answer.

use std::mem;
use std::time::Duration;

use streamweld_generation::Access;
use streamweld_journal::{BodyDigest, Follow, Kind, Seq, StreamId};
use tokio::time::{Instant, sleep};

use super::{Key, look};
use crate::app::App;
use crate::attach::{self, Readable};
use crate::caller::Caller;
use crate::elsewhere::owner_lost;
use crate::error::{Error, ErrorCode};

/// How often claim and log are looked at. A repeat that joins is given what the first has been given already, so
/// a tenth of a second is little to it, and two calls in that time are little to the journal.
const EVERY: Duration = Duration::from_millis(100);

/// The generation that has the key, to be read from its start.
pub(crate) struct Waited {
    pub(crate) found: Readable,
    /// The digest of the request that made it, where it is known.
    pub(crate) body: Option<BodyDigest>,
}

/// Waits until the generation `id` can be read. `None`: it came to nothing, and the key is free, or can be given back.
///
/// Meanwhile this counts as its reader where it can be followed already.
pub(crate) async fn wait(
    app: &App,
    key: Key,
    id: StreamId,
    access: &Access,
    mut body: Option<BodyDigest>,
) -> Result<Option<Waited>, Error> {
    // Nothing waits for longer than what it waits for may take.
    let until = Instant::now() + app.settings().generation.max_duration;
    let mut follow: Option<Follow> = None;
    loop {
        if app.is_shutting_down() {
            return Err(Error::shutting_down(
                "the request waited for the answer to the same one at another replica",
            ));
        }
        let found = match attach::find(app, id, &Caller::with(*access)).await {
            Ok(found) => Some(found),
            // No log yet.
            Err(error) if error.code == ErrorCode::StreamNotFound => None,
            Err(error) if error.code == ErrorCode::StreamExpired => return Ok(None),
            Err(error) => return Err(error),
        };
        let stage = found.as_ref().map_or(Stage::Waits, Stage::of);
        if matches!(stage, Stage::Failed) {
            return Ok(None);
        }
        if body.is_none() || !matches!(stage, Stage::Answered) {
            match look(app, key).await {
                Ok(Some((holder, digest))) if holder == id => body = body.or(digest),
                Ok(_) => return Ok(None),
                // The next look for the log says so, if it lasts.
                Err(_) => {}
            }
        }
        match (stage, found) {
            (Stage::Answered, Some(found)) => return Ok(Some(Waited { found, body })),
            (Stage::Lost, _) => return Err(owner_lost(id)),
            (_, found) => {
                // The new hold is there before the old one goes: in between, nobody would seem to be here.
                let held = found.and_then(|found| found.follow).map(|it| it.reading());
                drop(mem::replace(&mut follow, held));
            }
        }
        if Instant::now() >= until {
            let message = "the same request got no answer for as long as a generation may take";
            return Err(Error::new(ErrorCode::BackendTimeout, message));
        }
        sleep(EVERY).await;
    }
}

/// How far a generation has come, as its log shows it.
enum Stage {
    /// There is no answer yet.
    Waits,
    /// It can be read.
    Answered,
    /// It failed, or nobody writes it any more.
    Failed,
    /// Its owner is gone before it had an end.
    Lost,
}

impl Stage {
    fn of(found: &Readable) -> Self {
        match found.window.terminal() {
            Some(terminal) if terminal.kind == Kind::Error => Self::Failed,
            Some(_) => Self::Answered,
            None if found.has_owner() && found.window.committed() > Seq::FIRST => Self::Answered,
            None if found.has_owner() => Self::Waits,
            None if found.follow.is_some() => Self::Lost,
            None => Self::Failed,
        }
    }
}
