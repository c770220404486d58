//! What has to hold of everything that readers were shown.

mod canon;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use canon::Canon;

use crate::clock::Moment;
use crate::process::TEXT;
use crate::reader::{Cursor, End, Generation, History, Shown};
use crate::redis::Lost;

/// A reader, of which generation, and whether it is one of those that read everything at the end.
pub struct Seen {
    /// Which.
    pub generation: Generation,
    /// What it was shown.
    pub history: Arc<Mutex<History>>,
    /// It came after everything.
    pub is_audit: bool,
}

/// Redis lost something.
pub struct Loss {
    /// When.
    pub at: Moment,
    /// What.
    pub lost: Lost,
}

/// What is known not to hold, as docs/ownership.md has it. Each is as narrow as can be said, and is taken out with the
/// sentence there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// "A stop that was answered can end otherwise", and so can any end that was told: Redis lost the end of this very
    /// log.
    EndWasLost,
}

/// What does not hold.
pub fn judge(seen: &[Seen], losses: &[Loss], stopped: &Option<(usize, String)>) -> Vec<String> {
    let mut groups: BTreeMap<usize, Vec<&Seen>> = BTreeMap::new();
    for seen in seen {
        groups.entry(seen.generation.number).or_default().push(seen);
    }
    let mut violations = Vec::new();
    for (number, group) in groups {
        let id = group[0].generation.id();
        let stop = stopped.as_ref().filter(|(stopped, _)| *stopped == number);
        let mut case = Case::new(number, id.as_deref(), losses);
        case.judge(&group, stop.map(|(_, kind)| &**kind));
        violations.append(&mut case.violations);
    }
    violations
}

/// One generation.
struct Case {
    number: usize,
    /// When Redis lost anything of it for the last time.
    lost: Option<Moment>,
    known: Vec<Known>,
    violations: Vec<String>,
}

impl Case {
    fn new(number: usize, id: Option<&str>, losses: &[Loss]) -> Self {
        let is_of = |key: &bytes::Bytes| {
            let id = id.map(|id| format!("{{{id}}}"));
            id.is_some_and(|id| String::from_utf8_lossy(key).contains(&id))
        };
        let mut known = Vec::new();
        if losses.iter().any(|loss| loss.lost.ends.iter().any(is_of)) {
            known.push(Known::EndWasLost);
        }
        let lost = losses
            .iter()
            .filter(|loss| loss.lost.keys.iter().any(is_of));
        Self {
            number,
            lost: lost.map(|loss| loss.at).max(),
            known,
            violations: Vec::new(),
        }
    }

    fn wrong(&mut self, who: &str, what: impl std::fmt::Display) {
        self.violations
            .push(format!("answer {}, {who}: {what}", self.number));
    }

    fn is_known(&self, known: Known) -> bool {
        self.known.contains(&known)
    }

    fn judge(&mut self, group: &[&Seen], stopped: Option<&str>) {
        let guards: Vec<_> = group
            .iter()
            .map(|seen| {
                (
                    seen.is_audit,
                    seen.history.lock().unwrap_or_else(PoisonError::into_inner),
                )
            })
            .collect();
        let histories: Vec<(bool, &History)> = guards
            .iter()
            .map(|(audit, history)| (*audit, &**history))
            .collect();
        for (_, history) in &histories {
            for what in &history.wrong {
                self.wrong(&history.name, what);
            }
            if history.end.is_none() {
                self.wrong(&history.name, "has no end long after everything is well");
            }
        }
        self.cursors_name_one_entry(&histories);
        let Some(canon) = self.canon(&histories) else {
            return;
        };
        for (is_audit, history) in &histories {
            if !is_audit {
                self.reader(history, &canon);
            }
        }
        if let Some(told) = stopped {
            if canon.kind != told && !self.is_known(Known::EndWasLost) {
                self.wrong(
                    "stop",
                    format_args!("{told} was told, and the end is {}", canon.kind),
                );
            }
        }
    }

    /// No content changes under an id, whoever is shown it.
    fn cursors_name_one_entry(&mut self, histories: &[(bool, &History)]) {
        if self.is_known(Known::EndWasLost) {
            return;
        }
        // The end looks different to those who see control events.
        let mut entries: BTreeMap<(bool, Cursor), (&str, &Shown)> = BTreeMap::new();
        for (_, history) in histories {
            for shown in &history.shown {
                let Some(cursor) = shown.cursor else {
                    continue;
                };
                let key = (history.control, cursor);
                let (other, before) = *entries.entry(key).or_insert((&history.name, shown));
                if before.block != shown.block {
                    let what = format!(
                        "{cursor:?} is {:?}, and to {other} {:?}",
                        shown.block, before.block
                    );
                    self.wrong(&history.name, what);
                }
            }
        }
    }

    /// The log, which is the same at every replica.
    fn canon(&mut self, histories: &[(bool, &History)]) -> Option<Canon> {
        let mut found: Option<(&str, Canon)> = None;
        for (_, audit) in histories.iter().filter(|(is_audit, _)| *is_audit) {
            let canon = match Canon::read(audit) {
                Ok(canon) => canon,
                // Redis has lost all of it, or a part for good.
                Err(_)
                    if self.lost.is_some()
                        && matches!(audit.end, Some((_, End::Refused(404 | 410, _)))) =>
                {
                    continue;
                }
                Err(what) => {
                    self.wrong(&audit.name, what);
                    continue;
                }
            };
            if canon.kind == "done" && canon.text != TEXT {
                self.wrong(
                    &audit.name,
                    format_args!("done, and not whole: {:?}", canon.text),
                );
            }
            match &found {
                Some((other, first)) if *first != canon => {
                    let what = format!("reads another log than {other}");
                    self.wrong(&audit.name, what);
                }
                Some(_) => {}
                None => found = Some((&audit.name, canon)),
            }
        }
        found.map(|(_, canon)| canon)
    }

    fn reader(&mut self, history: &History, canon: &Canon) {
        let Some((at, end)) = &history.end else {
            return;
        };
        if matches!(end, End::Degraded) {
            return self.degraded(history);
        }
        let is_before_loss = self.lost.is_some_and(|lost| *at <= lost);
        let has_lost = self.lost.is_some();
        match end {
            End::Refused(status, code) => {
                // A cursor of what was lost is told so.
                let is_honest = has_lost && matches!(status, 404 | 409 | 410);
                if !is_honest {
                    self.wrong(&history.name, format_args!("is refused: {status} {code}"));
                }
                return;
            }
            End::Done if canon.kind != "stopped" => {
                self.is_whole(history);
            }
            _ => {}
        }
        if is_before_loss {
            return;
        }
        if history.ends_unsequenced() {
            // What the journal has not taken is no part of the generation, should another go on with it.
            if let Err(what) = canon.holds_sequenced(history) {
                self.wrong(&history.name, what);
            }
            return;
        }
        if !self.is_known(Known::EndWasLost) && !canon.ends_as(history, end) {
            self.wrong(
                &history.name,
                format_args!("ends with {end:?}, and the log with {}", canon.kind),
            );
        }
        let holds = match end {
            End::Left if has_lost => canon.holds_before_loss(history),
            end => canon.holds(history, *end != End::Left),
        };
        if let Err(what) = holds {
            self.wrong(&history.name, what);
        }
    }

    /// It has no ids. A success is whole all the same.
    fn degraded(&mut self, history: &History) {
        if history.said_end() == Some(End::Done) {
            self.is_whole(history);
        }
    }

    fn is_whole(&mut self, history: &History) {
        let text = history.text();
        if text != TEXT {
            self.wrong(&history.name, format_args!("done, and not whole: {text:?}"));
        }
    }
}
