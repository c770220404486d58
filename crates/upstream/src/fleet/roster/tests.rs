//! Members that come and go with DNS, and what is in flight where.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::fleet::{Config, Engine, HealthCheck};

fn spec(name: &str, reach: Reach) -> Spec {
    let url = format!("http://{name}.example:8000").parse().unwrap();
    Spec {
        reach,
        ..Spec::new(name, url, Engine::Vllm)
    }
}

fn roster(specs: Vec<Spec>) -> Roster {
    let rules = Config::default().rules();
    let mut roster = Roster::new(specs, rules, Random::seeded(3), Instant::now());
    roster.take_news();
    roster
}

fn service() -> Roster {
    roster(vec![spec("pods", Reach::EveryAddress)])
}

fn resolve(roster: &mut Roster, last_numbers: &[u8]) {
    let address = |&number| IpAddr::from([10, 0, 0, number]);
    let addresses: Vec<_> = last_numbers.iter().map(address).collect();
    roster.resolved(0, &addresses, Instant::now());
}

/// Who was shown in another state, in order.
fn news(roster: &mut Roster) -> Vec<String> {
    let changes = roster.take_news().changes.into_iter();
    changes
        .map(|change| format!("{} {}", change.member.name(), change.to.as_str()))
        .collect()
}

/// The last number of each member's address.
fn addresses(roster: &Roster) -> HashMap<String, u8> {
    let numbers = roster.entries.iter().map(|entry| {
        let (_, IpAddr::V4(address)) = entry.found.unwrap() else {
            panic!("not one of these tests' addresses");
        };
        (entry.member.name().to_owned(), address.octets()[3])
    });
    numbers.collect()
}

fn pick(roster: &mut Roster) -> Result<Arc<Member>, Unavailable> {
    roster.pick(&Wanted::default(), Instant::now())
}

#[test]
fn addresses_become_members_with_numbers() {
    let mut roster = service();
    resolve(&mut roster, &[7, 5, 7]);
    assert_eq!(news(&mut roster), ["pods-1 starting", "pods-2 starting"]);
    let expected = [("pods-1".to_owned(), 5), ("pods-2".to_owned(), 7)];
    assert_eq!(addresses(&roster), expected.into());
    resolve(&mut roster, &[5, 7]);
    assert_eq!(news(&mut roster), [""; 0]);
}

#[test]
fn an_idle_member_that_dns_drops_is_gone_and_its_number_free() {
    let mut roster = service();
    resolve(&mut roster, &[5, 7]);
    let old = roster.named("pods-1").unwrap();
    news(&mut roster);
    resolve(&mut roster, &[7, 9]);
    assert_eq!(
        news(&mut roster),
        ["pods-1 draining", "pods-1 gone", "pods-1 starting"]
    );
    assert_eq!(addresses(&roster)["pods-1"], 9);
    assert_ne!(roster.named("pods-1").unwrap(), old);
    // What is still said of the old one does not reach the new one.
    roster.on(old, Event::Drain, Instant::now());
    assert_eq!(news(&mut roster), [""; 0]);
}

#[test]
fn one_with_an_attempt_in_flight_drains_first() {
    let mut roster = service();
    resolve(&mut roster, &[5]);
    let member = pick(&mut roster).unwrap();
    news(&mut roster);
    resolve(&mut roster, &[7]);
    assert_eq!(
        news(&mut roster),
        ["pods-1 draining", "pods-2 starting"],
        "a name that is in use is not given away"
    );
    for _ in 0..20 {
        assert_eq!(pick(&mut roster).unwrap().name(), "pods-2");
    }
    roster.release(member.id(), Instant::now());
    assert_eq!(news(&mut roster), ["pods-1 gone"]);
}

#[test]
fn one_that_is_named_again_in_time_stays() {
    let mut roster = service();
    resolve(&mut roster, &[5]);
    let member = pick(&mut roster).unwrap();
    resolve(&mut roster, &[7]);
    news(&mut roster);
    resolve(&mut roster, &[5, 7]);
    assert_eq!(news(&mut roster), ["pods-1 starting"]);
    roster.release(member.id(), Instant::now());
    assert_eq!(news(&mut roster), [""; 0]);
}

#[test]
fn a_number_that_another_backend_is_named_after_is_passed_over() {
    let mut roster = roster(vec![
        spec("pods-1", Reach::Host),
        spec("pods", Reach::EveryAddress),
    ]);
    resolve(&mut roster, &[5]);
    assert_eq!(news(&mut roster), ["pods-2 starting"]);
}

#[test]
fn a_name_without_an_address_yet_is_not_called_unconfigured() {
    let mut roster = service();
    let unavailable = pick(&mut roster).unwrap_err();
    assert_eq!(unavailable.reason().as_str(), "unresolved");
    let elsewhere = Wanted {
        group: Some("other"),
        exclude: &[],
        ..Wanted::default()
    };
    let unavailable = roster.pick(&elsewhere, Instant::now()).unwrap_err();
    assert_eq!(unavailable.reason().as_str(), "none_configured");
    resolve(&mut roster, &[5]);
    pick(&mut roster).unwrap();
}

#[test]
fn a_quarantine_ends_for_whoever_chooses_later() {
    let mut specs = vec![spec("a", Reach::Host), spec("b", Reach::Host)];
    for spec in &mut specs {
        spec.health = HealthCheck::Off;
    }
    let mut roster = roster(specs);
    let start = Instant::now();
    let refused = FailureClass::Request(crate::ErrorKind::ConnectRefused);
    let a = roster.named("a").unwrap();
    roster.on(a, Event::Attempt(Err(refused)), start);
    let mut counts = |now| {
        let picked = (0..40).map(|_| roster.pick(&Wanted::default(), now).unwrap());
        picked.filter(|member| member.id() == a).count()
    };
    assert_eq!(counts(start + Duration::from_secs(4)), 0);
    // All the others hold attempts now.
    assert_eq!(counts(start + Duration::from_secs(5)), 40);
}

#[test]
fn the_end_of_the_last_attempt_is_news() {
    let mut roster = roster(vec![spec("a", Reach::Host)]);
    let id = pick(&mut roster).unwrap().id();
    pick(&mut roster).unwrap();
    roster.release(id, Instant::now());
    assert!(!roster.take_news().emptied);
    roster.release(id, Instant::now());
    assert!(roster.take_news().emptied);
}

proptest! {
    /// Whatever DNS says in between, what is in flight stays counted, names stay apart, and the
    /// members that are not leaving are just the addresses of the last answer.
    #[test]
    fn members_follow_dns_and_lose_no_attempt(
        steps in prop::collection::vec(
            (prop::collection::hash_set(0u8..6, 1..5), 0usize..4, 0usize..4),
            1..40,
        ),
    ) {
        let mut roster = service();
        let mut attempts: Vec<MemberId> = Vec::new();
        for (found, begun, ended) in steps {
            let mut found: Vec<_> = found.into_iter().collect();
            resolve(&mut roster, &found);
            for _ in 0..begun {
                let member = pick(&mut roster).unwrap();
                let (state, _) = roster.state(member.id()).unwrap();
                prop_assert_eq!(state, MemberState::Starting);
                attempts.push(member.id());
            }
            for _ in 0..ended.min(attempts.len()) {
                roster.release(attempts.remove(0), Instant::now());
            }

            let named = addresses(&roster);
            prop_assert_eq!(named.len(), roster.entries.len());
            let mut staying = Vec::new();
            for entry in &roster.entries {
                let id = entry.member.id();
                let in_flight = attempts.iter().filter(|&&of| of == id).count();
                prop_assert_eq!(entry.in_flight, in_flight);
                if entry.status.is_leaving() {
                    prop_assert!(in_flight > 0);
                } else {
                    staying.push(named[entry.member.name()]);
                }
            }
            staying.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(staying, found);
            let known = attempts.iter().all(|&id| roster.state(id).is_some());
            prop_assert!(known);
        }
    }
}

fn replace(roster: &mut Roster, specs: &[Spec]) {
    roster.replace(specs.to_vec(), Instant::now());
}

#[test]
fn what_is_listed_as_it_was_stays_as_it_is() {
    let (a, b) = (spec("a", Reach::Host), spec("b", Reach::Host));
    let mut roster = roster(vec![a.clone(), b.clone()]);
    let id = roster.named("a").unwrap();
    roster.on(id, Event::Drain, Instant::now());
    news(&mut roster);
    replace(&mut roster, &[b, a, spec("c", Reach::Host)]);
    assert_eq!(news(&mut roster), ["c starting"]);
    assert_eq!(roster.named("a"), Some(id));
    assert_eq!(roster.state(id), Some((MemberState::Draining, 0)));
}

#[test]
fn what_is_not_listed_any_more_ends_what_it_has_begun() {
    let (a, b) = (spec("a", Reach::Host), spec("b", Reach::Host));
    let mut roster = roster(vec![a.clone()]);
    let member = pick(&mut roster).unwrap();
    replace(&mut roster, &[b]);
    assert_eq!(news(&mut roster), ["a draining", "b starting"]);
    assert_eq!(pick(&mut roster).unwrap().name(), "b");
    roster.release(member.id(), Instant::now());
    assert_eq!(news(&mut roster), ["a gone"]);
}

#[test]
fn one_that_is_listed_otherwise_is_another() {
    let a = spec("a", Reach::Host);
    let mut roster = roster(vec![a.clone()]);
    let old = pick(&mut roster).unwrap();
    let heavier = Spec {
        weight: 3.try_into().unwrap(),
        ..a.clone()
    };
    replace(&mut roster, &[heavier]);
    assert_eq!(news(&mut roster), ["a draining", "a starting"]);
    let new = pick(&mut roster).unwrap();
    assert_eq!(new.weight().get(), 3);
    // Whoever names it means the one that is listed.
    assert_eq!(roster.named("a"), Some(new.id()));
    assert_ne!(old.id(), new.id());
    // The old one is listed again before it is gone: both are there, and the later one goes.
    replace(&mut roster, &[a]);
    assert_eq!(roster.named("a"), Some(old.id()));
    roster.release(new.id(), Instant::now());
    assert_eq!(roster.members().count(), 1);
}

#[test]
fn a_name_that_is_not_listed_any_more_takes_its_members_along() {
    let mut roster = service();
    resolve(&mut roster, &[5, 7]);
    let busy = pick(&mut roster).unwrap();
    news(&mut roster);
    let other = spec("others", Reach::EveryAddress);
    replace(&mut roster, &[other]);
    assert_eq!(roster.services().map(|(of, _)| of).collect::<Vec<_>>(), [1]);
    assert_eq!(roster.members().count(), 1);
    // An answer that comes late lists nobody.
    resolve(&mut roster, &[5, 9]);
    assert_eq!(roster.members().count(), 1);
    roster.resolved(1, &[IpAddr::from([10, 0, 1, 5])], Instant::now());
    assert!(roster.named("others-1").is_some());
    roster.release(busy.id(), Instant::now());
    assert_eq!(roster.members().count(), 1);
}
