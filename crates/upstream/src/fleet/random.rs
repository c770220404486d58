//! Randomness for choices and jitter: fast, seedable, and of no use for secrets.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Numbers that look random: SplitMix64, whose whole state is one counter.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Starts differently each time. The standard library draws the keys of its hash maps from the
    /// system, which is as good a start as any.
    pub(super) fn from_system() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    /// The same numbers for the same seed.
    #[cfg(test)]
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).expect("less than the bound, which fits")
    }

    /// `period`, up to a fifth shorter or longer, so that replicas which started together do not
    /// stay in step.
    pub(super) fn around(&mut self, period: Duration) -> Duration {
        let per_mille = u32::try_from(800 + self.below(401)).expect("at most 1200");
        period * per_mille / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::from_system();
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(random.below(7)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| count > 700), "{seen:?}");
    }

    #[test]
    fn jitter_is_a_fifth_either_way() {
        let mut random = Random::seeded(1);
        let drawn: Vec<_> = (0..1_000)
            .map(|_| random.around(Duration::from_secs(5)))
            .collect();
        let [shortest, longest] = [drawn.iter().min(), drawn.iter().max()].map(|it| it.unwrap());
        assert!(
            (4_000..4_100).contains(&shortest.as_millis()),
            "{shortest:?}"
        );
        assert!(
            (5_900..=6_000).contains(&longest.as_millis()),
            "{longest:?}"
        );
    }
}
