//! Who gets the next attempt: the less loaded of two that are drawn at random.
//!
//! Load is what a member has in flight for each unit of its weight. Looking at all would send every
//! proxy's next attempt to the one that looks idle just now; of two random ones the loads come out
//! nearly as even, without that. Both are drawn in proportion to their weights, and at equal load
//! the first drawn wins, so that also an idle fleet is used by weight.
//!
//! A member that is worse as a matter of principle (see `Tier`) is not drawn while a better one may
//! be. One that this generation has seen fail is not drawn at all.

use std::fmt;
use std::num::NonZeroU32;

use super::random::Random;
use super::status::{Availability, Tier};
use super::{Family, MemberId};

/// Which members will do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Only those of this compatibility group. None takes any, also those without a group.
    pub group: Option<&'a str>,
    /// Not these: the ones that failed this generation already.
    pub exclude: &'a [MemberId],
    /// Rather those that are asked in the dialects of this vendor. Where there is none, any.
    pub family: Option<Family>,
    /// Also those that are down, when there is nobody else: a probe may be wrong, and a refusal never helps.
    pub even_down: bool,
}

/// A member as far as choosing needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) id: MemberId,
    pub(super) group: Option<&'a str>,
    pub(super) family: Family,
    pub(super) weight: NonZeroU32,
    pub(super) in_flight: usize,
    pub(super) availability: Availability,
}

/// The place of the chosen one in `candidates`.
pub(super) fn pick(
    candidates: &[Candidate<'_>],
    wanted: &Wanted<'_>,
    random: &mut Random,
) -> Result<usize, Unavailable> {
    let mut unavailable = Unavailable::default();
    let mut ready: Vec<(usize, Tier)> = Vec::new();
    let speaks = |candidate: &Candidate<'_>| match wanted.family {
        None | Some(Family::Unknown) => true,
        Some(family) => candidate.family == family || candidate.family == Family::Unknown,
    };
    let anybody_speaks = candidates.iter().any(speaks);
    for (place, candidate) in candidates.iter().enumerate() {
        if !wanted.admits(candidate.group) || (anybody_speaks && !speaks(candidate)) {
            continue;
        }
        match candidate.availability {
            Availability::Draining => unavailable.draining += 1,
            Availability::Down if !wanted.even_down => unavailable.down += 1,
            Availability::Down | Availability::Ready(_)
                if wanted.exclude.contains(&candidate.id) =>
            {
                unavailable.excluded += 1;
            }
            Availability::Down => ready.push((place, Tier::Doubtful)),
            Availability::Ready(tier) => ready.push((place, tier)),
        }
    }
    let Some(best) = ready.iter().map(|&(_, tier)| tier).min() else {
        return Err(unavailable);
    };
    let mut best: Vec<usize> = ready
        .into_iter()
        .filter_map(|(place, tier)| (tier == best).then_some(place))
        .collect();

    let first = draw(candidates, &mut best, random);
    if best.is_empty() {
        return Ok(first);
    }
    let second = draw(candidates, &mut best, random);
    let (one, other) = (&candidates[first], &candidates[second]);
    // Each over its weight, without dividing.
    let load =
        |of: &Candidate<'_>, by: &Candidate<'_>| of.in_flight as u128 * u128::from(by.weight.get());
    let chosen = if load(other, one) < load(one, other) {
        second
    } else {
        first
    };
    Ok(chosen)
}

/// Takes one of `places` out, each as likely as its weight is large.
fn draw(candidates: &[Candidate<'_>], places: &mut Vec<usize>, random: &mut Random) -> usize {
    let weight = |place: usize| u64::from(candidates[place].weight.get());
    let total = places.iter().map(|&place| weight(place)).sum();
    let mut drawn = random.below(total);
    let hit = places.iter().position(|&place| {
        let hit = drawn < weight(place);
        drawn = drawn.saturating_sub(weight(place));
        hit
    });
    places.swap_remove(hit.expect("what is drawn is below the sum of the weights"))
}

impl Wanted<'_> {
    /// Whether a member, or a name, of this group is meant.
    pub(super) fn admits(&self, group: Option<&str>) -> bool {
        self.group.is_none() || self.group == group
    }
}

/// Why nobody can take an attempt: how many members there are that would do, by what keeps each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unavailable {
    /// Those that a failed attempt of this generation excludes.
    pub excluded: usize,
    /// Those whose probes fail.
    pub down: usize,
    /// Those that get no new attempts, by an operator's wish or because DNS names them no more.
    pub draining: usize,
    /// Configured names that have not led to any address yet.
    pub unresolved: usize,
}

impl Unavailable {
    /// The reason in one word.
    pub fn reason(&self) -> UnavailableReason {
        let Self {
            excluded,
            down,
            draining,
            unresolved,
        } = *self;
        match (excluded > 0, down > 0, draining > 0, unresolved > 0) {
            (false, false, false, false) => UnavailableReason::NoneConfigured,
            (true, false, false, false) => UnavailableReason::AllExcluded,
            (false, true, false, false) => UnavailableReason::AllDown,
            (false, false, true, false) => UnavailableReason::AllDraining,
            (false, false, false, true) => UnavailableReason::Unresolved,
            _ => UnavailableReason::Mixed,
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason() == UnavailableReason::NoneConfigured {
            return f.write_str("no such backend is configured");
        }
        f.write_str("no backend can take the request")?;
        let mut separator = ": ";
        for (count, text) in [
            (self.excluded, "failed it already"),
            (self.down, "down"),
            (self.draining, "draining"),
            (self.unresolved, "without a known address"),
        ] {
            if count > 0 {
                write!(f, "{separator}{count} {text}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

impl std::error::Error for Unavailable {}

/// Why nobody can take an attempt, in words that stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnavailableReason {
    /// There is no member of the wanted group, or none at all.
    NoneConfigured,
    /// All have failed this generation.
    AllExcluded,
    /// All are down.
    AllDown,
    /// All are draining.
    AllDraining,
    /// No name has led to an address yet.
    Unresolved,
    /// Several of these.
    Mixed,
}

impl UnavailableReason {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoneConfigured => "none_configured",
            Self::AllExcluded => "all_excluded",
            Self::AllDown => "all_down",
            Self::AllDraining => "all_draining",
            Self::Unresolved => "unresolved",
            Self::Mixed => "mixed",
        }
    }
}

#[cfg(test)]
mod tests;
