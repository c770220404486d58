//! Who is in the fleet, what state each is in, and what is in flight where.
//!
//! Pure: time is an argument, and what has changed is kept as news until the driver takes it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;

use super::failure::FailureClass;
use super::pick::{self, Candidate, Unavailable, Wanted};
use super::random::Random;
use super::status::{Event, MemberState, Moved, Rules, Status};
use super::tally::Tally;
use super::{Member, MemberId, Reach, Spec};
use crate::Backend;

/// The members of a fleet.
pub(super) struct Roster {
    entries: Vec<Entry>,
    /// The names that stand for several members. A place is never given to another: members know theirs by it.
    services: Vec<Option<Arc<Spec>>>,
    rules: Rules,
    random: Random,
    next_id: u64,
    news: News,
    /// What came of attempts, by the name of the member and the outcome. Names come back, so it stays small.
    tally: BTreeMap<(String, &'static str), u64>,
}

struct Entry {
    member: Arc<Member>,
    status: Status,
    in_flight: usize,
    /// Which of the services it belongs to, and which of that one's addresses it is.
    found: Option<(usize, IpAddr)>,
}

/// What has changed since it was last asked.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) changes: Vec<Change>,
    /// A member's last attempt is over.
    pub(super) emptied: bool,
}

/// A member that is shown in another state than before.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) member: Arc<Member>,
    /// None for a member that is new.
    pub(super) from: Option<MemberState>,
    pub(super) to: MemberState,
    /// The latest failure, where one has led there.
    pub(super) failure: Option<FailureClass>,
}

impl Roster {
    pub(super) fn new(specs: Vec<Spec>, rules: Rules, random: Random, now: Instant) -> Self {
        let mut roster = Self {
            entries: Vec::new(),
            services: Vec::new(),
            rules,
            random,
            next_id: 0,
            news: News::default(),
            tally: BTreeMap::new(),
        };
        for spec in specs {
            roster.list(spec, now);
        }
        roster
    }

    /// An operator says it of this backend, or of this name.
    fn list(&mut self, spec: Spec, now: Instant) {
        let spec = Arc::new(spec);
        match spec.reach {
            Reach::Host => {
                let backend = Backend::named(spec.name.as_str(), spec.url.clone());
                self.join(spec, backend, None, now);
            }
            Reach::EveryAddress => self.services.push(Some(spec)),
        }
    }

    /// The operator says this now. What is as it was stays with what is known of it. What is not listed any more, or is
    /// listed otherwise, is left as if DNS had left it out: it gets no new attempts, and goes when its last is over.
    pub(super) fn replace(&mut self, specs: Vec<Spec>, now: Instant) {
        for spec in &mut self.services {
            spec.take_if(|spec| !specs.contains(spec));
        }
        let known: Vec<_> = self
            .entries
            .iter()
            .map(|entry| {
                let is_listed = match entry.found {
                    Some((service, _)) => self.services[service].is_some(),
                    None => specs.contains(entry.member.spec()),
                };
                (entry.member.id(), is_listed, entry.found.is_some())
            })
            .collect();
        for (id, is_listed, is_found) in known {
            if !is_listed {
                self.leave(id, now);
            } else if !is_found {
                // It may be back before it was gone.
                self.on(id, Event::Named, now);
            }
        }
        for spec in specs {
            let is_service = self.services().any(|(_, of)| **of == spec);
            let is_member = self
                .entries
                .iter()
                .any(|entry| entry.found.is_none() && **entry.member.spec() == spec);
            if !is_service && !is_member {
                self.list(spec, now);
            }
        }
    }

    /// Chooses a member and counts an attempt there, until [`release`](Self::release).
    pub(super) fn pick(
        &mut self,
        wanted: &Wanted<'_>,
        now: Instant,
    ) -> Result<Arc<Member>, Unavailable> {
        self.settle(now);
        let candidates: Vec<_> = self.entries.iter().map(Entry::candidate).collect();
        match pick::pick(&candidates, wanted, &mut self.random) {
            Ok(place) => {
                let id = self.entries[place].member.id();
                Ok(self.join_in(id).expect("it was chosen from these"))
            }
            Err(unavailable) => Err(Unavailable {
                unresolved: self.unresolved(wanted),
                ..unavailable
            }),
        }
    }

    /// Counts an attempt at a member, until [`release`](Self::release).
    pub(super) fn join_in(&mut self, id: MemberId) -> Option<Arc<Member>> {
        let place = self.place(id)?;
        let entry = &mut self.entries[place];
        entry.in_flight += 1;
        Some(Arc::clone(&entry.member))
    }

    /// An attempt at a member is over.
    pub(super) fn release(&mut self, id: MemberId, now: Instant) {
        let place = self.place(id).expect("who has an attempt in flight stays");
        let entry = &mut self.entries[place];
        entry.in_flight -= 1;
        if entry.in_flight == 0 {
            self.news.emptied = true;
            self.on(id, Event::Idle, now);
        }
    }

    /// Something happened to a member; one that is gone does not care.
    pub(super) fn on(&mut self, id: MemberId, event: Event, now: Instant) {
        let Some(place) = self.place(id) else { return };
        let entry = &mut self.entries[place];
        let Some(moved) = entry.status.on(event, now) else {
            return;
        };
        self.news.changes.push(entry.change(moved));
        if moved.to == MemberState::Gone {
            self.entries.remove(place);
        }
    }

    /// Counts what came of an attempt.
    pub(super) fn count(&mut self, member: &Member, outcome: &'static str) {
        let key = (member.name().to_owned(), outcome);
        *self.tally.entry(key).or_default() += 1;
    }

    pub(super) fn tally(&self) -> Vec<Tally> {
        let tally = self.tally.iter();
        tally
            .map(|((backend, outcome), &count)| Tally {
                backend: backend.clone(),
                outcome,
                count,
            })
            .collect()
    }

    /// Lets time pass for all.
    pub(super) fn settle(&mut self, now: Instant) {
        for entry in &mut self.entries {
            if let Some(moved) = entry.status.on(Event::Elapsed, now) {
                self.news.changes.push(entry.change(moved));
            }
        }
    }

    /// A service's name leads to just these addresses.
    pub(super) fn resolved(&mut self, service: usize, addresses: &[IpAddr], now: Instant) {
        let Some(spec) = self.services[service].clone() else {
            // Nobody lists it any more.
            return;
        };
        let known: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| match entry.found {
                Some((of, address)) if of == service => Some((entry.member.id(), address)),
                _ => None,
            })
            .collect();
        for &(id, address) in &known {
            if addresses.contains(&address) {
                self.on(id, Event::Named, now);
            } else {
                self.leave(id, now);
            }
        }
        let mut new: Vec<IpAddr> = addresses.to_vec();
        new.retain(|address| !known.iter().any(|(_, known)| known == address));
        new.sort_unstable();
        new.dedup();
        for address in new {
            let name = self.free_name(&spec.name);
            let backend = Backend::at(name, spec.url.clone(), address);
            self.join(Arc::clone(&spec), backend, Some((service, address)), now);
        }
    }

    /// What has changed since the last call.
    pub(super) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&Arc<Member>, &Status, usize)> {
        let entries = self.entries.iter();
        entries.map(|entry| (&entry.member, &entry.status, entry.in_flight))
    }

    /// The names that stand for several members, each with its place.
    pub(super) fn services(&self) -> impl Iterator<Item = (usize, &Arc<Spec>)> {
        let services = self.services.iter().enumerate();
        services.filter_map(|(service, spec)| Some((service, spec.as_ref()?)))
    }

    /// What is shown of a member and how much is in flight there; none if it is gone.
    pub(super) fn state(&self, id: MemberId) -> Option<(MemberState, usize)> {
        let entry = &self.entries[self.place(id)?];
        Some((entry.status.shown(), entry.in_flight))
    }

    /// The member of this name. One that is listed otherwise now may be on its way out beside it.
    pub(super) fn named(&self, name: &str) -> Option<MemberId> {
        let entries = self.entries.iter();
        let members = entries.filter(|entry| entry.member.name() == name);
        let member = members.min_by_key(|entry| entry.status.is_leaving())?;
        Some(member.member.id())
    }

    fn join(
        &mut self,
        spec: Arc<Spec>,
        backend: Backend,
        found: Option<(usize, IpAddr)>,
        now: Instant,
    ) {
        let status = match spec.health_path() {
            Some(_) => Status::starting(self.rules, now),
            None => Status::unprobed(self.rules, now),
        };
        let id = MemberId(self.next_id);
        self.next_id += 1;
        let member = Arc::new(Member::new(id, backend, spec));
        self.news.changes.push(Change {
            member: Arc::clone(&member),
            from: None,
            to: status.shown(),
            failure: None,
        });
        self.entries.push(Entry {
            member,
            status,
            in_flight: 0,
            found,
        });
    }

    fn leave(&mut self, id: MemberId, now: Instant) {
        self.on(id, Event::Left, now);
        if self.state(id).is_some_and(|(_, in_flight)| in_flight == 0) {
            self.on(id, Event::Idle, now);
        }
    }

    /// The first of `name-1`, `name-2` … that nobody has. Names come back, so that metrics do not
    /// grow with every pod that ever was.
    fn free_name(&self, name: &str) -> String {
        (1..)
            .map(|number| format!("{name}-{number}"))
            .find(|name| self.named(name).is_none())
            .expect("there are more numbers than members")
    }

    fn unresolved(&self, wanted: &Wanted<'_>) -> usize {
        let meant = self
            .services()
            .filter(|(_, spec)| wanted.admits(spec.group.as_deref()));
        meant
            .filter(|&(service, _)| {
                let mut found = self.entries.iter().filter_map(|entry| entry.found);
                !found.any(|(of, _)| of == service)
            })
            .count()
    }

    fn place(&self, id: MemberId) -> Option<usize> {
        let mut ids = self.entries.iter().map(|entry| entry.member.id());
        ids.position(|other| other == id)
    }
}

impl Entry {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            id: self.member.id(),
            group: self.member.group(),
            family: self.member.family(),
            weight: self.member.weight(),
            in_flight: self.in_flight,
            availability: self.status.availability(),
        }
    }

    fn change(&self, moved: Moved) -> Change {
        let by_failure = matches!(moved.to, MemberState::Down | MemberState::Quarantined);
        let failure = self.status.last_failure().filter(|_| by_failure);
        Change {
            member: Arc::clone(&self.member),
            from: Some(moved.from),
            to: moved.to,
            failure: failure.map(|(class, _)| class),
        }
    }
}

#[cfg(test)]
mod tests;
