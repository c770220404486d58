//! Idempotency keys: the same key meets the same generation (protocol.md 9.1, 8.5).

mod wait;

use std::future::Future;
use std::time::Duration;

use http::HeaderMap;
use streamweld_generation::{Access, Handle, steady_now};
use streamweld_journal::{BodyDigest, Claim, Found, Journal, Kind, Seq, StreamId, Unreachable};
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::error::{Error, ErrorCode};
use crate::head;

pub(crate) use self::wait::{Waited, wait};

/// The digest of a key in the scope of its caller; the key itself is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) [u8; 32]);

/// What a key leads to.
pub(crate) enum Met {
    /// Nobody has it: it is this candidate's now.
    Free,
    /// A generation has it.
    Taken {
        id: StreamId,
        body: Option<[u8; 32]>,
    },
}

/// The key of a request, if it has one.
pub(crate) fn key(headers: &HeaderMap, access: &Access) -> Result<Option<Key>, Error> {
    let mut values = [head::IDEMPOTENCY_KEY_OURS, head::IDEMPOTENCY_KEY]
        .into_iter()
        .flat_map(|name| {
            headers
                .get_all(name)
                .iter()
                .map(http::HeaderValue::as_bytes)
        });
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != first) {
        let message = "the request carries different idempotency keys; send one";
        return Err(Error::new(ErrorCode::IdempotencyConflict, message));
    }
    if first.is_empty() || first.len() > 255 || !first.iter().all(u8::is_ascii_graphic) {
        let message = "an idempotency key is 1 to 255 visible ASCII characters without spaces";
        return Err(Error::new(ErrorCode::InvalidIdempotencyKey, message));
    }
    Ok(Some(Key(access.scoped("idempotency", &[first]))))
}

/// Claims a key for a candidate, or says who has it. A journal that is out of reach, or takes longer than a log may to
/// open, refuses nobody: the request is then served as if it had no key.
pub(crate) async fn claim(app: &App, key: Key, id: StreamId) -> Met {
    let now = steady_now();
    let journal = &app.shared.journal;
    // A head waits for the opening of its log for no longer.
    let claim = async || {
        let claim = journal.claim(key.0, id, now);
        timeout(app.shared.limits.heal.open, claim)
            .await
            .unwrap_or(Err(Unreachable))
    };
    match claim().await {
        Ok(Claim::Taken { id: earlier, body }) => {
            // A key whose generation ended in error, or is not retained any more, is free again. One that nobody has
            // heard of may get its log yet, from another replica: until then the claim itself says who has the key.
            let spent = app.shared.registry.find(earlier).is_none()
                && match journal.find(earlier, now).await {
                    Ok(Found::Here { window, follow, .. }) => match window.terminal() {
                        Some(terminal) => terminal.kind == Kind::Error,
                        None => follow.is_none(),
                    },
                    Ok(Found::Expired { .. }) => true,
                    Ok(Found::Unknown) | Err(_) => false,
                };
            if spent && journal.release(key.0, earlier).await.is_ok() {
                if let Ok(Claim::Taken { id, body }) = claim().await {
                    return Met::Taken { id, body };
                }
                return Met::Free;
            }
            Met::Taken { id: earlier, body }
        }
        Ok(Claim::Won) | Err(_) => Met::Free,
    }
}

/// Waits for `dispatch`, and renews the claim of its candidate meanwhile, so that no repeat is dispatched beside it
/// however long it takes. Ends with `dispatch`, so that nothing is claimed once the candidate has been decided.
///
/// A renewal decides nothing about the request: one without an answer is followed by the next, and a key that has got
/// lost is not fought for.
///
/// # Cancel safety
/// As `dispatch`; a renewal under way may or may not be done.
pub(crate) async fn keep<T>(
    journal: &dyn Journal,
    key: Key,
    candidate: &Handle,
    every: Duration,
    dispatch: impl Future<Output = T>,
) -> T {
    let stream_id = candidate.spec().id;
    let renew = async {
        loop {
            sleep(every).await;
            // From the opening on the claim lives as long as the log.
            if candidate.window().committed() > Seq::ZERO {
                return;
            }
            let claim = journal.claim(key.0, stream_id, steady_now());
            match timeout(every, claim).await {
                Ok(Ok(Claim::Won)) => {}
                Ok(Ok(Claim::Taken { .. })) => {
                    tracing::warn!(%stream_id, "the idempotency key of a waiting request has gone to another");
                    return;
                }
                Ok(Err(_)) | Err(_) => {
                    tracing::debug!(%stream_id, "an idempotency key could not be renewed");
                }
            }
        }
    };
    tokio::pin!(dispatch);
    tokio::select! {
        biased;
        output = &mut dispatch => return output,
        () = renew => {}
    }
    dispatch.await
}

/// Refuses a key that belongs to another generation than the cursor beside it.
pub(crate) async fn check_cursor(app: &App, key: Key, stream: StreamId) -> Result<(), Error> {
    match look(app, key).await {
        Ok(Some((id, _))) if id != stream => {
            let message = "the idempotency key belongs to another stream than the cursor";
            Err(Error::new(ErrorCode::CursorMismatch, message).about(stream))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Who has a key, and for which request body, where that is known.
pub(crate) async fn look(
    app: &App,
    key: Key,
) -> Result<Option<(StreamId, Option<BodyDigest>)>, Unreachable> {
    let now = steady_now();
    // A look is a claim of an id that never will be; it is given back at once.
    let look = StreamId::generate(now);
    let journal = &app.shared.journal;
    match journal.claim(key.0, look, now).await? {
        Claim::Taken { id, body } => Ok(Some((id, body))),
        Claim::Won => {
            // Where it cannot be given back it lapses by itself.
            let _ = journal.release(key.0, look).await;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::SystemTime;

    use streamweld_journal::faulty::{Fault, Faulty, Op};
    use streamweld_journal::{Memory, Open, Outcome};

    use super::*;
    use crate::testing::candidate;

    const KEY: Key = Key([7; 32]);
    const EVERY: Duration = Duration::from_secs(10);

    /// A dispatch that takes this long, with what the journal does meanwhile. Gives how often the key was claimed.
    async fn check(faults: &[Fault], secs: u64) -> usize {
        let journal = Faulty::new(Memory::default());
        journal.faults().script(Op::Claim, faults.iter().copied());
        let dispatch = async {
            sleep(Duration::from_secs(secs)).await;
            "answer"
        };
        let answer = keep(&journal, KEY, &candidate(), EVERY, dispatch).await;
        assert_eq!(answer, "answer");
        journal.faults().calls(Op::Claim)
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_is_renewed_until_the_answer_is_there() {
        assert_eq!(check(&[], 9).await, 0);
        assert_eq!(check(&[], 605).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_without_an_answer_is_followed_by_the_next() {
        let faults = [
            Fault::Unreachable,
            Fault::UnknownApplied,
            Fault::UnknownLost,
        ];
        assert_eq!(check(&faults, 65).await, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_stands_still_holds_up_neither_the_answer_nor_the_next() {
        let journal = Faulty::new(Memory::default());
        let held = journal.faults().hold(Op::Claim);
        let dispatch = sleep(Duration::from_secs(35));
        keep(&journal, KEY, &candidate(), EVERY, dispatch).await;
        // At 10 s the one that stands still, until 20 s; at 30 s the next.
        assert_eq!(journal.faults().calls(Op::Claim), 2);
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_another_has_is_left_to_it() {
        let journal = Faulty::new(Memory::default());
        let (other, now) = (StreamId::generate(SystemTime::now()), steady_now());
        let claimed = journal.claim(KEY.0, other, now).await;
        assert_eq!(claimed, Ok(Claim::Won));
        let dispatch = sleep(Duration::from_secs(65));
        keep(&journal, KEY, &candidate(), EVERY, dispatch).await;
        assert_eq!(journal.faults().calls(Op::Claim), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_log_needs_no_renewal() {
        let journal = Faulty::new(Memory::default());
        let candidate = candidate();
        let window = candidate.window();
        let owner = Open { access: [0; 32] };
        let dispatch = async {
            sleep(EVERY * 3 / 2).await;
            let now = steady_now();
            window.stage(now).push(Kind::Open, |_| {});
            let opened = journal.open(window, &owner, now).await;
            assert_eq!(opened, Outcome::Yes);
            window.commit(Seq::FIRST);
            sleep(EVERY * 3).await;
        };
        keep(&journal, KEY, &candidate, EVERY, dispatch).await;
        assert_eq!(journal.faults().calls(Op::Claim), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_renewed_for_a_request_that_is_over() {
        let journal = Faulty::new(Memory::default());
        let candidate = candidate();
        let kept = keep(&journal, KEY, &candidate, EVERY, pending::<()>());
        let over = timeout(Duration::from_secs(15), kept).await;
        assert!(over.is_err());
        sleep(EVERY * 6).await;
        assert_eq!(journal.faults().calls(Op::Claim), 1);
    }
}
