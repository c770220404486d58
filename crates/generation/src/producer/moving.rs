//! A producer whose attempt is to be replaced: who is asked, and what is written when somebody goes on, or nobody may.

use std::sync::Arc;
use std::time::SystemTime;

use streamweld_dialect::{Failure, FailureClass};
use streamweld_journal::{Kind, Seq};
use tokio::time::Instant;

use super::Producer;
use super::offer::offer;
use crate::counters::MigrationLabels;
use crate::happening::Happening;
use crate::leg::Leg;
use crate::lifecycle::{End, Loss, Refused};
use crate::migration::{
    Asked, Backends, Judged, Later, Moved, Order, Outcome, Policy, Report, Situation, Trigger,
    judge, move_on,
};
use crate::payload::{MigrationPayload, WarningPayload, control_lines, timestamp};
use crate::source::ByteSource;
use crate::whereabouts::Leave;

/// A search for somebody who goes on, while it lasts. The attempt is not read meanwhile.
pub(super) struct Moving<S> {
    pub(super) found: Later<Found<S>>,
    trigger: Trigger,
    /// Why the answer cannot stay where it was, if it cannot.
    pub(super) loss: Option<Loss>,
    /// Who wished for it, if somebody did.
    order: Option<Asked>,
}

/// What a search came to.
pub(super) enum Found<S> {
    /// Somebody goes on, or nobody.
    Outcome(Outcome<S>),
    /// What the gates say, which was all that was asked.
    Judged(Judged),
    /// No other replica has taken it, and why.
    Kept(String),
}

impl Producer {
    /// Looks for somebody who goes on with an attempt that has failed. `None` where nobody may.
    pub(super) fn replace<S: ByteSource + 'static>(
        &self,
        backends: Option<&Arc<dyn Backends<S>>>,
        failure: &Failure,
    ) -> Option<Moving<S>> {
        let backends = backends?;
        let leg = self.leg.as_ref()?;
        let said = self.lifecycle.has_said();
        // Where no policy allows moving, the failure is the end, and says so itself.
        let may = if said {
            leg.policy != Policy::Off
        } else {
            let bounds = backends.bounds();
            let elsewhere = matches!(
                failure.class,
                FailureClass::Aborted
                    | FailureClass::UpstreamError
                    | FailureClass::Truncated
                    | FailureClass::Stalled
            );
            elsewhere
                && !is_permanent(failure)
                && self.handle.attempts() < bounds.attempts.get()
                && backends.request().is_some()
        };
        let trigger = Trigger::Failed {
            class: failure.class,
            permanent: is_permanent(failure),
        };
        let situation = self.situation(trigger).filter(|_| may)?;
        let found = move_on(Arc::clone(backends), Arc::clone(&self.handle), situation);
        Some(Moving {
            found: Box::pin(async move { Found::Outcome(found.await) }),
            trigger,
            loss: Some(Loss::Attempt(failure.clone())),
            order: None,
        })
    }

    /// Looks for somebody who goes on with what another replica has begun. `None` where nobody may.
    pub(super) fn succeed<S: ByteSource + 'static>(
        &self,
        trigger: Trigger,
        backends: Option<&Arc<dyn Backends<S>>>,
    ) -> Option<Moving<S>> {
        let backends = backends?;
        let may = self.leg.as_ref()?.policy != Policy::Off;
        let situation = self.situation(trigger).filter(|_| may)?;
        let found = move_on(Arc::clone(backends), Arc::clone(&self.handle), situation);
        Some(Moving {
            found: Box::pin(async move { Found::Outcome(found.await) }),
            trigger,
            loss: (trigger == Trigger::OwnerLost).then_some(Loss::Owner),
            order: None,
        })
    }

    /// The request is needed no more where no policy allows another backend to go on with what was said.
    pub(super) fn forget_request<S>(&self, backends: Option<&Arc<dyn Backends<S>>>) {
        let is_off = self
            .leg
            .as_ref()
            .is_none_or(|leg| leg.policy == Policy::Off);
        if let Some(backends) = backends.filter(|_| is_off) {
            backends.forget_request();
        }
    }

    /// Meets the next wishes, up to one that takes time.
    pub(super) fn obey<S: ByteSource + 'static>(
        &self,
        backends: Option<&Arc<dyn Backends<S>>>,
    ) -> Option<Moving<S>> {
        while let Some(order) = self.handle.next_order() {
            if let Some(moving) = self.moving(order, backends) {
                return Some(moving);
            }
        }
        None
    }

    fn moving<S: ByteSource + 'static>(
        &self,
        order: Asked,
        backends: Option<&Arc<dyn Backends<S>>>,
    ) -> Option<Moving<S>> {
        let trigger = match order.order {
            Order::HandOver => return self.offering(order, backends),
            Order::Drain => Trigger::Drain,
            Order::Move | Order::DryRun => Trigger::Operator,
            Order::Unhealthy(silent) => {
                let now = Instant::now().into_std();
                if !self.lifecycle.is_silent(silent, now) {
                    return None;
                }
                Trigger::Unhealthy
            }
        };
        let Some((backends, situation)) = backends.zip(self.situation(trigger)) else {
            let reason = "no other backend could be asked".to_owned();
            order.tell(Report::Stays {
                judged: Judged::default(),
                reason,
            });
            return None;
        };
        // It may have left by itself while the wish waited.
        if order.order == Order::Drain && !backends.is_drained(&situation.leg) {
            order.tell(Report::Over);
            return None;
        }
        let (backends, handle) = (Arc::clone(backends), Arc::clone(&self.handle));
        let found: Later<Found<S>> = if order.order == Order::DryRun {
            Box::pin(async move { Found::Judged(judge(backends, handle, situation).await) })
        } else {
            Box::pin(async move { Found::Outcome(move_on(backends, handle, situation).await) })
        };
        Some(Moving {
            found,
            trigger,
            loss: None,
            order: Some(order),
        })
    }

    /// Offers the answer to the other replicas. Whoever takes it fences this one off, and that ends it here.
    fn offering<S: ByteSource + 'static>(
        &self,
        order: Asked,
        backends: Option<&Arc<dyn Backends<S>>>,
    ) -> Option<Moving<S>> {
        let may = |leg: &Leg| leg.policy != Policy::Off && self.durable;
        let backends = backends.filter(|_| self.leg.as_ref().is_some_and(may));
        let Some(backends) = backends else {
            let reason = "no policy allows another replica to go on with it".to_owned();
            order.tell(Report::Stays {
                judged: Judged::default(),
                reason,
            });
            return None;
        };
        let (journal, handle) = (Arc::clone(&self.shared.journal), Arc::clone(&self.handle));
        let patience = backends.bounds().begin;
        Some(Moving {
            found: Box::pin(async move { Found::Kept(offer(&*journal, &handle, patience).await) }),
            trigger: Trigger::HandOver,
            loss: None,
            order: Some(order),
        })
    }

    fn situation(&self, trigger: Trigger) -> Option<Situation> {
        Some(Situation {
            trigger,
            leg: self.leg.clone()?,
            trail: self.intake.trail().cloned(),
            said: self.lifecycle.has_said(),
            moves: self.moves,
            durable: self.durable,
            max_duration: self.shared.limits.times.max_duration,
            max_event: self.shared.limits.event.max_event,
        })
    }

    /// Takes what a search came to. Gives the body that is read from now on, or the end.
    pub(super) fn moved<S>(
        &mut self,
        moving: Moving<S>,
        found: Found<S>,
    ) -> (Option<S>, Option<End>) {
        let Moving {
            trigger,
            loss,
            order,
            ..
        } = moving;
        let report = match found {
            Found::Judged(judged) => Report::Gates(judged),
            Found::Kept(reason) => {
                self.count(trigger, "refused");
                Report::Stays {
                    judged: Judged::default(),
                    reason,
                }
            }
            Found::Outcome(Outcome::Moved(moved)) => {
                self.count(trigger, "moved");
                let (source, report) = self.go_on(*moved, trigger);
                if let Some(order) = order {
                    order.tell(report);
                }
                return (Some(source), None);
            }
            Found::Outcome(Outcome::Refused(judged)) => {
                // What is not well is looked at time and again.
                if trigger != Trigger::Unhealthy {
                    self.count(trigger, "refused");
                }
                if let Some(loss) = loss {
                    let stopped = self.stopped();
                    return (None, stopped.or_else(|| self.refuse(loss, &judged)));
                }
                Report::Stays {
                    reason: reason(&judged),
                    judged,
                }
            }
            Found::Outcome(Outcome::Nobody) => {
                if trigger != Trigger::Unhealthy {
                    self.count(trigger, "failed");
                }
                if let Some(loss) = loss {
                    let stopped = self.stopped();
                    let given_up = || self.lifecycle.give_up(loss.into());
                    return (None, stopped.or_else(given_up));
                }
                Report::Stays {
                    judged: Judged::default(),
                    reason: "no other backend could take it".to_owned(),
                }
            }
        };
        if let Some(order) = order {
            order.tell(report);
        }
        // It goes on where it is; if it failed meanwhile, somebody is looked for because of that.
        (None, loss.map(End::from))
    }

    /// The end by a stop that came at this very moment: it is one, whatever was found.
    fn stopped(&mut self) -> Option<End> {
        self.handle.stop_asked().and_then(|_| self.signals())
    }

    fn go_on<S>(&mut self, moved: Moved<S>, trigger: Trigger) -> (S, Report) {
        let (handle, window) = (Arc::clone(&self.handle), Arc::clone(self.handle.window()));
        let from = self.leg.take().map(|leg| leg.backend).unwrap_or_default();
        let method = moved.method.map_or("restart", |method| method.as_str());
        // Where nothing has been shown there is nothing to go on from.
        if window.received() > Seq::FIRST {
            self.moves += 1;
            handle.note_move();
            let now = SystemTime::now();
            let payload = MigrationPayload {
                stream_id: window.id().to_string(),
                seq: window.received().next().get(),
                time: timestamp(now),
                from: from.to_string(),
                to: moved.leg.backend.to_string(),
                trigger: trigger.as_str().to_owned(),
                method: method.to_owned(),
                attempt: handle.attempts(),
            };
            let lines = control_lines(Kind::Migration, &payload);
            let mut staging = window.stage(now);
            staging.push(Kind::Migration, |out| out.extend_from_slice(&lines));
            drop(staging);
            self.tell(&Happening::Migrated {
                from: &from,
                to: &moved.leg.backend,
                trigger: trigger.as_str(),
            });
        }
        tracing::info!(
            stream_id = %window.id(),
            request_id = %handle.spec().request_id,
            trace_id = handle.trace_id(),
            from = %from,
            to = %moved.leg.backend,
            trigger = trigger.as_str(),
            method,
            attempts = handle.attempts(),
            "another backend goes on"
        );
        let report = Report::Moved {
            from: from.to_string(),
            to: moved.leg.backend.to_string(),
            method: moved.method,
        };
        let why = match trigger {
            Trigger::Drain => Leave::Drained,
            Trigger::Failed { .. }
            | Trigger::Unhealthy
            | Trigger::Operator
            | Trigger::HandOver
            | Trigger::OwnerLost => Leave::Otherwise,
        };
        handle.go_to(&moved.leg.backend, why);
        if let Some(keep) = &self.keep {
            keep(&moved.leg);
        }
        self.leg = Some(moved.leg);
        self.intake.begin_again();
        self.intake.read_by(moved.reading);
        self.lifecycle.resume(Instant::now().into_std());
        (moved.source, report)
    }

    /// Writes a warning for each gate that refuses, and gives the end.
    fn refuse(&mut self, loss: Loss, judged: &Judged) -> Option<End> {
        let window = Arc::clone(self.handle.window());
        let refusing = judged.verdicts.iter();
        let gates: Vec<_> = refusing
            .filter_map(|verdict| Some((verdict.gate, verdict.refusal.clone()?)))
            .collect();
        for (gate, saw) in &gates {
            let now = SystemTime::now();
            let payload = WarningPayload {
                stream_id: window.id().to_string(),
                seq: window.received().next().get(),
                time: timestamp(now),
                gate: gate.as_str().to_owned(),
                message: saw.clone(),
            };
            let lines = control_lines(Kind::Warning, &payload);
            let mut staging = window.stage(now);
            staging.push(Kind::Warning, |out| out.extend_from_slice(&lines));
        }
        self.lifecycle
            .give_up(End::Refused(Refused { loss, gates }))
    }

    fn count(&self, trigger: Trigger, outcome: &'static str) {
        let labels = MigrationLabels {
            trigger: trigger.as_str(),
            outcome,
        };
        let migrations = &self.shared.counters.migrations;
        migrations.get_or_create(&labels).inc();
    }
}

/// Whether upstream said that the same request would fail again. Too many requests, and too late, may not.
fn is_permanent(failure: &Failure) -> bool {
    let code = failure
        .code
        .as_ref()
        .and_then(|code| code.parse::<u16>().ok());
    code.is_some_and(|code| (400..500).contains(&code) && !matches!(code, 408 | 425 | 429))
}

fn reason(judged: &Judged) -> String {
    let gates = judged.refusing().map(|gate| gate.as_str());
    format!(
        "these gates refuse: {}",
        gates.collect::<Vec<_>>().join(", ")
    )
}
