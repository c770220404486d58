//! The body of a request on its way to a backend: read ahead, looked at, bounded. What is held of it counts in the journal.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest, Sha256};
use streamweld_dialect::RequestScan;
use streamweld_generation::Handle;
use streamweld_journal::{Journal, Kept};

use crate::client_body::{ClientBody, ClientBodyError};

/// A request body as it is forwarded.
pub(crate) struct RequestBody {
    ahead: Option<Bytes>,
    rest: Option<ClientBody>,
    tee: Option<Box<Tee>>,
    /// What every digest begins with: the target, so that the same body for another one is another request.
    target: Sha256,
    /// How many bytes may still come from the client, whoever reads them.
    room: Option<u64>,
    /// Where bytes that are read ahead count, and those that do.
    journal: Option<Arc<dyn Journal>>,
    kept: Option<Kept>,
}

/// A whole body that is kept to be sent again, and counts for as long.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    _kept: Option<Kept>,
}

/// What the digest of a request to this target begins with.
fn digest_of(target: Option<&PathAndQuery>) -> Sha256 {
    let target = target.map_or("", PathAndQuery::as_str);
    // No target holds a NUL, so none can be the begin of another one's body.
    Sha256::new().chain_update(target).chain_update([0])
}

/// What looks at a body while it streams by: the digest of target and body, and what it asks for.
struct Tee {
    hash: Sha256,
    scan: RequestScan,
    handle: Arc<Handle>,
}

/// Why a request body ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestBodyError {
    /// The client's side broke.
    #[error("the request body broke off")]
    Client(#[source] ClientBodyError),
    /// The client sends it too slowly.
    #[error("the request body came too slowly")]
    TooSlow,
    /// It is larger than this proxy lets pass.
    #[error("the request body is over the limit")]
    TooLarge,
}

impl RequestBody {
    pub(crate) fn new(
        body: ClientBody,
        target: Option<&PathAndQuery>,
        limit: Option<u64>,
        journal: &Arc<dyn Journal>,
    ) -> Self {
        Self {
            ahead: None,
            rest: Some(body),
            tee: None,
            target: digest_of(target),
            room: limit,
            journal: Some(Arc::clone(journal)),
            kept: None,
        }
    }

    /// No body, in the place of one that was used up.
    pub(crate) fn empty() -> Self {
        Self {
            ahead: None,
            rest: None,
            tee: None,
            target: Sha256::new(),
            room: None,
            journal: None,
            kept: None,
        }
    }

    /// This body again, which was read whole before.
    pub(crate) fn again(body: Bytes) -> Self {
        Self {
            ahead: (!body.is_empty()).then_some(body),
            ..Self::empty()
        }
    }

    /// One that was read whole in another process, of a request to this target.
    pub(crate) fn kept(
        body: Bytes,
        target: Option<&PathAndQuery>,
        journal: &Arc<dyn Journal>,
    ) -> Self {
        Self {
            ahead: (!body.is_empty()).then_some(body),
            target: digest_of(target),
            journal: Some(Arc::clone(journal)),
            ..Self::empty()
        }
    }

    /// The same bytes as they are kept from now on. `None`: there is no room.
    pub(crate) fn keep(bytes: Bytes, journal: &Arc<dyn Journal>) -> Option<Whole> {
        let kept = match bytes.len() {
            0 => None,
            len => Some(journal.keep(len)?),
        };
        Some(Whole { bytes, _kept: kept })
    }

    /// All of it, where it was read ahead to its end and there was room to keep it. It counts with what is given from then on.
    pub(crate) fn whole(&mut self) -> Option<Whole> {
        let bytes = self.ahead.clone().unwrap_or_default();
        let is_whole = self.rest.is_none() && self.is_counted(bytes.len());
        is_whole.then(|| Whole {
            bytes,
            _kept: self.kept.take(),
        })
    }

    /// Looks at a body that was read ahead to its end, and tells `handle` what it is.
    pub(crate) fn seen_whole(&self, handle: Arc<Handle>) {
        let mut tee = Tee {
            hash: self.target.clone(),
            scan: RequestScan::new(),
            handle,
        };
        if let Some(ahead) = &self.ahead {
            tee.push(ahead);
        }
        tee.finish();
    }

    /// Looks at everything that goes by, and tells `handle` once it has been seen whole.
    pub(crate) fn teed(mut self, handle: Arc<Handle>) -> Self {
        let mut tee = Box::new(Tee {
            hash: self.target.clone(),
            scan: RequestScan::new(),
            handle,
        });
        if self.ahead.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream) {
            tee.finish();
            return self;
        }
        self.tee = Some(tee);
        self
    }

    /// Reads on until the body has ended, `limit` bytes are held, or there is no room for more. Gives the digest of a body
    /// that was read whole; it is still forwarded from its first byte.
    pub(crate) async fn read_ahead(
        &mut self,
        limit: usize,
    ) -> Result<Option<[u8; 32]>, RequestBodyError> {
        // What an earlier call has read counts as well.
        let mut held = self.ahead.take().map_or_else(Vec::new, Vec::from);
        let mut hash = self.target.clone();
        hash.update(&held);
        let mut has_room = true;
        while held.len() <= limit && has_room {
            let Some(frame) = poll_fn(|cx| self.poll_rest(cx)).await else {
                break;
            };
            // Trailers of a request that was read ahead are not worth keeping a queue for.
            if let Ok(data) = frame?.into_data() {
                hash.update(&data);
                held.extend_from_slice(&data);
                has_room = self.count(held.len());
            }
        }
        let whole = self.rest.is_none() && held.len() <= limit && has_room;
        // What counts is what is held: no more than there is.
        self.ahead = (!held.is_empty()).then(|| Bytes::from(held.into_boxed_slice()));
        Ok(whole.then(|| hash.finalize().into()))
    }

    /// Counts so many bytes as held. False where there is no room for them.
    fn count(&mut self, held: usize) -> bool {
        let counted = self.kept.as_ref().map_or(0, Kept::bytes);
        let more = held.saturating_sub(counted);
        if more == 0 {
            return true;
        }
        let journal = self.journal.as_ref();
        let Some(kept) = journal.and_then(|journal| journal.keep(more)) else {
            return false;
        };
        match &mut self.kept {
            Some(counted) => counted.join(kept),
            None => self.kept = Some(kept),
        }
        true
    }

    /// Whether so many bytes are counted.
    fn is_counted(&self, held: usize) -> bool {
        held == 0 || self.kept.as_ref().is_some_and(|kept| kept.bytes() >= held)
    }

    /// Reads to the end and keeps nothing but the digest.
    pub(crate) async fn digest(mut self) -> Result<[u8; 32], RequestBodyError> {
        let mut hash = self.target.clone();
        if let Some(ahead) = self.ahead.take() {
            hash.update(&ahead);
        }
        while let Some(frame) = poll_fn(|cx| self.poll_rest(cx)).await {
            if let Ok(data) = frame?.into_data() {
                hash.update(&data);
            }
        }
        Ok(hash.finalize().into())
    }

    /// What comes from the client next. The one place that reads it, so that the limit holds for bodies that are
    /// forwarded, read ahead or only digested.
    fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let Some(frame) = ready!(Pin::new(rest).poll_frame(cx)) else {
            self.rest = None;
            return Poll::Ready(None);
        };
        let frame = frame.map_err(|error| match error {
            ClientBodyError::TooSlow => RequestBodyError::TooSlow,
            broke @ ClientBodyError::Broke(_) => RequestBodyError::Client(broke),
        })?;
        if let (Some(room), Some(data)) = (&mut self.room, frame.data_ref()) {
            match room.checked_sub(data.len() as u64) {
                Some(left) => *room = left,
                None => return Poll::Ready(Some(Err(RequestBodyError::TooLarge))),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Tee {
    fn push(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.scan.push(data);
    }

    fn finish(&mut self) {
        let scan = std::mem::take(&mut self.scan);
        self.handle
            .request_seen(scan.finish(), self.hash.finalize_reset().into());
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = &mut *self;
        let frame = match this.ahead.take() {
            Some(ahead) => Some(Frame::data(ahead)),
            None => ready!(this.poll_rest(cx)?),
        };
        if let (Some(tee), Some(data)) = (&mut this.tee, frame.as_ref().and_then(Frame::data_ref)) {
            tee.push(data);
        }
        // The end is told with the last frame, not after it: a sender that knows the length never asks again.
        if this.ahead.is_none() && this.rest.as_ref().is_none_or(Body::is_end_stream) {
            if let Some(mut tee) = this.tee.take() {
                tee.finish();
            }
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.len() as u64);
        let rest = self
            .rest
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(ahead + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(ahead + upper);
        }
        hint
    }
}
