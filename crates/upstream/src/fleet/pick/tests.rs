//! Who may be chosen, and how often each is.

use proptest::prelude::*;

use super::*;

const UP: Availability = Availability::Ready(Tier::Proven);
const STARTING: Availability = Availability::Ready(Tier::Unproven);
const QUARANTINED: Availability = Availability::Ready(Tier::LastResort);

fn candidate(id: u64, availability: Availability) -> Candidate<'static> {
    Candidate {
        id: MemberId(id),
        group: None,
        family: Family::Unknown,
        weight: NonZeroU32::MIN,
        in_flight: 0,
        availability,
    }
}

/// The candidates' places and ids are the same.
fn candidates(availabilities: &[Availability]) -> Vec<Candidate<'static>> {
    let numbered = (0..).zip(availabilities);
    numbered.map(|(id, &it)| candidate(id, it)).collect()
}

fn weighted(weights: &[u32]) -> Vec<Candidate<'static>> {
    let mut all = candidates(&vec![UP; weights.len()]);
    for (candidate, &weight) in all.iter_mut().zip(weights) {
        candidate.weight = NonZeroU32::new(weight).unwrap();
    }
    all
}

/// Every place that is chosen in many draws.
fn chosen(candidates: &[Candidate<'_>], wanted: &Wanted<'_>) -> Vec<usize> {
    let mut random = Random::seeded(7);
    let mut places: Vec<_> = (0..200)
        .map(|_| pick(candidates, wanted, &mut random).unwrap())
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[track_caller]
fn check(availabilities: &[Availability], exclude: &[u64], expected: &[usize]) {
    let exclude: Vec<_> = exclude.iter().map(|&id| MemberId(id)).collect();
    let wanted = Wanted {
        exclude: &exclude,
        ..Wanted::default()
    };
    assert_eq!(chosen(&candidates(availabilities), &wanted), expected);
}

#[test]
fn the_best_tier_that_is_left_is_used() {
    use Availability::{Down, Draining};
    check(&[UP, UP, UP], &[], &[0, 1, 2]);
    check(
        &[UP, STARTING, QUARANTINED, Down, Draining, UP],
        &[],
        &[0, 5],
    );
    check(&[UP, STARTING, QUARANTINED, STARTING], &[0], &[1, 3]);
    check(&[UP, STARTING, QUARANTINED, Down], &[0, 1], &[2]);
}

#[test]
fn a_group_keeps_to_itself() {
    let mut all = candidates(&[UP, UP, QUARANTINED, UP]);
    all[1].group = Some("b");
    all[2].group = Some("a");
    let within = |group| {
        let wanted = Wanted {
            group,
            exclude: &[],
            ..Wanted::default()
        };
        chosen(&all, &wanted)
    };
    assert_eq!(within(None), [0, 1, 3]);
    assert_eq!(within(Some("a")), [2]);
    assert_eq!(within(Some("b")), [1]);
}

#[test]
fn the_less_loaded_for_its_weight_is_used() {
    let mut all = weighted(&[1, 4]);
    for (in_flight, expected) in [([1, 3], 1), ([1, 5], 0), ([0, 1], 0), ([9, 0], 1)] {
        for (candidate, in_flight) in all.iter_mut().zip(in_flight) {
            candidate.in_flight = in_flight;
        }
        assert_eq!(
            chosen(&all, &Wanted::default()),
            [expected],
            "{in_flight:?}"
        );
    }
    all[0].in_flight = 1;
    all[1].in_flight = 4;
    assert_eq!(chosen(&all, &Wanted::default()), [0, 1], "equal load");
}

#[track_caller]
fn refused(availabilities: &[Availability], exclude: &[u64], reason: &str, text: &str) {
    let exclude: Vec<_> = exclude.iter().map(|&id| MemberId(id)).collect();
    let wanted = Wanted {
        group: None,
        exclude: &exclude,
        ..Wanted::default()
    };
    let picked = pick(&candidates(availabilities), &wanted, &mut Random::seeded(1));
    let unavailable = picked.unwrap_err();
    assert_eq!(unavailable.reason().as_str(), reason);
    assert_eq!(unavailable.to_string(), text);
}

#[test]
fn a_refusal_says_why() {
    use Availability::{Down, Draining};
    refused(&[], &[], "none_configured", "no such backend is configured");
    refused(
        &[Down, Down],
        &[],
        "all_down",
        "no backend can take the request: 2 down",
    );
    refused(
        &[Draining],
        &[],
        "all_draining",
        "no backend can take the request: 1 draining",
    );
    refused(
        &[UP, QUARANTINED],
        &[0, 1],
        "all_excluded",
        "no backend can take the request: 2 failed it already",
    );
    // One that failed and is known to be down is down: that is why nobody tries it again.
    refused(
        &[UP, Down, Down, Draining],
        &[0, 1],
        "mixed",
        "no backend can take the request: 1 failed it already, 2 down, 1 draining",
    );
}

#[test]
fn nobody_of_the_wanted_group_is_none_configured() {
    let wanted = Wanted {
        group: Some("a"),
        exclude: &[],
        ..Wanted::default()
    };
    let picked = pick(&candidates(&[UP, UP]), &wanted, &mut Random::seeded(1));
    let reason = picked.unwrap_err().reason();
    assert_eq!(reason, UnavailableReason::NoneConfigured);
}

/// Whether each count is its weight's share of all, to a tenth and some noise.
fn is_shared(counts: &[usize], weights: &[u32]) -> bool {
    let all: usize = counts.iter().sum();
    let weight: u32 = weights.iter().sum();
    counts.iter().zip(weights).all(|(&count, &own)| {
        let due = all as f64 * f64::from(own) / f64::from(weight);
        (count as f64 - due).abs() <= due * 0.1 + 5.0 * due.sqrt()
    })
}

fn availability() -> impl Strategy<Value = Availability> {
    prop_oneof![
        Just(UP),
        Just(STARTING),
        Just(QUARANTINED),
        Just(Availability::Down),
        Just(Availability::Draining),
    ]
}

proptest! {
    #[test]
    fn only_the_best_that_will_do_are_chosen_and_a_refusal_counts_all_others(
        members in prop::collection::vec(
            (availability(), 1u32..9, 0usize..50, any::<bool>(), any::<bool>()),
            0..9,
        ),
        in_group in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut all = Vec::new();
        let mut exclude = Vec::new();
        for (id, (availability, weight, in_flight, grouped, excluded)) in (0..).zip(members) {
            all.push(Candidate {
                group: grouped.then_some("a"),
                weight: NonZeroU32::new(weight).unwrap(),
                in_flight,
                ..candidate(id, availability)
            });
            if excluded {
                exclude.push(MemberId(id));
            }
        }
        let wanted = Wanted { group: in_group.then_some("a"), exclude: &exclude, ..Wanted::default() };
        let meant: Vec<_> = all.iter().filter(|it| !in_group || it.group.is_some()).collect();
        let best = meant
            .iter()
            .filter(|it| !exclude.contains(&it.id))
            .filter_map(|it| match it.availability {
                Availability::Ready(tier) => Some(tier),
                Availability::Down | Availability::Draining => None,
            })
            .min();
        match pick(&all, &wanted, &mut Random::seeded(seed)) {
            Ok(place) => {
                let chosen = &all[place];
                prop_assert_eq!(Some(chosen.availability), best.map(Availability::Ready));
                prop_assert!(!exclude.contains(&chosen.id));
                prop_assert!(!in_group || chosen.group == Some("a"));
            }
            Err(why) => {
                prop_assert_eq!(best, None);
                prop_assert_eq!(why.excluded + why.down + why.draining, meant.len());
            }
        }
    }
}

proptest! {
    // Each case draws thousands of times.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An idle fleet: every attempt is over before the next.
    #[test]
    fn idle_members_are_used_by_weight(
        weights in prop::collection::vec(1u32..10, 1..6),
        seed in any::<u64>(),
    ) {
        let all = weighted(&weights);
        let mut random = Random::seeded(seed);
        let mut counts = vec![0; weights.len()];
        for _ in 0..2_000 {
            counts[pick(&all, &Wanted::default(), &mut random).unwrap()] += 1;
        }
        prop_assert!(is_shared(&counts, &weights), "{:?} for {:?}", counts, weights);
    }

    /// A busy fleet: attempts stay, and one ends at random for each that begins.
    #[test]
    fn busy_members_are_loaded_by_weight(
        weights in prop::collection::vec(1u32..10, 1..6),
        seed in any::<u64>(),
    ) {
        let mut all = weighted(&weights);
        let mut random = Random::seeded(seed);
        let mut attempts = Vec::new();
        for _ in 0..2_000 {
            if attempts.len() >= 600 {
                let ended = usize::try_from(random.below(attempts.len() as u64)).unwrap();
                let place: usize = attempts.swap_remove(ended);
                all[place].in_flight -= 1;
            }
            let place = pick(&all, &Wanted::default(), &mut random).unwrap();
            all[place].in_flight += 1;
            attempts.push(place);
        }
        let loads: Vec<_> = all.iter().map(|it| it.in_flight).collect();
        prop_assert!(is_shared(&loads, &weights), "{:?} for {:?}", loads, weights);
    }
}

#[test]
fn a_family_is_asked_in_its_own_dialects_where_anybody_speaks_them() {
    let mut all = candidates(&[UP, UP]);
    all[0].family = Family::Anthropic;
    let of = |all: &[Candidate<'static>], family| {
        let wanted = Wanted {
            family: Some(family),
            ..Wanted::default()
        };
        let mut random = Random::seeded(7);
        let places = (0..50).map(|_| pick(all, &wanted, &mut random).unwrap());
        let places: std::collections::BTreeSet<_> = places.collect();
        places.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of(&all, Family::Anthropic), [0, 1]);
    assert_eq!(of(&all, Family::Openai), [1]);
    assert_eq!(of(&all, Family::Unknown), [0, 1]);
    all[1].family = Family::Gemini;
    assert_eq!(of(&all, Family::Anthropic), [0]);
    // Nobody does, and a refusal would help nobody.
    assert_eq!(of(&all, Family::Openai), [0, 1]);
}

#[test]
fn one_that_is_down_is_asked_only_when_wanted_and_when_there_is_nobody_else() {
    let wanted = Wanted {
        even_down: true,
        ..Wanted::default()
    };
    let mut random = Random::seeded(7);
    let down = candidates(&[Availability::Down, Availability::Draining]);
    assert_eq!(pick(&down, &wanted, &mut random), Ok(0));
    assert!(pick(&down, &Wanted::default(), &mut random).is_err());
    let quarantined = candidates(&[Availability::Down, QUARANTINED]);
    assert_eq!(pick(&quarantined, &wanted, &mut random), Ok(1));
}
