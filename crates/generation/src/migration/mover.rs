//! From a trigger to the backend that goes on, or to the gates that refuse.
//!
//! ```text
//!  nothing said yet ──> anew: the same request, elsewhere
//!  else ──> gates without a target ──refused──────────────────────────────> Refused
//!             │ open                                                          ▲
//!             └──> a place ──> gates ──refused──> the next place ──none left──┤
//!                    ▲           │ open                                       │
//!                    └──failed── ask ──> seam ──broken────────────────────────┘
//!                                          └──holds──> Moved
//! ```
//!
//! It owns all that it looks at, so that a producer can drop it when something else ends the answer first.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_dialect::{
    Added, Asked, Before, Continuation, Dialect, Engine, Hazard, Identity, Method, Part, Rejoin,
    SoFar, Trail, Transcript, Unreadable, model_of, prompt_of, read_text, read_tokens,
};
use streamweld_journal::{Seq, Window, window_until};
use tokio::time::{Instant, timeout, timeout_at};

use super::cut::{Cut, NoCut};
use super::gates::{self, Gate, Verdict};
use super::seam::{NoSeam, Seam};
use super::{
    Answer, Backends, Budget, Candidate, Count, Facts, JournalState, Judged, Kept, NotBegun,
    Probed, Snapshot, Target, Trigger, Within,
};
use crate::handle::Handle;
use crate::leg::{Leg, Reading};
use crate::source::ByteSource;
use crate::transcript::whole_transcript;

/// One attempt that is to be replaced.
pub(crate) struct Situation {
    pub(crate) trigger: Trigger,
    pub(crate) leg: Leg,
    /// What was told of its tokens.
    pub(crate) trail: Option<Trail>,
    /// An event has said something.
    pub(crate) said: bool,
    /// How often the answer has moved.
    pub(crate) moves: u32,
    /// The journal has it.
    pub(crate) durable: bool,
    pub(crate) max_duration: Duration,
    pub(crate) max_event: usize,
}

/// What became of it.
pub(crate) enum Outcome<S> {
    /// Another attempt goes on.
    Moved(Box<Moved<S>>),
    /// Gates refuse.
    Refused(Judged),
    /// Nobody could be asked, or all of them failed, while nothing had been said.
    Nobody,
}

/// Another attempt, whose seam holds.
pub(crate) struct Moved<S> {
    pub(crate) source: S,
    pub(crate) leg: Leg,
    pub(crate) reading: Option<Box<Reading>>,
    /// None where the request was simply made again.
    pub(crate) method: Option<Method>,
}

/// How long a log that takes what was staged is waited for.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a backend may take to say how it cuts a prompt.
const INQUIRY: Duration = Duration::from_secs(2);
/// How long nobody is asked after all have failed, at first; then twice as long each time.
const BACKOFF: Duration = Duration::from_millis(250);

/// Finds somebody who goes on.
pub(crate) async fn move_on<S: ByteSource>(
    backends: Arc<dyn Backends<S>>,
    handle: Arc<Handle>,
    situation: Situation,
) -> Outcome<S> {
    let mover = Mover {
        backends,
        handle,
        situation,
    };
    if mover.situation.said {
        mover.carry_on().await
    } else {
        mover.begin_anew().await
    }
}

/// What the gates say now, and nothing else.
pub(crate) async fn judge<S: ByteSource>(
    backends: Arc<dyn Backends<S>>,
    handle: Arc<Handle>,
    situation: Situation,
) -> Judged {
    let mover = Mover {
        backends,
        handle,
        situation,
    };
    let answer = mover.answer().await;
    let failed = [mover.situation.leg.member];
    let place = mover
        .backends
        .pick(&mover.situation.leg, Within::Group, &failed);
    let Some(place) = place else {
        return answer.judge(&mover, None, Probed::Unknown);
    };
    let facts = place.facts();
    let judged = answer.judge(&mover, Some(&facts), Probed::Unknown);
    if judged.only_seam() && judged.method == Some(Method::Prefill) {
        let alike = answer.is_cut_alike(&mover, &*place).await;
        return answer.judge(&mover, Some(&facts), alike);
    }
    judged
}

struct Mover<S> {
    backends: Arc<dyn Backends<S>>,
    handle: Arc<Handle>,
    situation: Situation,
}

/// What the answer is, so far.
struct SoFarShown {
    transcript: Transcript,
    journal: JournalState,
    request: Option<Bytes>,
    asked: Result<Asked, Unreadable>,
}

impl<S: ByteSource> Mover<S> {
    fn window(&self) -> &Arc<Window> {
        self.handle.window()
    }

    fn dialect(&self) -> Dialect {
        self.handle.spec().dialect
    }

    /// Whether it was not asked for by somebody who can wait.
    fn is_urgent(&self) -> bool {
        matches!(self.situation.trigger, Trigger::Failed { .. })
    }

    /// How long somebody who is asked may take. While an attempt that could go on waits to be replaced, its reader waits.
    fn begin(&self) -> Duration {
        let bounds = self.backends.bounds();
        if self.is_urgent() {
            bounds.begin
        } else {
            bounds.begin.min(bounds.wait)
        }
    }

    /// Asks for the whole answer elsewhere.
    async fn begin_anew(&self) -> Outcome<S> {
        let begun = self.window().received() > Seq::FIRST;
        let joins = matches!(
            self.dialect(),
            Dialect::OpenAiChat | Dialect::OpenAiCompletions
        );
        let Some(request) = self.backends.request().filter(|_| joins || !begun) else {
            return Outcome::Nobody;
        };
        let bounds = self.backends.bounds();
        let mut places = Places::new(self, Within::All);
        while self.handle.attempts() < bounds.attempts.get() {
            let Some(place) = places.next().await else {
                break;
            };
            let (body, added) = self.first_body(&*place, &request);
            let leg = place.leg(added);
            places.failed.push(leg.member);
            let Ok(Ok(source)) = timeout(self.begin(), place.ask(body)).await else {
                continue;
            };
            let moved = |source, rejoin: Option<Rejoin>| {
                let reading = (added.is_some() || rejoin.is_some())
                    .then(|| Box::new(Reading::new(added, rejoin, Trail::default())));
                Outcome::Moved(Box::new(Moved {
                    source,
                    leg: leg.clone(),
                    reading,
                    method: None,
                }))
            };
            if !begun {
                return moved(source, None);
            }
            let transcript = whole_transcript(self.window(), self.dialect())
                .await
                .transcript;
            let rejoin = Rejoin::new(identity(&transcript), Before::default(), "");
            let seam = Seam::new(self.dialect(), rejoin.clone(), None);
            let held = timeout(self.begin(), seam.hold(source, self.situation.max_event));
            if let Ok(Ok(source)) = held.await {
                return moved(source, Some(rejoin));
            }
        }
        Outcome::Nobody
    }

    /// Has somebody else go on behind what was said.
    async fn carry_on(&self) -> Outcome<S> {
        let shown = self.answer().await;
        let bounds = self.backends.bounds();
        let mut judged = shown.judge(self, None, Probed::Unknown);
        // What refuses whoever goes on needs nobody to wait for. How many tokens are left is known with the method.
        let waits = |gate| matches!(gate, Gate::BackendAvailable | Gate::Tokens);
        if judged.refusing().any(|gate| !waits(gate)) {
            let failed = [self.situation.leg.member];
            let leg = &self.situation.leg;
            let place = self.backends.pick(leg, Within::Group, &failed);
            return Outcome::Refused(match place {
                Some(place) => shown.judge(self, Some(&place.facts()), Probed::Unknown),
                None => judged,
            });
        }
        let mut places = Places::new(self, Within::Group);
        let mut begun = 0;
        while begun < bounds.moves {
            let Some(place) = places.next().await else {
                break;
            };
            let facts = place.facts();
            judged = shown.judge(self, Some(&facts), Probed::Unknown);
            let mut alike = Probed::Unknown;
            if judged.only_seam() && judged.method == Some(Method::Prefill) {
                alike = shown.is_cut_alike(self, &*place).await;
                judged = shown.judge(self, Some(&facts), alike);
            }
            let member = place.leg(None).member;
            let Some(method) = judged.method.filter(|_| judged.is_open()) else {
                if shown.has_no_seam(self, &judged) {
                    break;
                }
                places.unfit.push(member);
                continue;
            };
            places.failed.push(member);
            let joint = match shown.joint(self, &*place, method, alike == Probed::Yes) {
                Ok(joint) => joint,
                Err(why) => return Outcome::Refused(close(judged, Gate::Seam, why)),
            };
            let leg = place.leg(joint.added);
            let asked = timeout(self.begin(), place.ask(Bytes::from(joint.body)));
            let source = match asked.await {
                Ok(Ok(source)) => source,
                Ok(Err(NotBegun::Refused(status))) => {
                    let why = format!("{} refused to go on, with status {status}", facts.name);
                    judged = close(judged, Gate::Seam, why);
                    places.unfit.push(member);
                    continue;
                }
                Ok(Err(NotBegun::Failed)) | Err(_) => continue,
            };
            begun += 1;
            let seam = Seam::new(self.dialect(), joint.rejoin.clone(), joint.sent);
            let held = timeout(self.begin(), seam.hold(source, self.situation.max_event));
            match held.await {
                Ok(Ok(source)) => {
                    let reading = Reading::new(joint.added, Some(joint.rejoin), joint.trail);
                    return Outcome::Moved(Box::new(Moved {
                        source,
                        leg,
                        reading: Some(Box::new(reading)),
                        method: Some(method),
                    }));
                }
                Ok(Err(NoSeam::Broken(why))) => {
                    let why = format!("{} was asked to go on, and {why}", facts.name);
                    return Outcome::Refused(close(judged, Gate::Seam, why));
                }
                Ok(Err(NoSeam::Failed)) | Err(_) => {}
            }
        }
        if judged.is_open() {
            let why = "every backend that could go on has failed, too".to_owned();
            judged = close(judged, Gate::BackendAvailable, why);
        }
        Outcome::Refused(judged)
    }

    async fn answer(&self) -> SoFarShown {
        let window = self.window();
        let settled = timeout(
            SETTLE,
            window_until(window, |window| window.committed() >= window.received()),
        );
        let is_settled = settled.await.is_ok() && !window.is_exposed();
        let whole = whole_transcript(window, self.dialect()).await;
        let journal = match is_settled {
            // The ring has let go of the beginning.
            _ if !self.situation.durable || whole.earliest > Seq::FIRST => JournalState::Incomplete,
            true => JournalState::Complete,
            false => JournalState::Behind,
        };
        let request = self.backends.request();
        let asked = match &request {
            Some(body) => Asked::read(self.dialect(), body),
            None => Err(Unreadable::NoObject),
        };
        SoFarShown {
            transcript: whole.transcript,
            journal,
            request,
            asked,
        }
    }

    /// The app's request with what is asked of this engine beyond it.
    fn first_body(&self, place: &dyn Candidate<S>, request: &Bytes) -> (Bytes, Option<Added>) {
        let leg = place.leg(None);
        with_more(leg.engine, leg.policy, self.dialect(), request)
    }
}

/// The app's request with what a later continuation needs, where policy and engine allow one and nothing in the request
/// stands in the way.
#[must_use]
pub fn with_more(
    engine: Option<Engine>,
    policy: super::Policy,
    dialect: Dialect,
    request: &Bytes,
) -> (Bytes, Option<Added>) {
    let add = || {
        let engine = engine.filter(|_| policy != super::Policy::Off)?;
        let text = std::str::from_utf8(request).ok()?;
        let asked = Asked::read(dialect, request).ok()?;
        // Where nothing is drawn a seed is without effect.
        let mut hazards = asked.hazards.iter();
        let stands = hazards.any(|hazard| *hazard != Hazard::Seed || !asked.greedy);
        let hopeless = !asked.unknown.is_empty() || stands;
        Added::to(engine, dialect, text, asked.greedy).filter(|_| !hopeless)
    };
    match add() {
        Some((body, added)) => (Bytes::from(body), Some(added)),
        None => (request.clone(), None),
    }
}

/// How one backend is told to go on, and what it has to begin with.
struct Joint {
    body: String,
    added: Option<Added>,
    rejoin: Rejoin,
    sent: Option<Vec<u32>>,
    trail: Trail,
}

impl SoFarShown {
    fn judge<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        facts: Option<&Facts>,
        cut_alike: Probed,
    ) -> Judged {
        let situation = &mover.situation;
        let text = self.transcript.text();
        let trail = self.told(mover);
        let cut = cut(mover.dialect(), text, trail).ok();
        let tokens = trail.and_then(Trail::tokens).map(Count::Exact);
        let usage = self.transcript.usage();
        let at_least = usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
        let finished = self
            .transcript
            .parts()
            .any(|(_, part)| part == Part::Closed);
        let snapshot = Snapshot {
            trigger: situation.trigger,
            policy: situation.leg.policy,
            dialect: mover.dialect(),
            stop_requested: mover.handle.stop_asked().is_some(),
            journal: self.journal,
            duration: Budget {
                used: mover.handle.begun().elapsed(),
                of: situation.max_duration,
            },
            migrations: Budget {
                used: situation.moves,
                of: mover.backends.bounds().moves,
            },
            request: match self.request {
                Some(_) => Kept::Whole,
                None => Kept::TooLarge,
            },
            asked: self.asked.as_ref().map_err(|error| *error),
            answer: Answer {
                text,
                choices: self.transcript.parts().count(),
                finished,
                tool_calls: self.transcript.has_tool_calls(),
                reasoning: self.transcript.reasoning_events() > 0,
                tokens: tokens.unwrap_or(Count::AtLeast(at_least)),
                kept: cut.and_then(|cut| tokens_of(cut.kept, trail)),
                prompt_tokens: trail.and_then(Trail::prompt_tokens),
                ids: trail.is_some_and(|trail| trail.ids().is_ok_and(|ids| !ids.unsure)),
            },
            target: facts.map(|facts| Target {
                name: &facts.name,
                engine: facts.engine,
                group: facts.group.as_deref(),
                same_model: facts.same_model,
                keeps_prefix: facts.keeps_prefix,
                cut_alike,
                methods: &facts.methods,
                context: facts.context,
                has_credential: facts.has_credential,
            }),
            group: situation.leg.group.as_deref(),
        };
        Judged {
            verdicts: gates::evaluate(&snapshot),
            target: facts.map(|facts| facts.name.to_string()),
            method: gates::method(&snapshot),
        }
    }

    /// Whether a backend cuts prompt and answer into the tokens that were generated.
    async fn is_cut_alike<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
    ) -> Probed {
        let inquiry = async {
            let trail = self.told(mover)?;
            let engine = place.leg(None).engine?;
            let first = std::str::from_utf8(self.request.as_ref()?).ok()?;
            let continuation = Continuation {
                engine,
                so_far: SoFar::Text(self.transcript.text()),
                tokens: 0,
            };
            let whole = continuation.body(mover.dialect(), first).ok()?;
            let prompt = tokens_of_prompt(mover.dialect(), engine, place, first).await?;
            let whole = tokens_of_prompt(mover.dialect(), engine, place, &whole).await?;
            Some(trail.is_cut_alike(&prompt, &whole))
        };
        match timeout(INQUIRY, inquiry).await {
            Ok(Some(true)) => Probed::Yes,
            Ok(Some(false)) => Probed::No,
            Ok(None) | Err(_) => Probed::Unknown,
        }
    }

    /// What was told of the tokens of just this text.
    fn told<'m, S>(&self, mover: &'m Mover<S>) -> Option<&'m Trail> {
        let trail = mover.situation.trail.as_ref()?;
        (trail.text() == self.transcript.text().len()).then_some(trail)
    }

    /// Whether there is no place to join, whoever goes on: because of what was asked and said, and not of who was asked.
    fn has_no_seam<S: ByteSource>(&self, mover: &Mover<S>, judged: &Judged) -> bool {
        let by_ids = mover.situation.trail.as_ref().map(Trail::ids);
        let refuses = judged.refusing().any(|gate| gate == Gate::Seam);
        refuses && judged.method == Some(Method::Prefill) && !matches!(by_ids, Some(Ok(_)))
    }

    /// The request that goes on, and what has to come first.
    fn joint<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
        method: Method,
        alike: bool,
    ) -> Result<Joint, String> {
        let request = self.request.as_ref().ok_or("the request was not kept")?;
        let (first, added) = mover.first_body(place, request);
        let first = std::str::from_utf8(&first).map_err(|error| error.to_string())?;
        let engine = place.leg(None).engine.ok_or("its engine is not known")?;
        let text = self.transcript.text();
        let told = self.told(mover);
        let body = |so_far, tokens| {
            let continuation = Continuation {
                engine,
                so_far,
                tokens,
            };
            let body = continuation.body(mover.dialect(), first);
            body.map_err(|error| error.to_string())
        };
        let prompt_tokens = told.and_then(Trail::prompt_tokens);
        let rejoin = |completion_tokens, overlap| {
            let before = Before {
                prompt_tokens,
                completion_tokens,
            };
            Rejoin::new(identity(&self.transcript), before, overlap)
        };
        let behind = |tokens, text| {
            let trail = Trail::behind_text(prompt_tokens, tokens, text);
            match told {
                Some(told) => trail.knowing(told),
                None => trail,
            }
        };
        match method {
            Method::TokenIds => {
                let trail = told.ok_or("no ids were told")?;
                let ids = trail.ids().map_err(|error| error.to_string())?;
                let again = trail.told_behind().to_vec();
                let seen = !added.is_some_and(Added::hides_ids);
                Ok(Joint {
                    body: body(SoFar::Ids(&ids.all), ids.of_answer)?,
                    added,
                    rejoin: rejoin(ids.of_answer, "").with_again(&again, seen),
                    sent: Some(ids.all.clone()),
                    trail: Trail::behind_ids(ids.all, ids.of_answer, text.len(), again),
                })
            }
            Method::Prefill if alike => {
                let tokens = told.and_then(Trail::tokens).ok_or("no tokens were told")?;
                Ok(Joint {
                    body: body(SoFar::Text(text), tokens)?,
                    added,
                    rejoin: rejoin(tokens, ""),
                    sent: None,
                    trail: behind(tokens, text.len()),
                })
            }
            Method::Prefill => {
                let cut = cut(mover.dialect(), text, told).map_err(|error| error.to_string())?;
                let counted = tokens_of(cut.kept, told);
                let usage = self.transcript.usage();
                let estimate = || usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
                let kept = counted.unwrap_or_else(estimate);
                Ok(Joint {
                    body: body(SoFar::Text(cut.kept), kept)?,
                    added,
                    rejoin: rejoin(kept, cut.dropped),
                    sent: None,
                    trail: behind(kept, cut.kept.len()),
                })
            }
        }
    }
}

/// Who is asked, one after the other.
struct Places<'a, S> {
    mover: &'a Mover<S>,
    within: Within,
    /// Those that have failed in this round.
    failed: Vec<u64>,
    /// Those that will not do, whatever happens.
    unfit: Vec<u64>,
    until: Option<Instant>,
    backoff: Duration,
}

impl<'a, S: ByteSource> Places<'a, S> {
    fn new(mover: &'a Mover<S>, within: Within) -> Self {
        let wait = mover.backends.bounds().wait;
        Self {
            mover,
            within,
            failed: vec![mover.situation.leg.member],
            unfit: Vec::new(),
            until: mover.is_urgent().then(|| Instant::now() + wait),
            backoff: BACKOFF,
        }
    }

    /// The next place. When all have failed and there is time, they are asked once more, the one that was left too: it may
    /// be back.
    async fn next(&mut self) -> Option<Box<dyn Candidate<S>>> {
        loop {
            let changed = self.mover.backends.changed();
            let not = [&self.failed[..], &self.unfit].concat();
            let leg = &self.mover.situation.leg;
            if let Some(place) = self.mover.backends.pick(leg, self.within, &not) {
                return Some(place);
            }
            let until = self.until?;
            let now = Instant::now();
            if now >= until {
                return None;
            }
            let _ = timeout_at(until.min(now + self.backoff), changed).await;
            if now + self.backoff <= Instant::now() {
                self.failed.clear();
                self.backoff *= 2;
            }
        }
    }
}

fn cut<'t>(dialect: Dialect, text: &'t str, trail: Option<&Trail>) -> Result<Cut<'t>, NoCut> {
    match trail {
        None => Cut::of(dialect, text),
        Some(trail) => Cut::where_token_ends(dialect, text, |at| trail.tokens_of(at).is_some()),
    }
}

/// How many tokens the beginning of an answer has. None were needed for nothing, whatever was told.
fn tokens_of(kept: &str, trail: Option<&Trail>) -> Option<u64> {
    if kept.is_empty() {
        return Some(0);
    }
    trail?.tokens_of(kept.len())
}

/// How a backend cuts the prompt of a request into tokens.
async fn tokens_of_prompt<S>(
    dialect: Dialect,
    engine: Engine,
    place: &dyn Candidate<S>,
    request: &str,
) -> Option<Vec<u32>> {
    let of_text = |text: &str| engine.ask_prompt_tokens(&model_of(request), text);
    let question = match dialect {
        Dialect::OpenAiCompletions => of_text(&prompt_of(request)?),
        _ => match engine.ask_rendered_tokens(request) {
            Some(question) => question,
            None => {
                let rendered = engine.ask_rendered_text(request)?;
                of_text(&read_text(&place.inquire(rendered).await?)?)
            }
        },
    };
    read_tokens(&place.inquire(question).await?)
}

/// What the reader knows the answer by.
fn identity(transcript: &Transcript) -> Identity {
    let json = |text: &str| serde_json::to_string(text).expect("text is JSON");
    Identity {
        id: transcript.id().map(json),
        created: transcript.created().map(|created| created.to_string()),
        model: transcript.model().map(json),
    }
}

/// The verdicts with one gate closed that was open.
fn close(mut judged: Judged, gate: Gate, why: String) -> Judged {
    let verdicts = judged.verdicts.iter_mut();
    for verdict in verdicts.filter(|verdict| verdict.gate == gate) {
        *verdict = Verdict {
            gate,
            refusal: Some(why.clone()),
        };
    }
    judged
}
