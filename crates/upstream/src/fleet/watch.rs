//! Looking after a fleet: probes and name lookups, in their rhythm.
//!
//! One task, owned by the [`Watch`]. It owns in turn a loop for each member that is probed and each
//! name that is looked up, so all of them end with it. The loops hold no rules: what an outcome
//! means is decided by the state machine and the roster.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use http::uri::PathAndQuery;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::probe::Prober;
use super::random::Random;
use super::status::Event;
use super::{Fleet, Member};
use crate::task::Task;
use crate::{BackendUrl, ConfigError, UpstreamConfig};

/// Keeps a fleet's knowledge fresh until it is dropped. The fleet itself goes on with what it knows.
pub struct Watch {
    _task: Task,
}

impl Watch {
    /// For [`Fleet::watch`].
    pub(super) fn start(fleet: &Fleet, config: &UpstreamConfig) -> Result<Self, ConfigError> {
        let prober = Prober::new(config, fleet.config().probe_timeout)?;
        Ok(Self {
            _task: Task::spawn(run(fleet.clone(), prober, system_lookup)),
        })
    }
}

/// Starts the loops, also those for members and names that are listed later.
async fn run<L, F>(fleet: Fleet, prober: Prober, lookup: L)
where
    L: Fn(BackendUrl) -> F + Clone + Send + 'static,
    F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
{
    let prober = Arc::new(prober);
    let mut loops = JoinSet::new();
    let mut changes = fleet.changes();
    let (mut probed, mut looked_up) = (HashSet::new(), HashSet::new());
    loop {
        for (service, name, url) in fleet.services() {
            if looked_up.insert(service) {
                loops.spawn(look_up(fleet.clone(), service, name, url, lookup.clone()));
            }
        }
        let members = fleet.members();
        probed.retain(|&id| members.iter().any(|(member, _)| member.id() == id));
        for (member, _) in members {
            let Some(path) = member.health_path() else {
                continue;
            };
            if probed.insert(member.id()) {
                loops.spawn(probe(fleet.clone(), Arc::clone(&prober), member, path));
            }
        }
        tokio::select! {
            () = changes.changed() => {}
            Some(ended) = loops.join_next() => report_panic(ended),
        }
    }
}

/// Probes one member until it is gone. The period is counted from start to start, so that a slow
/// answer delays nothing.
async fn probe(fleet: Fleet, prober: Arc<Prober>, member: Arc<Member>, path: PathAndQuery) {
    let mut random = Random::from_system();
    while fleet.state(member.id()).is_some() {
        let next = Instant::now() + random.around(fleet.config().probe_every);
        let result = prober.probe(&member, &path).await;
        fleet.on(member.id(), Event::Probe(result));
        tokio::time::sleep_until(next).await;
    }
}

/// Looks one name up for as long as it is listed. A lookup that fails, or finds nothing,
/// changes nothing: members that are really away are found so by their probes.
async fn look_up<L, F>(fleet: Fleet, service: usize, name: String, url: BackendUrl, lookup: L)
where
    L: Fn(BackendUrl) -> F,
    F: Future<Output = io::Result<Vec<IpAddr>>>,
{
    let mut random = Random::from_system();
    let mut failing = false;
    while fleet.lists(service) {
        // No deadline: nobody waits for it, and a new one beside it would hold another thread.
        let found = match lookup(url.clone()).await {
            Ok(addresses) if addresses.is_empty() => Err(io::ErrorKind::NotFound.into()),
            found => found,
        };
        match found {
            Ok(addresses) => {
                failing = false;
                fleet.resolved(service, &addresses);
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(backend = name, %error, "name lookup fails; what is known stays");
                }
            }
        }
        tokio::time::sleep(random.around(fleet.config().lookup_every)).await;
    }
}

/// The system's resolver. Of two address families the one that it puts first: the same pods stand
/// behind both.
async fn system_lookup(url: BackendUrl) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((url.host(), url.port())).await?;
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    if let Some(first) = addresses.first().map(IpAddr::is_ipv4) {
        addresses.retain(|address| address.is_ipv4() == first);
    }
    Ok(addresses)
}

/// A loop that panics ends alone; its member keeps the state it had.
fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a probe or lookup has panicked and is not repeated");
    }
}

#[cfg(test)]
mod tests;
