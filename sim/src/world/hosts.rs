//! The hosts of a run, and what is done to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::host::Host;
use crate::net::{Death, HostId, Net, Port};
use crate::plan::{Action, CLIENTS, Plan, REDIS};
use crate::process::{Engine, Redis, Replica};
use crate::random::Random;
use crate::redis::{Broken, Lost};
use crate::trace::Trace;

pub(super) struct Hosts {
    net: Net,
    trace: Trace,
    names: Vec<String>,
    /// Those that run, and whether they stand still.
    running: BTreeMap<HostId, Running>,
    redis: Redis,
    replicas: usize,
    pace: Duration,
    cuts: Vec<(HostId, HostId)>,
    slow: Vec<(HostId, HostId)>,
    /// Whoever has left is started again.
    is_calm: bool,
}

struct Running {
    host: Host,
    port: Port,
    process: Process,
    stands_still: bool,
}

enum Process {
    Redis,
    Clients,
    Replica(Replica),
    Engine(Engine),
}

impl Hosts {
    pub(super) fn start(plan: &Plan, net: Net, trace: Trace, broken: Option<Broken>) -> Self {
        let mut this = Self {
            net,
            trace,
            names: plan.names(),
            running: BTreeMap::new(),
            redis: Redis::default(),
            replicas: plan.replicas,
            pace: plan.pace,
            cuts: Vec::new(),
            slow: Vec::new(),
            is_calm: false,
        };
        if let Some(broken) = broken {
            this.redis.break_rule(broken);
        }
        for number in 0..this.names.len() {
            this.begin(HostId(number), Moment::ZERO);
        }
        this
    }

    /// The network as readers see it.
    pub(super) fn clients(&self) -> Port {
        self.running[&CLIENTS].port.clone()
    }

    pub(super) fn replica_names(&self) -> Arc<[String]> {
        self.names[2..2 + self.replicas].into()
    }

    pub(super) fn run(&self, host: HostId, task: impl Future<Output = ()> + Send + 'static) {
        self.running[&host].host.run(task);
    }

    fn begin(&mut self, id: HostId, now: Moment) {
        if self.running.contains_key(&id) {
            return;
        }
        let host = Host::start(id, now);
        let port = self.net.start(id, host.clock());
        let process = match id {
            REDIS => {
                self.redis.run(&host, port.clone());
                Process::Redis
            }
            CLIENTS => Process::Clients,
            HostId(number) if number < 2 + self.replicas => {
                let engine = self.names[number + self.replicas].clone();
                Process::Replica(Replica::run(&host, port.clone(), engine))
            }
            _ => Process::Engine(Engine::run(&host, port.clone(), self.pace)),
        };
        let running = Running {
            host,
            port,
            process,
            stands_still: false,
        };
        self.running.insert(id, running);
    }

    fn kill(&mut self, id: HostId, death: Death) {
        self.net.kill(id, death);
        self.running.remove(&id);
        if id == REDIS {
            self.redis.restart();
        }
    }

    /// Does it. What Redis has lost by it.
    pub(super) fn act(&mut self, action: Action, now: Moment) -> Option<Lost> {
        match action {
            Action::Kill(host, death) => self.kill(host, death),
            Action::Start(host) => self.begin(host, now),
            Action::Pause(host) => self.stand(host, true),
            Action::Resume(host) => self.stand(host, false),
            Action::Cut(from, to) => {
                self.net.cut(from, to, true);
                self.cuts.push((from, to));
            }
            Action::Heal(from, to) => self.net.cut(from, to, false),
            Action::Slow(from, to, by) => {
                self.net.slow(from, to, Duration::from_millis(by));
                self.slow.push((from, to));
            }
            Action::Reset(one, other) => self.net.reset(one, other),
            Action::Failover(count) => {
                let lost = self.redis.lose(count);
                // Another server, which knows no connection and no script.
                self.kill(REDIS, Death::Reset);
                self.begin(REDIS, now);
                return Some(lost);
            }
            Action::Replace(count) => {
                let lost = self.redis.lose(count);
                self.redis.tell_of_loss();
                return Some(lost);
            }
            Action::Leave(host) => {
                if let Some(Running {
                    process: Process::Replica(replica),
                    ..
                }) = self.running.get_mut(&host)
                {
                    replica.leave();
                }
            }
        }
        None
    }

    fn stand(&mut self, id: HostId, still: bool) {
        if let Some(running) = self.running.get_mut(&id) {
            running.stands_still = still;
        }
    }

    /// Everybody runs, and everything passes.
    pub(super) fn make_well(&mut self, now: Moment) {
        self.is_calm = true;
        for (from, to) in std::mem::take(&mut self.cuts) {
            self.net.cut(from, to, false);
        }
        for (from, to) in std::mem::take(&mut self.slow) {
            self.net.slow(from, to, Duration::ZERO);
        }
        for number in 0..self.names.len() {
            self.stand(HostId(number), false);
            self.begin(HostId(number), now);
        }
    }

    /// Lets everybody work who does not stand still, in any order.
    pub(super) fn step(&mut self, from: Moment, to: Moment, random: &mut Random) {
        self.net.at(from);
        let mut ids: Vec<HostId> = self.running.keys().copied().collect();
        random.shuffle(&mut ids);
        for id in &ids {
            let running = &self.running[id];
            if !running.stands_still {
                running.host.step(from, to);
            }
        }
        self.net.at(to);
        for id in ids {
            let Process::Replica(replica) = &self.running[&id].process else {
                continue;
            };
            if replica.has_left() {
                self.trace
                    .note(to, &self.names[id.0], format_args!("has left"));
                self.kill(id, Death::Reset);
                if self.is_calm {
                    self.begin(id, to);
                }
            }
        }
    }

    /// Engines that still work for somebody, after everything has its end.
    pub(super) fn still_at_work(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (id, running) in &self.running {
            let Process::Engine(engine) = &running.process else {
                continue;
            };
            let requests = engine.recorder().requests();
            let open = requests.iter().filter(|request| request.ending.is_none());
            found.extend(
                open.map(|request| {
                    format!("{} still answers {}", self.names[id.0], request.target)
                }),
            );
        }
        found
    }
}
