//! What is believed of a backend, from probes, attempts and time.

use std::time::Duration;

use tokio::time::Instant;

use crate::fleet::FailureClass;

/// When the machine changes its mind.
#[derive(Debug, Clone, Copy)]
pub(in crate::fleet) struct Rules {
    /// Probes that fail in a row before a member is down.
    pub(in crate::fleet) failures: u32,
    /// Probes that succeed in a row before one that was down is up.
    pub(in crate::fleet) successes: u32,
    /// Attempts that fail in a row before quarantine.
    pub(in crate::fleet) failed_attempts: u32,
    /// The first quarantine; each that follows closely is twice as long as the one before.
    pub(in crate::fleet) first_quarantine: Duration,
    /// No quarantine is longer.
    pub(in crate::fleet) longest_quarantine: Duration,
}

/// A backend's health.
#[derive(Debug)]
pub(super) struct Health {
    belief: Belief,
    /// How long the latest quarantine was; zero before the first.
    last_quarantine: Duration,
    rules: Rules,
}

/// ```text
///   Starting --- a probe or an attempt succeeds ------------------------> Up
///   Starting, Up --- `failed_attempts` attempts fail in a row,
///                    or one does that is conclusive --------------------> Quarantined
///   Quarantined --- its time is up -------------------------------------> Up, on probation
///   Starting, Up, Quarantined --- `failures` probes fail in a row ------> Down
///   Down --- `successes` probes succeed in a row -----------------------> Up
/// ```
///
/// So nothing but probes leads out of `Down`, nothing but time or `Down` out of `Quarantined`, and
/// nothing back to `Starting`. A member that nobody probes begins as `Up`, and only its attempts
/// and time move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    Starting {
        bad_probes: u32,
        failed_attempts: u32,
    },
    Up {
        bad_probes: u32,
        failed_attempts: u32,
        since: Instant,
    },
    Quarantined {
        bad_probes: u32,
        until: Instant,
    },
    Down {
        good_probes: u32,
    },
}

/// A [`Health`] in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Starting,
    Up,
    Quarantined,
    Down,
}

impl Health {
    /// Of a member that is to be probed before it is trusted.
    pub(super) fn starting(rules: Rules) -> Self {
        let belief = Belief::Starting {
            bad_probes: 0,
            failed_attempts: 0,
        };
        Self::new(belief, rules)
    }

    /// Of a member that nobody probes.
    pub(super) fn unprobed(rules: Rules, now: Instant) -> Self {
        Self::new(Belief::up(now), rules)
    }

    fn new(belief: Belief, rules: Rules) -> Self {
        Self {
            belief,
            last_quarantine: Duration::ZERO,
            rules,
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.belief {
            Belief::Starting { .. } => Verdict::Starting,
            Belief::Up { .. } => Verdict::Up,
            Belief::Quarantined { .. } => Verdict::Quarantined,
            Belief::Down { .. } => Verdict::Down,
        }
    }

    /// Ends a quarantine whose time is up; whether it did. It ends on probation: the next failed
    /// attempt brings it back at once.
    pub(super) fn elapsed(&mut self, now: Instant) -> bool {
        let Belief::Quarantined { bad_probes, until } = self.belief else {
            return false;
        };
        if now < until {
            return false;
        }
        self.belief = Belief::Up {
            bad_probes,
            failed_attempts: self.rules.failed_attempts.saturating_sub(1),
            since: now,
        };
        true
    }

    pub(super) fn probe_succeeded(&mut self, now: Instant) {
        match &mut self.belief {
            Belief::Starting { .. } => self.belief = Belief::up(now),
            // A backend that answers its probes and fails its attempts is what quarantine is for.
            Belief::Up { bad_probes, .. } | Belief::Quarantined { bad_probes, .. } => {
                *bad_probes = 0;
            }
            Belief::Down { good_probes } => {
                *good_probes += 1;
                if *good_probes >= self.rules.successes {
                    self.belief = Belief::up(now);
                }
            }
        }
    }

    pub(super) fn probe_failed(&mut self) {
        match &mut self.belief {
            Belief::Starting { bad_probes, .. }
            | Belief::Up { bad_probes, .. }
            | Belief::Quarantined { bad_probes, .. } => {
                *bad_probes += 1;
                if *bad_probes >= self.rules.failures {
                    self.belief = Belief::Down { good_probes: 0 };
                }
            }
            Belief::Down { good_probes } => *good_probes = 0,
        }
    }

    pub(super) fn attempt_succeeded(&mut self, now: Instant) {
        match &mut self.belief {
            // Probes that failed so far still count: an engine may serve and ask to be left alone.
            Belief::Starting { bad_probes, .. } => {
                self.belief = Belief::Up {
                    bad_probes: *bad_probes,
                    failed_attempts: 0,
                    since: now,
                };
            }
            Belief::Up {
                failed_attempts, ..
            } => *failed_attempts = 0,
            // The answer to an attempt that began before says nothing about the next.
            Belief::Quarantined { .. } | Belief::Down { .. } => {}
        }
    }

    pub(super) fn attempt_failed(&mut self, class: FailureClass, now: Instant) {
        let (bad_probes, failed_attempts, up_since) = match &mut self.belief {
            Belief::Starting {
                bad_probes,
                failed_attempts,
            } => (*bad_probes, failed_attempts, None),
            Belief::Up {
                bad_probes,
                failed_attempts,
                since,
            } => (*bad_probes, failed_attempts, Some(*since)),
            // A backend that dies fails all its attempts at once, which is one reason and not many.
            Belief::Quarantined { .. } | Belief::Down { .. } => return,
        };
        *failed_attempts += 1;
        if *failed_attempts < self.rules.failed_attempts && !class.is_conclusive() {
            return;
        }
        let closely = up_since.is_some_and(|since| now - since < self.last_quarantine);
        let length = if closely {
            self.last_quarantine * 2
        } else {
            self.rules.first_quarantine
        };
        self.last_quarantine = length.min(self.rules.longest_quarantine);
        self.belief = Belief::Quarantined {
            bad_probes,
            until: now + self.last_quarantine,
        };
    }
}

impl Belief {
    fn up(now: Instant) -> Self {
        Self::Up {
            bad_probes: 0,
            failed_attempts: 0,
            since: now,
        }
    }
}
