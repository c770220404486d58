//! Attaching a reader to a generation, or the definite answer why not (protocol.md 6).

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, Response, StatusCode};
use streamweld_dialect::Dialect;
use streamweld_generation::{
    Attached, Durability, Handle, Head, Label, OpenPayload, Presence, steady_now,
};
use streamweld_journal::{
    Closed, Cursor, CursorError, Epoch, Follow, Found, Page, Reader, Seq, StreamId, View, Window,
};
use tokio::time::{Instant, timeout};

use crate::app::App;
use crate::body::Body;
use crate::caller::{self, Caller, Entry};
use crate::capability::Grant;
use crate::config::ResumeUrlConfig;
use crate::counted::{self, Counted, Place};
use crate::cross_origin::CrossOrigin;
use crate::elsewhere;
use crate::error::{Error, ErrorCode};
use crate::head;
use crate::io::Breaker;
use crate::read_on::read_on;
use crate::stream_body::{Manner, StreamBody};
use crate::traced::Traced;

/// What the request says about how it wants to read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// It sees control events.
    pub(crate) control: bool,
    /// It has shown that it resumes.
    pub(crate) resumes: bool,
    /// Its cursor says nothing of an epoch.
    pub(crate) any_epoch: bool,
    /// What it may hand on. None for one that came by what was handed on itself.
    pub(crate) grant: Option<Grant>,
    pub(crate) breaker: Breaker,
    pub(crate) traced: Traced,
}

impl Reading {
    /// It is to be taken for a client that reads neither ids nor comments: that is how those of the dialect are, and it
    /// has shown nothing else.
    fn is_plain(&self, dialect: Dialect) -> bool {
        !dialect.reads_ids() && !self.resumes && !self.control
    }

    /// How it is shown one.
    pub(crate) fn manner(&self, app: &App, dialect: Dialect, durability: Durability) -> Manner {
        Manner {
            resumes: self.resumes,
            control: self.control,
            ids: self.view(dialect, durability).ids,
            plain: self.is_plain(dialect),
            dialect,
            heartbeat: app.settings().edge.heartbeat,
        }
    }

    /// What it is shown of a generation.
    pub(crate) fn view(&self, dialect: Dialect, durability: Durability) -> View {
        View {
            ids: durability == Durability::Durable && !self.is_plain(dialect),
            control: self.control,
        }
    }
}

/// A generation that the caller may read.
pub(crate) struct Readable {
    pub(crate) window: Arc<Window>,
    /// Its producer, while it runs here.
    pub(crate) handle: Option<Arc<Handle>>,
    /// Keeps the window up to date while another replica writes it.
    pub(crate) follow: Option<Follow>,
    /// How the caller came to it.
    pub(crate) entry: Entry,
}

impl Readable {
    /// A generation that runs here, for its maker or an operator.
    pub(crate) fn here(handle: Arc<Handle>) -> Self {
        Self {
            window: Arc::clone(handle.window()),
            handle: Some(handle),
            follow: None,
            entry: Entry::Own,
        }
    }

    /// Lets a caller in, if it may read what carries `digest`. A refusal that tells of the generation is told to the same
    /// pages as everything else about it.
    fn admit(
        self,
        caller: &Caller,
        urls: &ResumeUrlConfig,
        digest: &[u8; 32],
    ) -> Result<Self, Error> {
        match caller.admit(urls, self.window.id(), digest) {
            Ok(entry) => Ok(Self { entry, ..self }),
            Err(error) if error.code == ErrorCode::StreamNotFound => Err(error),
            Err(error) => Err(self.cross_origin().tell(error)),
        }
    }

    /// Nothing is known of the loss of whoever writes it.
    pub(crate) fn has_owner(&self) -> bool {
        self.handle.is_some() || (self.follow.is_some() && self.window.closed().is_none())
    }

    /// What its `open` entry says.
    pub(crate) fn open(&self) -> Option<OpenPayload> {
        self.label().map(|label| label.open)
    }

    /// What its backend allows to pages of another origin.
    pub(crate) fn cross_origin(&self) -> CrossOrigin {
        CrossOrigin::of(&self.label().map(|label| label.head).unwrap_or_default())
    }

    fn label(&self) -> Option<Label> {
        serde_json::from_slice(&self.window.label()).ok()
    }

    /// How its events are understood.
    pub(crate) fn dialect(&self) -> Dialect {
        self.open()
            .and_then(|open| open.dialect.parse().ok())
            .unwrap_or(Dialect::Generic)
    }
}

/// Finds a generation for a caller. Whoever may not read it is told what a stranger is told.
pub(crate) async fn find(app: &App, id: StreamId, caller: &Caller) -> Result<Readable, Error> {
    find_after(app, id, caller, Seq::ZERO).await
}

/// The same, to read what comes after `after` only.
pub(crate) async fn find_after(
    app: &App,
    id: StreamId,
    caller: &Caller,
    after: Seq,
) -> Result<Readable, Error> {
    find_until(app, id, caller, after, app.held()).await
}

/// The same, for a call that holds its caller until then in all.
pub(crate) async fn find_until(
    app: &App,
    id: StreamId,
    caller: &Caller,
    after: Seq,
    until: Instant,
) -> Result<Readable, Error> {
    let urls = &app.settings().edge.resume_urls;
    // Found out once, wherever it is met first, so that a stranger's time does not tell where that was.
    let known = OnceLock::new();
    let admits = |digest: &[u8; 32]| *known.get_or_init(|| caller.knows(urls, id, digest));
    if let Some(handle) = app.shared.registry.find(id) {
        let digest = handle.spec().access.digest();
        // Before its head, and when it has no id to tell, nobody can know of it.
        if handle.head() == Head::Streaming(Durability::Durable) && admits(&digest) {
            return Readable::here(handle).admit(caller, urls, &digest);
        }
    }
    let journal = &app.shared.journal;
    let question = || journal.find_for(id, after, &admits, steady_now());
    match elsewhere::ask(id, until, question).await? {
        Found::Here {
            window,
            access,
            follow,
        } => {
            let found = Readable {
                window,
                handle: None,
                follow,
                entry: Entry::Own,
            };
            found.admit(caller, urls, &access)
        }
        Found::Expired { access } => {
            caller.admit(urls, id, &access)?;
            let message = "its retention has ended; ask the model again";
            Err(Error::new(ErrorCode::StreamExpired, message).about(id))
        }
        Found::Unknown if known.get().is_some() => Err(caller::unknown(id)),
        Found::Unknown => Err(caller.unknown(urls, id)),
    }
}

/// Asks the journal, and holds the caller while it is out of reach: an `EventSource` gives up for good on any error.
pub(crate) async fn look_up(
    app: &App,
    id: StreamId,
    after: Seq,
    until: Instant,
) -> Result<Found, Error> {
    let journal = &app.shared.journal;
    let question = || journal.find_after(id, after, steady_now());
    elsewhere::ask(id, until, question).await
}

/// Answers a reader that comes with a cursor, or from the start. The caller [shares](CrossOrigin::share) the answer with
/// pages, as it does with refusals of its own.
pub(crate) async fn read(
    app: &App,
    found: Readable,
    cursor: Cursor,
    mut reading: Reading,
) -> Result<Response<Body>, Error> {
    reading.traced.reads(app, &found.window, cursor);
    let resume = reading.traced.resume.clone();
    Traced::until(resume, read_from(app, found, cursor, reading)).await
}

async fn read_from(
    app: &App,
    found: Readable,
    cursor: Cursor,
    reading: Reading,
) -> Result<Response<Body>, Error> {
    let window = &found.window;
    elsewhere::catch_up(app, &found, cursor).await?;
    check(app, window, cursor, reading.any_epoch).await?;
    let reader = reader(app, &found, cursor.seq, &reading).await?;
    if !reader.has_more_to_show() {
        // Over, and nothing of it is left for this reader to see.
        if window.terminal().is_some() {
            if let Some(resume) = &reading.traced.resume {
                resume.is_whole();
            }
            return Ok(nothing_left());
        }
        // It would be broken off at once, and come back for ever.
        if window.closed() == Some(Closed::Incomplete) {
            return Err(expired(window));
        }
    }
    Ok(attached(app, found, reader, reading))
}

/// The same for one that says by counting where it stands.
pub(crate) async fn read_counted(
    app: &App,
    found: Readable,
    counted: Counted,
    reading: Reading,
) -> Result<Response<Body>, Error> {
    match counted::find(app, &found, counted).await? {
        Place::After(seq) => {
            let cursor = Cursor {
                stream: found.window.id(),
                seq,
                epoch: Epoch::FIRST,
            };
            read(app, found, cursor, reading).await
        }
        Place::End => Ok(nothing_left()),
    }
}

fn nothing_left() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A reader for whom the next entry is at hand.
pub(crate) async fn reader(
    app: &App,
    found: &Readable,
    after: Seq,
    reading: &Reading,
) -> Result<Reader, Error> {
    let window = &found.window;
    let view = reading.view(found.dialect(), Durability::Durable);
    let mut reader = Reader::new(Arc::clone(window), after, view);
    match timeout(app.settings().edge.hold, reader.prepare()).await {
        Ok(Ok(())) => Ok(reader),
        Ok(Err(_)) => Err(expired(window)),
        Err(_) => Err(elsewhere::out_of_reach(window.id())),
    }
}

/// What a reader needs next is not there any more.
pub(crate) fn expired(window: &Window) -> Error {
    let message = "the next events are no longer retained; ask the model again";
    Error::new(ErrorCode::CursorExpired, message).about(window.id())
}

/// The response of a reader that has been let in, not shared with pages yet.
pub(crate) fn attached(
    app: &App,
    found: Readable,
    reader: Reader,
    reading: Reading,
) -> Response<Body> {
    let dialect = found.dialect();
    let id = found.window.id();
    let attached = hold(app, found, reader);
    respond(
        app,
        attached,
        id,
        Durability::Durable,
        dialect,
        reading,
        HeaderMap::new(),
    )
}

/// A reader that counts, here or with whoever writes it.
pub(crate) fn hold(app: &App, found: Readable, reader: Reader) -> Attached {
    match found.handle {
        Some(handle) => Attached::running(Presence::new(handle), reader),
        None => {
            let id = found.window.id();
            let follow = found.follow.as_ref();
            let follow = follow.map(|follow| app.followed.reader(id, follow));
            Attached::elsewhere(reader, follow)
        }
    }
}

/// The response of any reader.
pub(crate) fn respond(
    app: &App,
    attached: Attached,
    id: StreamId,
    durability: Durability,
    dialect: Dialect,
    reading: Reading,
    upstream: HeaderMap,
) -> Response<Body> {
    app.metrics.readers.inc();
    let manner = reading.manner(app, dialect, durability);
    let mut response = Response::new(Body::stream(StreamBody::new(
        attached,
        read_on(&app.me, durability),
        manner,
        reading.breaker,
        reading.traced.resume,
    )));
    let level = app.shared.journal.level();
    let mut head = head::durable(upstream, id, durability, level);
    if let (Durability::Durable, Some(grant)) = (durability, reading.grant) {
        grant.show(&app.settings().edge.resume_urls, id, &mut head);
    }
    *response.headers_mut() = head;
    response
}

/// Whether a cursor names a place that there is. What lies before the window is looked up in the log.
pub(crate) async fn check(
    app: &App,
    window: &Window,
    cursor: Cursor,
    any_epoch: bool,
) -> Result<(), Error> {
    let id = window.id();
    let by = match window.epoch_of(cursor.seq) {
        None if !any_epoch && cursor.seq < window.earliest() => {
            epoch_before(app, window, cursor.seq).await
        }
        by => by,
    };
    // What was shown may have been lost, and another writer have gone on in its place.
    let is_other = |epoch| epoch != cursor.epoch && !any_epoch;
    let by = by.or_else(|| match cursor.seq {
        // The place before everything has no writer, and is written without one.
        Seq::ZERO => Some(Epoch::FIRST),
        // Behind all that stands, only who writes now can have shown something that still comes.
        seq if seq > window.committed() => Some(window.epoch()),
        _ => None,
    });
    if cursor.epoch > window.epoch() || by.is_some_and(is_other) {
        let message = "what this cursor names was lost, or its ~<epoch> is not the one that was given out; start again without it";
        return Err(Error::new(ErrorCode::JournalRegressed, message).about(id));
    }
    let last = window.committed();
    if cursor.seq > last {
        let message = format!(
            "the cursor is at {}, but the stream has come to {last} only",
            cursor.seq
        );
        return Err(Error::new(ErrorCode::CursorAhead, message).about(id));
    }
    Ok(())
}

/// Who has written an entry that a window has let go, or never held. `None`: the entry is not there any more, or cannot be
/// read now; whoever reads on is told so then.
async fn epoch_before(app: &App, window: &Window, seq: Seq) -> Option<Epoch> {
    let earlier = Arc::clone(window.earlier()?);
    let before = Seq::new(seq.get().checked_sub(1)?);
    let page = timeout(app.settings().edge.hold, earlier.page(before, seq));
    match page.await.ok()? {
        Page::Here(page) => page.epoch_of(seq),
        Page::Gone { .. } => None,
    }
}

/// What a `Last-Event-ID` on the data path is.
pub(crate) enum DataCursor {
    /// None, or one that is the backend's business.
    NotOurs,
    /// One of ours.
    Ours(Cursor),
}

/// Reads the `Last-Event-ID` of a request on the data path (protocol.md 3.2).
pub(crate) fn data_cursor(headers: &HeaderMap) -> Result<DataCursor, Error> {
    let mut found = DataCursor::NotOurs;
    let values = headers.get_all(head::LAST_EVENT_ID);
    for value in &values {
        match Cursor::parse(value.as_bytes()) {
            Err(CursorError::Foreign) => {}
            Ok(cursor) if values.iter().count() == 1 => found = DataCursor::Ours(cursor),
            Ok(_) => return Err(invalid_cursor("there are several Last-Event-ID fields")),
            Err(error) => {
                return Err(unreadable(
                    error,
                    "expected <stream id>:<seq> or <stream id>:<seq>~<epoch>",
                ));
            }
        }
    }
    Ok(found)
}

/// A cursor that is none where one is `expected`.
pub(crate) fn unreadable(error: CursorError, expected: &str) -> Error {
    match error {
        CursorError::WrongCase => invalid_cursor("a stream id is written in lowercase"),
        CursorError::Foreign | CursorError::Malformed => invalid_cursor(expected),
    }
}

pub(crate) fn invalid_cursor(message: &str) -> Error {
    Error::new(
        ErrorCode::InvalidCursor,
        format!("the cursor cannot be read: {message}"),
    )
}
