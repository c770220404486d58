//! The attempts of one generation: who is asked, and who is asked next when that came to nothing (protocol.md 8.7).

mod place;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, Response};
use http_body::Body as _;
use streamweld_dialect::{Added, Dialect};
use streamweld_generation::migration::{Backends, Bounds, Candidate, Later, Within, with_more};
use streamweld_generation::{Handle, Leave, Leg};
use streamweld_upstream::fleet::{Credential, Member, MemberId, MemberState, Permit, Wanted};
use streamweld_upstream::{ErrorKind, Source, UpstreamError};
use tokio::time::sleep;

use self::place::Place;
use crate::app::App;
use crate::facts::{Callers, Former};
use crate::request_body::{RequestBody, Whole};
use crate::source::AttemptSource;
use crate::traced::{Attempt, Generation};

/// What it takes to ask again.
pub(crate) struct Attempts {
    app: Arc<App>,
    handle: Arc<Handle>,
    /// The request as the app made it, but for its body.
    request: Request<()>,
    /// By what its caller is known to backends.
    callers: Callers,
    /// How it is followed in traces, if it is.
    traced: Option<Arc<Generation>>,
    /// Its whole body, where there is another backend that it could be sent to.
    body: Mutex<Option<Whole>>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    /// The one that was asked last.
    now: Option<Arc<Member>>,
    /// Every one that was asked, with what was known of it then: one that is back may be another.
    all: Vec<Former>,
    added: Option<Added>,
    failed: Vec<MemberId>,
}

impl Attempts {
    /// Begins with a place at the first backend.
    pub(crate) fn new(
        app: Arc<App>,
        handle: Arc<Handle>,
        mut request: Request<()>,
        body: Option<Whole>,
        first: &Permit,
    ) -> Arc<Self> {
        let traced = app.traces.begin(&handle, request.headers_mut());
        let callers = match handle.spec().access.is_anonymous() {
            true => Callers::Nothing,
            false => Callers::Shown,
        };
        let attempts = Arc::new(Self {
            app,
            handle,
            request,
            callers,
            traced,
            body: Mutex::new(body),
            asked: Mutex::default(),
        });
        attempts.begin(first);
        let first = first.member().name();
        attempts.handle.go_to(first, Leave::Otherwise);
        attempts
    }

    /// Those of a generation that another replica has begun, and whose last one was at `former`.
    pub(crate) fn inherited(
        app: Arc<App>,
        handle: Arc<Handle>,
        mut request: Request<()>,
        callers: Callers,
        body: Option<Whole>,
        former: Former,
    ) -> Arc<Self> {
        let (id, label) = (handle.spec().id, handle.window().label());
        let traced = app.traces.inherit(id, &label, Some(&handle));
        if let Some(traced) = &traced {
            traced.place().tell(request.headers_mut());
        }
        Arc::new(Self {
            app,
            handle,
            request,
            callers,
            traced,
            body: Mutex::new(body),
            asked: Mutex::new(Asked {
                all: vec![former],
                ..Asked::default()
            }),
        })
    }

    /// Asks for the answer, of one backend after the other while they fail without having begun one. When nobody is left,
    /// the last one's own answer is the answer. `once` is the body where it was not kept.
    pub(crate) async fn answer(
        &self,
        first: Permit,
        once: RequestBody,
    ) -> Result<Response<Source>, UpstreamError> {
        let (mut permit, mut once) = (first, Some(once));
        let repeats = may_repeat(self.handle.spec().dialect);
        for left in (0..self.app.settings().migration.attempts.get()).rev() {
            let body = once.take().unwrap_or_else(RequestBody::empty);
            let (body, added) = self.body_for(permit.member(), body);
            self.lock().added = added;
            let member = Arc::clone(permit.member());
            let sent = self.send(permit, body);
            let hangs = self.hangs(&member, repeats && left > 0);
            let (answer, why_left) = tokio::select! {
                biased;
                answer = sent => (answer, Leave::Otherwise),
                why = hangs => (Err(UpstreamError::no_head(member.backend())), why),
            };
            let failed = match &answer {
                Ok(response) => repeats && response.status().is_server_error(),
                Err(error) => is_the_backends_fault(error) && (repeats || error.is_retry_safe()),
            };
            let Some(next) = (failed && left > 0).then(|| self.next()).flatten() else {
                return answer;
            };
            tracing::info!(
                stream_id = %self.handle.spec().id,
                request_id = self.handle.spec().request_id,
                trace_id = self.handle.trace_id(),
                from = self.handle.backend().as_ref(),
                to = next.member().name(),
                why = %why(&answer),
                "another backend is asked"
            );
            self.begin(&next);
            self.handle.go_to(next.member().name(), why_left);
            permit = next;
        }
        unreachable!("the last attempt returns its answer")
    }

    /// Resolves when a backend is not waited for any more that has not begun to answer: after as long as the operator says, or
    /// when it is down or drained while another is up. Says which.
    async fn hangs(&self, member: &Member, may_leave: bool) -> Leave {
        // Whoever wants one whole answer may have to wait long for its head.
        let streams = self.handle.is_known_to_stream();
        let limit = self.app.settings().migration.first_token;
        let limit = limit.filter(|_| streams);
        let late = async {
            match limit {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let down = async {
            if !may_leave || !streams || self.body().is_none() {
                std::future::pending::<()>().await;
            }
            let fleet = &self.app.backends.fleet;
            let mut changes = fleet.changes();
            loop {
                let members = fleet.members();
                let failed = self.lock().failed.clone();
                let left = |(this, state): &(Arc<Member>, MemberState)| match state {
                    MemberState::Down if this.id() == member.id() => Some(Leave::Otherwise),
                    MemberState::Draining if this.id() == member.id() => Some(Leave::Drained),
                    _ => None,
                };
                let is_other = |(other, state): &(Arc<Member>, MemberState)| {
                    *state == MemberState::Up
                        && other.id() != member.id()
                        && !failed.contains(&other.id())
                };
                if let Some(why) = members.iter().find_map(left) {
                    if members.iter().any(is_other) {
                        return why;
                    }
                }
                changes.changed().await;
            }
        };
        tokio::select! {
            () = late => Leave::Otherwise,
            why = down => why,
        }
    }

    /// The attempt that is under way.
    pub(crate) fn leg(&self) -> Option<Leg> {
        let asked = self.lock();
        let member = asked.now.as_ref()?;
        Some(self.leg_of(member, asked.added))
    }

    /// The request as the app made it, but for its body.
    pub(crate) fn request(&self) -> &Request<()> {
        &self.request
    }

    /// One more place at the backend that the answer is at, whatever is believed of it.
    pub(crate) fn again_there(&self) -> Option<Permit> {
        let name = self.handle.backend();
        let asked = self.lock();
        let mut asked = asked.all.iter().rev().filter_map(|it| it.member.as_ref());
        let member = asked.find(|member| member.name() == name.as_ref())?;
        self.app.backends.fleet.again(member)
    }

    /// Another backend for the same request, if there is one and the request was kept.
    fn next(&self) -> Option<Permit> {
        self.body()?;
        let failed = {
            let mut asked = self.lock();
            let now = asked.now.take();
            asked.failed.extend(now.map(|member| member.id()));
            asked.failed.clone()
        };
        let dialect = self.handle.spec().dialect;
        self.app.backends.pick(dialect, &failed).ok()
    }

    fn begin(&self, permit: &Permit) {
        let mut asked = self.lock();
        asked.now = Some(Arc::clone(permit.member()));
        let member = permit.member();
        asked.all.push(Former {
            id: member.id(),
            passes_through: matches!(member.credential(), Credential::PassThrough),
            known: self.app.examined.likeness(member.id()),
            member: Some(Arc::clone(member)),
        });
        drop(asked);
        self.handle.attempt(permit.member().name());
    }

    /// One that was asked.
    pub(crate) fn former(&self, id: MemberId) -> Option<Former> {
        let asked = self.lock();
        let mut all = asked.all.iter().rev();
        all.find(|former| former.id == id).cloned()
    }

    /// The generation.
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// By what its caller is known to backends.
    pub(crate) fn callers(&self) -> Callers {
        self.callers
    }

    /// The body as this backend gets it.
    fn body_for(&self, member: &Member, once: RequestBody) -> (RequestBody, Option<Added>) {
        let Some(kept) = self.body() else {
            return (once, None);
        };
        let policy = self.app.settings().migration.policy(member.group());
        let dialect = self.handle.spec().dialect;
        let (body, added) = with_more(self.app.known_engine(member), policy, dialect, &kept);
        (RequestBody::again(body), added)
    }

    async fn send(
        &self,
        permit: Permit,
        body: RequestBody,
    ) -> Result<Response<Source>, UpstreamError> {
        let mut request = self.request.clone();
        if let Some(length) = body.size_hint().exact().filter(|_| self.body().is_some()) {
            request.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        let number = self.handle.attempts();
        let attempt = self.traced(permit.member(), number, request.headers_mut());
        let answer = self.app.send(permit, request.map(|()| body)).await;
        seen(attempt, answer)
    }

    /// A request that is made for this answer, as it is followed in traces.
    pub(crate) fn traced(
        &self,
        member: &Member,
        number: u32,
        headers: &mut HeaderMap,
    ) -> Option<Arc<Attempt>> {
        let traced = self.traced.as_ref()?;
        Some(traced.attempt(member, number, headers))
    }

    /// How the whole of it is followed.
    pub(crate) fn generation(&self) -> Option<Arc<Generation>> {
        self.traced.clone()
    }

    fn leg_of(&self, member: &Member, added: Option<Added>) -> Leg {
        Leg {
            backend: Arc::from(member.name()),
            member: member.id().get(),
            group: member.group().map(Arc::from),
            policy: self.app.settings().migration.policy(member.group()),
            engine: self.app.known_engine(member),
            added,
        }
    }

    pub(crate) fn body(&self) -> Option<Bytes> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.as_ref().map(|whole| whole.bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As a producer knows the backends.
pub(crate) struct Others(pub(crate) Arc<Attempts>);

impl Backends<AttemptSource> for Others {
    fn pick(
        &self,
        from: &Leg,
        within: Within,
        failed: &[u64],
    ) -> Option<Box<dyn Candidate<AttemptSource>>> {
        let exclude: Vec<_> = failed.iter().copied().map(MemberId::of).collect();
        let group = from.group.as_deref();
        if within == Within::Group && group.is_none() {
            return None;
        }
        let backends = &self.0.app.backends;
        let wanted = Wanted {
            group: group.filter(|_| within == Within::Group),
            exclude: &exclude,
            family: Some(backends.family(self.0.handle.spec().dialect)),
            even_down: false,
        };
        let permit = backends.fleet.pick(&wanted).ok()?;
        // One that is another engine than was said has begun who knows what.
        let is_known = from.engine.is_some();
        let former = self.0.former(MemberId::of(from.member))?;
        let from = Former {
            known: former.known.clone().filter(|_| is_known),
            ..former
        };
        Some(Box::new(Place::new(Arc::clone(&self.0), permit, from)))
    }

    fn is_drained(&self, leg: &Leg) -> bool {
        let members = self.0.app.backends.fleet.members();
        let drained = |(member, state): &(Arc<Member>, MemberState)| {
            member.id().get() == leg.member && *state == MemberState::Draining
        };
        members.iter().any(drained)
    }

    fn changed(&self) -> Later<()> {
        let mut changes = self.0.app.backends.fleet.changes();
        Box::pin(async move { changes.changed().await })
    }

    fn request(&self) -> Option<Bytes> {
        self.0.body()
    }

    fn forget_request(&self) {
        let body = self.0.body.lock();
        body.unwrap_or_else(PoisonError::into_inner).take();
    }

    fn bounds(&self) -> Bounds {
        let migration = &self.0.app.settings().migration;
        Bounds {
            attempts: migration.attempts,
            moves: migration.moves,
            wait: migration.wait,
            begin: migration.begin(),
        }
    }
}

/// Lets traces see what came of an attempt. What there is of it goes on with the body.
pub(crate) fn seen(
    attempt: Option<Arc<Attempt>>,
    mut answer: Result<Response<Source>, UpstreamError>,
) -> Result<Response<Source>, UpstreamError> {
    let Some(attempt) = attempt else {
        return answer;
    };
    match &mut answer {
        Ok(response) => {
            attempt.head(response.status().as_u16());
            response.extensions_mut().insert(attempt);
        }
        Err(error) => attempt.failed(error.kind().as_str()),
    }
    answer
}

/// Whether a request may be made twice: to ask a model again does nothing but cost. What else a request does is not known here.
fn may_repeat(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Mcp | Dialect::Generic)
}

/// Whether another backend may do better. What broke on the client's side breaks there too.
fn is_the_backends_fault(error: &UpstreamError) -> bool {
    !matches!(error.kind(), ErrorKind::RequestBody | ErrorKind::Send)
}

fn why(answer: &Result<Response<Source>, UpstreamError>) -> String {
    match answer {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => error.kind().as_str().to_owned(),
    }
}
