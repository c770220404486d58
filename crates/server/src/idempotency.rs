//! Idempotency keys: the same key meets the same generation (protocol.md 9.1).

use std::time::SystemTime;

use http::HeaderMap;
use streamweld_generation::Access;
use streamweld_journal::{Claim, Found, Kind, StreamId};

use crate::app::App;
use crate::error::{Error, ErrorCode};
use crate::head;

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

/// Claims a key for a candidate, or says who has it. A journal that is out of reach refuses nobody: the request is
/// then served as if it had no key.
pub(crate) async fn claim(app: &App, key: Key, id: StreamId) -> Met {
    let now = SystemTime::now();
    let journal = &app.shared.journal;
    match journal.claim(key.0, id, now).await {
        Ok(Claim::Taken { id: earlier, body }) => {
            // A key whose generation is gone, or ended in error, is free again.
            let spent = app.shared.registry.find(earlier).is_none()
                && match journal.find(earlier, now).await {
                    Ok(Found::Here { window, .. }) => window
                        .terminal()
                        .is_none_or(|terminal| terminal.kind == Kind::Error),
                    Ok(Found::Expired { .. } | Found::Unknown) => true,
                    Err(_) => false,
                };
            if spent && journal.release(key.0, earlier).await.is_ok() {
                if let Ok(Claim::Taken { id, body }) = journal.claim(key.0, id, now).await {
                    return Met::Taken { id, body };
                }
                return Met::Free;
            }
            Met::Taken { id: earlier, body }
        }
        Ok(Claim::Won) | Err(_) => Met::Free,
    }
}

/// Refuses a key that belongs to another generation than the cursor beside it.
pub(crate) async fn check_cursor(app: &App, key: Key, stream: StreamId) -> Result<(), Error> {
    let now = SystemTime::now();
    // A look is a claim of an id that never will be; it is given back at once.
    let look = StreamId::generate(now);
    let journal = &app.shared.journal;
    match journal.claim(key.0, look, now).await {
        Ok(Claim::Taken { id, .. }) if id != stream => {
            let message = "the idempotency key belongs to another stream than the cursor";
            Err(Error::new(ErrorCode::CursorMismatch, message).about(stream))
        }
        Ok(Claim::Won) => {
            // Where it cannot be given back it lapses by itself.
            let _ = journal.release(key.0, look).await;
            Ok(())
        }
        Ok(Claim::Taken { .. }) | Err(_) => Ok(()),
    }
}
