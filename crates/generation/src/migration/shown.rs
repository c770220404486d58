//! What has been shown of an answer, as the gates and whoever goes on with it need it.

use bytes::Bytes;
use streamweld_dialect::{
    Added, Asked, Before, Continuation, Dialect, Engine, Hazard, Method, Rejoin, SoFar, Trail,
    Transcript, Unreadable,
};

use super::cut::{Cut, NoCut};
use super::gates::{self, Gate};
use super::inquiry::Found;
use super::mover::Mover;
use super::{
    Answer, Budget, Candidate, Count, Facts, JournalState, Judged, Kept, Policy, Probed, Snapshot,
    Target,
};
use crate::source::ByteSource;

/// What the answer is, so far.
pub(super) struct SoFarShown {
    pub(super) transcript: Transcript,
    pub(super) journal: JournalState,
    pub(super) request: Option<Bytes>,
    pub(super) asked: Result<Asked, Unreadable>,
}

/// The app's request with what a later continuation needs, where policy and engine allow one and nothing in the request
/// stands in the way.
#[must_use]
pub fn with_more(
    engine: Option<Engine>,
    policy: Policy,
    dialect: Dialect,
    request: &Bytes,
) -> (Bytes, Option<Added>) {
    let add = || {
        let engine = engine.filter(|_| policy != Policy::Off)?;
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
pub(super) struct Joint {
    pub(super) body: String,
    pub(super) added: Option<Added>,
    pub(super) rejoin: Rejoin,
    pub(super) sent: Option<Vec<u32>>,
    /// It has to write some of the answer again.
    pub(super) comes_again: bool,
    pub(super) trail: Trail,
}

impl SoFarShown {
    pub(super) fn judge<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        facts: Option<&Facts>,
        found: &Found,
    ) -> Judged {
        let situation = &mover.situation;
        let text = self.transcript.text();
        let trail = self.told(mover);
        let cut = cut(mover.dialect(), text, trail).ok();
        let tokens = trail.and_then(Trail::tokens).map(Count::Exact);
        let usage = self.transcript.usage();
        let at_least = usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
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
                finished: self.transcript.is_at_an_end(),
                others: self.transcript.has_other_parts(),
                tool_calls: self.transcript.has_tool_calls(),
                reasoning: self.transcript.has_reasoning(),
                tokens: tokens.unwrap_or(Count::AtLeast(at_least)),
                kept: cut
                    .and_then(|cut| tokens_of(cut.kept, trail))
                    .or(found.kept()),
                uncounted: found.uncounted(),
                prompt_tokens: self.prompt_tokens(trail),
                ids: trail.is_some_and(|trail| trail.ids().is_ok_and(|ids| !ids.unsure)),
            },
            target: facts.map(|facts| Target {
                name: &facts.name,
                engine: facts.engine,
                group: facts.group.as_deref(),
                same_model: facts.same_model,
                keeps_prefix: facts.keeps_prefix,
                cut_alike: found.cut_alike,
                methods: &facts.methods,
                context: facts.context,
                has_credential: facts.has_credential,
            }),
            group: situation.leg.group.as_deref(),
        };
        let judged = Judged {
            verdicts: gates::evaluate(&snapshot),
            target: facts.map(|facts| facts.name.to_string()),
            method: gates::method(&snapshot),
        };
        self.unless_asked_later(judged, found)
    }

    /// What was told of the tokens of just this text.
    pub(super) fn told<'m, S>(&self, mover: &'m Mover<S>) -> Option<&'m Trail> {
        let trail = mover.situation.trail.as_ref()?;
        (trail.text() == self.transcript.text().len()).then_some(trail)
    }

    /// Tokens of the prompt, as the first backend counted them: on its chunks, or at the beginning of a message.
    fn prompt_tokens(&self, trail: Option<&Trail>) -> Option<u64> {
        match self.transcript.dialect() {
            Dialect::AnthropicMessages => self.transcript.usage()?.prompt_tokens,
            _ => trail?.prompt_tokens(),
        }
    }

    /// Whether there is no place to join, whoever goes on: because of what was asked and said, and not of who was asked.
    pub(super) fn has_no_seam<S: ByteSource>(&self, mover: &Mover<S>, judged: &Judged) -> bool {
        let by_ids = mover.situation.trail.as_ref().map(Trail::ids);
        let refuses = judged.refusing().any(|gate| gate == Gate::Seam);
        refuses && judged.method == Some(Method::Prefill) && !matches!(by_ids, Some(Ok(_)))
    }

    /// The request that goes on, and what has to come first.
    pub(super) fn joint<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
        method: Method,
        found: &Found,
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
            Rejoin::behind(&self.transcript, before, overlap)
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
                    comes_again: false,
                    trail: Trail::behind_ids(ids.all, ids.of_answer, text.len(), again),
                })
            }
            Method::Prefill if found.cut_alike == Probed::Yes => {
                let tokens = told.and_then(Trail::tokens).ok_or("no tokens were told")?;
                Ok(Joint {
                    body: body(SoFar::Text(text), tokens)?,
                    added,
                    rejoin: rejoin(tokens, ""),
                    sent: None,
                    comes_again: false,
                    trail: behind(tokens, text.len()),
                })
            }
            Method::Prefill => {
                let cut = cut(mover.dialect(), text, told).map_err(|error| error.to_string())?;
                let counted = tokens_of(cut.kept, told).or(found.kept());
                let usage = self.transcript.usage();
                let estimate = || usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
                let kept = counted.unwrap_or_else(estimate);
                Ok(Joint {
                    body: body(SoFar::Text(cut.kept), kept)?,
                    added,
                    rejoin: rejoin(kept, cut.dropped),
                    sent: None,
                    comes_again: true,
                    trail: behind(kept, cut.kept.len()),
                })
            }
        }
    }
}

pub(super) fn cut<'t>(
    dialect: Dialect,
    text: &'t str,
    trail: Option<&Trail>,
) -> Result<Cut<'t>, NoCut> {
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
