//! Which steps there are, and what has to hold after each of them.

use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::epochs;
use crate::log::Name;
use crate::properties;
use crate::replica::Role;
use crate::system::{System, What};
use crate::{faults, taker, writer};

/// The protocol within some bounds.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// They.
    pub bounds: Bounds,
}

/// One step of anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A backend says an event to the writer.
    Produce(Name),
    /// The writer has seen the end of the answer, or a stop.
    End(Name),
    /// The writer sends what is staged.
    Send(Name),
    /// The writer reads back what stands.
    ReadBack(Name),
    /// The writer is told of a new one.
    Told(Name),
    /// The writer hears of a stop that was left for it.
    HearStop(Name),
    /// The writer reads on: nobody took its offer.
    ReadOn(Name),
    /// A replica judges the owner dead.
    Judge(Name),
    /// A replica finds an end lost that it wrote, and does not have it any more.
    MissEnd(Name),
    /// A replica writes an end again.
    EndAgain(Name),
    /// A replica has verified the seam of what it was offered.
    Accept(usize),
    /// A replica asks to adopt, under an epoch above so many of those that are above the replaced one.
    Ask(Name, u8),
    /// A new writer goes on.
    GoOn(Name),
    /// A new writer ends it, or has no choice.
    Begin(Name),
    /// A request arrives, and so does its answer.
    Arrive(usize),
    /// A replica that stood still runs.
    Continue(Name),
    /// The reader reads.
    Follow,
    /// The reader hears of the newest record.
    Hear,
    /// The reader comes back.
    ComeBack,

    /// A request arrives, and its answer does not.
    Swallow(usize),
    /// A request is lost.
    Lose(usize),
    /// Its sender waits no longer for a request, which arrives later.
    Delay(usize),
    /// An offer is lost or refused.
    Refuse(usize),
    /// A replica dies.
    Crash(Name),
    /// A replica stands still.
    Pause(Name),
    /// A failover, after which so many records are left, and perhaps a stop is not.
    FailOver(usize, bool),
    /// The data of the server are replaced by older ones.
    FallBack(usize),
    /// A client calls stop.
    Stop(Name),
    /// A replica that leaves offers to another.
    Offer(Name, Name),
}

impl Protocol {
    /// Everything that happens by itself when nothing goes wrong any more.
    pub fn progress(&self, now: &System, each: &mut impl FnMut(Step) -> bool) -> bool {
        (0..now.wire.len()).any(|at| each(Step::Arrive(at)))
            || (0..self.bounds.replicas).any(|name| {
                use Step::{
                    Begin, Continue, End, EndAgain, GoOn, HearStop, Judge, MissEnd, Produce,
                    ReadBack, ReadOn, Send, Told,
                };
                let asks = |place| Step::Ask(name, place);
                let own: &[Step] = match &now.replicas[usize::from(name)].role {
                    Role::Idle => &[Judge(name)],
                    Role::Writes(_) => &[
                        Produce(name),
                        End(name),
                        Send(name),
                        ReadBack(name),
                        Told(name),
                        HearStop(name),
                        ReadOn(name),
                    ],
                    Role::Takes(_) => &epochs::PLACES.map(asks),
                    Role::Adopted(_) => &[GoOn(name), Begin(name)],
                    Role::Ended(_) => &[EndAgain(name), MissEnd(name), Judge(name)],
                };
                own.iter().any(|step| each(*step)) || each(Continue(name))
            })
            || (0..now.offers.len()).any(|at| each(Step::Accept(at)))
            || self.bounds.reader
                && [Step::Follow, Step::Hear, Step::ComeBack]
                    .iter()
                    .any(|step| each(*step))
    }

    fn faults(&self, now: &System, each: &mut impl FnMut(Step)) {
        let left = &now.left;
        let wire = 0..now.wire.len();
        if left.unanswered > 0 {
            wire.clone().for_each(|at| each(Step::Swallow(at)));
            wire.clone().for_each(|at| each(Step::Delay(at)));
        }
        wire.for_each(|at| each(Step::Lose(at)));
        (0..now.offers.len()).for_each(|at| each(Step::Refuse(at)));
        for name in 0..self.bounds.replicas {
            if left.crashes > 0 {
                each(Step::Crash(name));
            }
            if left.pauses > 0 {
                each(Step::Pause(name));
            }
            if left.stops > 0 {
                each(Step::Stop(name));
            }
            if left.offers > 0 {
                (0..self.bounds.replicas).for_each(|to| each(Step::Offer(name, to)));
            }
        }
        for keep in 1..now.log.records.len() {
            if left.failovers > 0 {
                each(Step::FailOver(keep, false));
                each(Step::FailOver(keep, true));
            }
            if left.fallbacks > 0 {
                each(Step::FallBack(keep));
            }
        }
    }

    /// What a step leads to; `None` when it cannot be taken.
    pub fn step(&self, now: &System, step: Step) -> Option<System> {
        let bounds = &self.bounds;
        let mut next = now.clone();
        let then = &mut next;
        match step {
            Step::Produce(name) => writer::produce(then, name, bounds),
            Step::End(name) => writer::end(then, name, bounds),
            Step::Send(name) => writer::send(then, name, bounds),
            Step::ReadBack(name) => writer::reads_back(then, name, bounds),
            Step::Told(name) => writer::is_told(then, name, bounds),
            Step::HearStop(name) => writer::hears_stop(then, name),
            Step::ReadOn(name) => writer::reads_on(then, name, bounds),
            Step::Judge(name) => taker::judges(then, name, bounds),
            Step::MissEnd(name) => taker::misses_end(then, name, bounds),
            Step::EndAgain(name) => taker::ends_again(then, name, bounds),
            Step::Accept(at) => taker::accepts(then, at, bounds),
            Step::Ask(name, place) => taker::asks(then, name, place, bounds),
            Step::GoOn(name) => taker::begins(then, name, true, bounds),
            Step::Begin(name) => taker::begins(then, name, false, bounds),
            Step::Arrive(at) => self.arrive(then, at, true),
            Step::Continue(name) => faults::go_on(then, name),
            Step::Follow => then.reader.follow(&now.log, bounds),
            Step::Hear => then.reader.hear(&now.log, bounds),
            Step::ComeBack => then.reader.come_back(&now.log, bounds),
            Step::Swallow(at) => self.swallow(then, at),
            Step::Lose(at) => faults::lose(then, at, bounds),
            Step::Delay(at) => faults::delay(then, at, bounds),
            Step::Refuse(at) => (at < then.offers.len()).then(|| _ = then.offers.remove(at)),
            Step::Crash(name) => faults::crash(then, name),
            Step::Pause(name) => faults::pause(then, name),
            Step::FailOver(keep, with_stop) => faults::fail_over(then, keep, with_stop, bounds),
            Step::FallBack(keep) => faults::fall_back(then, keep),
            Step::Stop(name) => faults::stop(then, name),
            Step::Offer(name, to) => faults::offer(then, name, to),
        }?;
        next.settle(bounds);
        Some(next)
    }

    /// A request is carried out.
    fn arrive(&self, now: &mut System, at: usize, is_answered: bool) -> Option<()> {
        let bounds = &self.bounds;
        let request = now.wire.get(at)?.clone();
        let is_awaited = request.awaited;
        let verdict = match &request.what {
            What::Append(record) => Some(())
                .filter(|()| now.log.takes(record, bounds.without))
                .map(Ok),
            What::End(expected, record) => now.log.may_end(record.epoch, *expected, bounds.without),
            What::Adopt(mark) => taker::adopts(now, mark, bounds),
        };
        let record = request.what.record();
        if verdict == Some(Ok(())) && !matches!(request.what, What::Adopt(_)) {
            now.log.records.push(record.clone());
        }
        // An append that was not taken proves nothing: the one that stands may be the same.
        let answer = verdict.filter(|_| is_answered);
        if is_awaited && !is_answered {
            faults::unanswered(now, at, bounds);
        }
        now.wire.remove(at);
        if is_awaited && is_answered {
            let (from, connection) = (request.from, request.connection);
            match now.role(from) {
                Role::Writes(_) => {
                    writer::answered(now, from, record.last(), connection, answer, bounds);
                }
                Role::Takes(_) => taker::answered(now, from, record, connection, answer),
                Role::Ended(ended) => ended.sent = false,
                Role::Idle | Role::Adopted(_) => {}
            }
        }
        Some(())
    }

    fn swallow(&self, now: &mut System, at: usize) -> Option<()> {
        now.wire.get(at)?.awaited.then_some(())?;
        now.left.unanswered = now.left.unanswered.checked_sub(1)?;
        self.arrive(now, at, false)
    }

    /// Nothing more happens by itself.
    pub fn is_quiet(&self, now: &System) -> bool {
        !self.progress(now, &mut |step| self.step(now, step).is_some())
    }
}

impl Model for Protocol {
    type State = System;
    type Action = Step;

    fn init_states(&self) -> Vec<System> {
        vec![System::new(&self.bounds)]
    }

    fn actions(&self, now: &System, actions: &mut Vec<Step>) {
        self.progress(now, &mut |step| {
            actions.push(step);
            false
        });
        self.faults(now, &mut |step| actions.push(step));
    }

    fn next_state(&self, now: &System, step: Step) -> Option<System> {
        self.step(now, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
