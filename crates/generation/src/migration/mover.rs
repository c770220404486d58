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
use streamweld_dialect::{Added, Asked, Before, Dialect, Method, Rejoin, Trail, Unreadable};
use streamweld_journal::{Seq, Window, window_until};
use tokio::time::timeout;

use super::gates::{Gate, Verdict};
use super::inquiry::Found;
use super::places::Places;
use super::seam::{NoSeam, Seam};
use super::shown::{SoFarShown, with_more};
use super::{Backends, Candidate, JournalState, Judged, NotBegun, Trigger, Within};
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
        return answer.judge(&mover, None, &Found::NOTHING);
    };
    let facts = place.facts();
    answer.weigh(&mover, &*place, &facts).await.0
}

pub(super) struct Mover<S> {
    pub(super) backends: Arc<dyn Backends<S>>,
    pub(super) handle: Arc<Handle>,
    pub(super) situation: Situation,
}

impl<S: ByteSource> Mover<S> {
    fn window(&self) -> &Arc<Window> {
        self.handle.window()
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.handle.spec().dialect
    }

    /// Whether it was not asked for by somebody who can wait.
    pub(super) fn is_urgent(&self) -> bool {
        matches!(
            self.situation.trigger,
            Trigger::Failed { .. } | Trigger::OwnerLost
        )
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
            Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::AnthropicMessages
        );
        // What a request of another kind has done already is not known.
        let repeats = !matches!(self.dialect(), Dialect::Mcp | Dialect::Generic);
        let may = joins || (repeats && !begun);
        let Some(request) = self.backends.request().filter(|_| may) else {
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
            let rejoin = Rejoin::behind(&transcript, Before::default(), "");
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
        let mut judged = shown.judge(self, None, &Found::NOTHING);
        // What refuses whoever goes on needs nobody to wait for. How many tokens are left is known with the method.
        let waits = |gate| matches!(gate, Gate::BackendAvailable | Gate::Tokens);
        if judged.refusing().any(|gate| !waits(gate)) {
            let failed = [self.situation.leg.member];
            let leg = &self.situation.leg;
            let place = self.backends.pick(leg, Within::Group, &failed);
            return Outcome::Refused(match place {
                Some(place) => shown.judge(self, Some(&place.facts()), &Found::NOTHING),
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
            // One that has just come back is not known yet, and may be soon.
            if facts.is_pending {
                places.failed.push(place.leg(None).member);
                continue;
            }
            let found;
            (judged, found) = shown.weigh(self, &*place, &facts).await;
            let member = place.leg(None).member;
            let Some(method) = judged.method.filter(|_| judged.is_open()) else {
                if shown.has_no_seam(self, &judged) {
                    break;
                }
                if found.may_pass() {
                    places.failed.push(member);
                } else {
                    places.unfit.push(member);
                }
                continue;
            };
            places.failed.push(member);
            let joint = match shown.joint(self, &*place, method, &found) {
                Ok(joint) => joint,
                Err(why) => return Outcome::Refused(close(judged, Gate::Seam, why)),
            };
            let leg = place.leg(joint.added);
            let asked = timeout(self.begin(), place.ask(Bytes::from(joint.body)));
            let source = match asked.await {
                Ok(Ok(source)) => source,
                Ok(Err(NotBegun::Refused(status))) => {
                    let mut why = format!("{} refused to go on, with status {status}", facts.name);
                    if self.dialect() == Dialect::AnthropicMessages && status == 400 {
                        why += ": newer models take no beginning of an answer";
                    }
                    judged = close(judged, Gate::Seam, why);
                    places.unfit.push(member);
                    continue;
                }
                Ok(Err(NotBegun::Failed)) | Err(_) => continue,
            };
            begun += 1;
            let seam = Seam::new(self.dialect(), joint.rejoin.clone(), joint.sent);
            let seam = match joint.comes_again {
                true => seam,
                false => seam.behind(shown.transcript.text()),
            };
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
    pub(super) fn first_body(
        &self,
        place: &dyn Candidate<S>,
        request: &Bytes,
    ) -> (Bytes, Option<Added>) {
        let leg = place.leg(None);
        with_more(leg.engine, leg.policy, self.dialect(), request)
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
