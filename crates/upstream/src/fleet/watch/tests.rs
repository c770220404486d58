//! The driver over a resolver that says what the test wants.

use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::fleet::{Config, Engine, HealthCheck, MemberState, Reach, Spec, Wanted};

/// No test waits longer for anything.
const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Clone, Default)]
struct Dns(Arc<Mutex<Answer>>);

#[derive(Default)]
struct Answer {
    /// None for a failure.
    last_numbers: Option<Vec<u8>>,
    /// How often it was given.
    times: usize,
}

impl Dns {
    fn says(&self, last_numbers: Option<&[u8]>) {
        *self.0.lock().unwrap() = Answer {
            last_numbers: last_numbers.map(<[u8]>::to_vec),
            times: 0,
        };
    }

    fn times(&self) -> usize {
        self.0.lock().unwrap().times
    }

    fn answer(&self) -> io::Result<Vec<IpAddr>> {
        let mut answer = self.0.lock().unwrap();
        answer.times += 1;
        match &answer.last_numbers {
            Some(numbers) => Ok(numbers
                .iter()
                .map(|&number| Ipv4Addr::new(127, 0, 0, number).into())
                .collect()),
            None => Err(io::Error::other("lookup failed")),
        }
    }
}

/// A watched fleet of whatever `dns` says, unprobed.
fn watched(dns: &Dns) -> (Fleet, Task) {
    let spec = Spec {
        reach: Reach::EveryAddress,
        health: HealthCheck::Off,
        ..Spec::new("pods", "http://pods.example".parse().unwrap(), Engine::Vllm)
    };
    let config = Config {
        lookup_every: Duration::from_millis(10),
        ..Config::default()
    };
    let fleet = Fleet::new(vec![spec], config).unwrap();
    let prober = Prober::new(&UpstreamConfig::default(), DEADLINE).unwrap();
    let dns = dns.clone();
    let lookup = move |_| std::future::ready(dns.answer());
    let task = Task::spawn(run(fleet.clone(), prober, lookup));
    (fleet, task)
}

fn shown(fleet: &Fleet) -> Vec<String> {
    let members = fleet.snapshot().into_iter();
    members
        .map(|member| format!("{} {}", member.name, member.state.as_str()))
        .collect()
}

/// Waits until this is shown.
async fn until(fleet: &Fleet, expected: &[&str]) {
    let mut changes = fleet.changes();
    let reached = async {
        while shown(fleet) != expected {
            changes.changed().await;
        }
    };
    if tokio::time::timeout(DEADLINE, reached).await.is_err() {
        panic!("{:?} instead of {expected:?}", shown(fleet));
    }
}

#[tokio::test]
async fn members_follow_dns() {
    let dns = Dns::default();
    let (fleet, _task) = watched(&dns);
    let refused = fleet.pick(&Wanted::default()).unwrap_err();
    assert_eq!(refused.reason().as_str(), "unresolved");

    dns.says(Some(&[1, 2]));
    until(&fleet, &["pods-1 up", "pods-2 up"]).await;
    dns.says(Some(&[2]));
    until(&fleet, &["pods-2 up"]).await;

    let permit = fleet.pick(&Wanted::default()).unwrap();
    dns.says(Some(&[3]));
    until(&fleet, &["pods-2 draining", "pods-1 up"]).await;
    let leaving: Vec<_> = fleet.snapshot().iter().map(|it| it.leaving).collect();
    assert_eq!(leaving, [true, false]);
    drop(permit);
    until(&fleet, &["pods-1 up"]).await;
}

#[tokio::test]
async fn a_lookup_that_fails_or_finds_nothing_changes_nothing() {
    let dns = Dns::default();
    dns.says(Some(&[1]));
    let (fleet, _task) = watched(&dns);
    until(&fleet, &["pods-1 up"]).await;
    for nothing in [None, Some(&[][..])] {
        dns.says(nothing);
        // The second lookup begins when the first has had its effect.
        let twice = async {
            while dns.times() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, twice).await.unwrap();
        assert_eq!(shown(&fleet), ["pods-1 up"]);
    }
    dns.says(Some(&[1, 2]));
    until(&fleet, &["pods-1 up", "pods-2 up"]).await;
}

#[tokio::test]
async fn nothing_is_looked_up_after_the_watch_has_ended() {
    let dns = Dns::default();
    dns.says(Some(&[1]));
    let (fleet, task) = watched(&dns);
    until(&fleet, &["pods-1 up"]).await;
    drop(task);
    let ended = async {
        // The loops hold the resolver as long as they are.
        while Arc::strong_count(&dns.0) > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, ended).await.unwrap();
    assert_eq!(fleet.snapshot()[0].state, MemberState::Up);
    fleet.pick(&Wanted::default()).unwrap();
}
