//! A run: hosts, what goes wrong, and readers, until everybody has an end.

mod hosts;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hosts::Hosts;

use crate::check::{Loss, Seen, judge};
use crate::clock::Moment;
use crate::net::{Net, SHORTEST};
use crate::plan::{CALM, CLIENTS, Plan};
use crate::reader::{End, Generation, History, Reading, Setting, audit, read, stop};
use crate::redis::Broken;
use crate::trace::{Shows, Trace};

/// What came of a run.
#[derive(Default)]
pub struct Outcome {
    /// What must not be, and is.
    pub violations: Vec<String>,
    /// Of everything that happened: equal for equal runs.
    pub digest: u64,
    /// What there was of note, for whoever counts.
    pub ends: Vec<String>,
    /// How much time was simulated.
    pub simulated: Moment,
}

/// How long it may take until every reader has an end, from when nothing goes wrong any more. Two leases, a claim that
/// lapses, and then some.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a journal that is well may take to have all that was shown.
const SETTLED: Duration = Duration::from_secs(10);
/// No message is quicker.
const STEP: Duration = SHORTEST;

/// Runs a plan.
pub fn run(plan: Plan, shows: Shows, broken: Option<Broken>) -> Outcome {
    let trace = Trace::new(shows);
    let mut plan = plan;
    let net = Net::new(plan.names(), plan.random.fork());
    let mut world = World {
        hosts: Hosts::start(&plan, net, trace.clone(), broken),
        now: Moment::ZERO,
        trace,
        lost: Vec::new(),
    };
    let readers = world.readers(&mut plan);
    let stopped = world.stopper(&mut plan, &readers);
    world.through(&mut plan);
    world.calm();
    let until = world.now + PATIENCE;
    let are_done = world.until(until, &mut plan, || {
        readers.iter().all(|it| is_done(&it.history))
    });
    let mut seen = readers;
    if are_done {
        // What was shown without ids has its own by then.
        world.rest(SETTLED, &mut plan);
        let audits = world.audits(&mut plan, &seen);
        let until = world.now + PATIENCE;
        world.until(until, &mut plan, || {
            audits.iter().all(|it| is_done(&it.history))
        });
        seen.extend(audits);
    }
    let mut violations = judge(
        &seen,
        &world.lost,
        &stopped.lock().unwrap_or_else(PoisonError::into_inner),
    );
    if are_done {
        violations.extend(world.hosts.still_at_work());
    }
    Outcome {
        violations,
        digest: world.trace.digest(),
        ends: ends(&seen),
        simulated: world.now,
    }
}

struct World {
    hosts: Hosts,
    now: Moment,
    trace: Trace,
    lost: Vec<Loss>,
}

type Told = Arc<Mutex<Option<(usize, String)>>>;

impl World {
    fn setting(&self) -> Setting {
        Setting {
            port: self.hosts.clients(),
            replicas: self.hosts.replica_names(),
            trace: self.trace.clone(),
        }
    }

    /// Lets everybody begin who reads.
    fn readers(&mut self, plan: &mut Plan) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (number, (begin, first)) in plan.generations.clone().into_iter().enumerate() {
            let generation = Generation::new(number);
            for place in 0..=plan.others {
                let mut random = plan.random.fork();
                let late = if place == 0 {
                    0
                } else {
                    random.between(50, 12_000)
                };
                let leaves = (place > 0 && random.chance(15))
                    .then(|| Duration::from_millis(random.between(500, 9000)));
                let reading = Reading {
                    name: format!("reader{number}.{place}"),
                    first: (place == 0).then_some(first),
                    after: begin + Duration::from_millis(late),
                    control: random.chance(40),
                    breaks: plan.breaks,
                    leaves,
                    random,
                };
                let (history, task) = read(self.setting(), generation.clone(), reading);
                self.hosts.run(CLIENTS, task);
                seen.push(Seen {
                    generation: generation.clone(),
                    history,
                    is_audit: false,
                });
            }
        }
        seen
    }

    fn stopper(&mut self, plan: &mut Plan, readers: &[Seen]) -> Told {
        let stopped: Told = Arc::default();
        if let Some((number, at)) = plan.stop {
            let reader = readers.iter().find(|it| it.generation.number == number);
            let generation = reader.expect("each has a reader").generation.clone();
            let (setting, random) = (self.setting(), plan.random.fork());
            let told = Arc::default();
            let (into, kind) = (Arc::clone(&stopped), Arc::clone(&told));
            self.hosts.run(CLIENTS, async move {
                tokio::time::sleep(at).await;
                stop(setting, generation, random, told).await;
                let kind = kind.lock().unwrap_or_else(PoisonError::into_inner).take();
                *into.lock().unwrap_or_else(PoisonError::into_inner) =
                    kind.map(|kind| (number, kind));
            });
        }
        stopped
    }

    fn audits(&mut self, plan: &mut Plan, readers: &[Seen]) -> Vec<Seen> {
        let mut seen: Vec<Seen> = Vec::new();
        for reader in readers {
            let number = reader.generation.number;
            if reader.generation.id().is_none()
                || seen.iter().any(|it| it.generation.number == number)
            {
                continue;
            }
            for replica in 0..plan.replicas {
                let random = plan.random.fork();
                let (history, task) =
                    audit(self.setting(), reader.generation.clone(), replica, random);
                self.hosts.run(CLIENTS, task);
                seen.push(Seen {
                    generation: reader.generation.clone(),
                    history,
                    is_audit: true,
                });
            }
        }
        seen
    }

    /// Goes through everything that goes wrong.
    fn through(&mut self, plan: &mut Plan) {
        let mut faults = std::mem::take(&mut plan.faults).into_iter().peekable();
        while self.now < CALM {
            while let Some(fault) = faults.next_if(|fault| fault.at <= self.now) {
                let what = fault.action.told(&plan.names());
                self.trace.note(self.now, "world", format_args!("{what}"));
                if let Some(lost) = self.hosts.act(fault.action, self.now) {
                    self.trace.note(
                        self.now,
                        "world",
                        format_args!("{} writes are lost", lost.writes),
                    );
                    self.lost.push(Loss { at: self.now, lost });
                }
            }
            self.step(plan);
        }
    }

    /// Everything is made well.
    fn calm(&mut self) {
        self.trace.note(self.now, "world", format_args!("calm"));
        self.hosts.make_well(self.now);
    }

    /// Goes on until something holds; whether it does.
    fn until(&mut self, until: Moment, plan: &mut Plan, holds: impl Fn() -> bool) -> bool {
        while !holds() {
            if self.now >= until {
                return false;
            }
            self.step(plan);
        }
        true
    }

    fn rest(&mut self, time: Duration, plan: &mut Plan) {
        let until = self.now + time;
        self.until(until, plan, || false);
    }

    fn step(&mut self, plan: &mut Plan) {
        let to = self.now + STEP;
        self.hosts.step(self.now, to, &mut plan.random);
        self.now = to;
    }
}

fn is_done(history: &Mutex<History>) -> bool {
    history
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .end
        .is_some()
}

/// How each reader ended, in a word.
fn ends(seen: &[Seen]) -> Vec<String> {
    let word = |seen: &Seen| {
        let history = seen.history.lock().unwrap_or_else(PoisonError::into_inner);
        let who = if seen.is_audit { "log" } else { "reader" };
        let end = match &history.end {
            None => "none".to_owned(),
            Some((_, End::Error(code) | End::Refused(_, code))) => code.clone(),
            Some((_, end)) => format!("{end:?}").to_lowercase(),
        };
        format!("{who}:{end}")
    };
    seen.iter().map(word).collect()
}
