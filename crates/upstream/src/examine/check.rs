//! What was looked at, what it showed, and what to do about it.

use std::fmt;

use super::Untold;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What: a stable name.
    pub name: &'static str,
    /// How it is.
    pub finding: Finding,
    /// What shows it, for people.
    pub evidence: String,
    /// What to do, where there is something to do.
    pub remedy: Option<&'static str>,
}

/// How something that was looked at is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// As it has to be.
    Ok,
    /// Not as it has to be.
    Problem,
    /// It was not found out.
    Unknown,
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probed {
    /// It is so.
    Yes,
    /// It is not.
    No,
    /// It was not found out.
    Unknown,
}

impl Finding {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::Unknown => "unknown",
        }
    }
}

impl Probed {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }

    /// Both, as far as is known: one no is enough.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }
}

impl From<Finding> for Probed {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Ok => Self::Yes,
            Finding::Problem => Self::No,
            Finding::Unknown => Self::Unknown,
        }
    }
}

/// What something showed, before it is given a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) finding: Finding,
    pub(super) evidence: String,
    /// It may be another way soon.
    pub(super) passing: bool,
    /// What to do, where that depends on what it showed.
    remedy: Option<&'static str>,
}

impl Judged {
    pub(super) fn ok(evidence: impl fmt::Display) -> Self {
        Self::new(Finding::Ok, evidence)
    }

    pub(super) fn problem(evidence: impl fmt::Display) -> Self {
        Self::new(Finding::Problem, evidence)
    }

    pub(super) fn unknown(evidence: impl fmt::Display) -> Self {
        Self::new(Finding::Unknown, evidence)
    }

    /// Where an answer was asked for: a refusal is a no.
    pub(super) fn refused(untold: &Untold) -> Self {
        let finding = match untold {
            Untold::Absent(..) | Untold::Refused(..) => Finding::Problem,
            Untold::Unreachable(_)
            | Untold::TooLate
            | Untold::TooLarge
            | Untold::Cut
            | Untold::Denied(_)
            | Untold::Busy(_)
            | Untold::NotUnderstood => Finding::Unknown,
        };
        Self {
            passing: untold.may_pass(),
            remedy: match untold {
                Untold::Absent(..) => Some(ABSENT),
                untold => remedy(untold),
            },
            ..Self::new(finding, untold)
        }
    }

    /// Where something was asked for that an engine need not have.
    pub(super) fn untold(untold: &Untold) -> Self {
        Self {
            passing: untold.may_pass(),
            remedy: remedy(untold),
            ..Self::unknown(untold)
        }
    }

    /// With something else to do than is usual for what was looked at.
    pub(super) fn mended_by(self, remedy: &'static str) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }

    /// Gives it a name, and what to do about it as a rule.
    pub(super) fn into_check(self, name: &'static str, remedy: &'static str) -> Check {
        let remedy = self.remedy.unwrap_or(remedy);
        Check {
            name,
            remedy: (self.finding != Finding::Ok).then_some(remedy),
            finding: self.finding,
            evidence: self.evidence,
        }
    }

    fn new(finding: Finding, evidence: impl fmt::Display) -> Self {
        Self {
            finding,
            evidence: evidence.to_string(),
            passing: false,
            remedy: None,
        }
    }
}

/// What to do where nothing was said about what was asked.
fn remedy(untold: &Untold) -> Option<&'static str> {
    match untold {
        Untold::Denied(_) => Some(DENIED),
        _ if untold.may_pass() => Some(PASSING),
        _ => None,
    }
}

const DENIED: &str = "give it the key that it wants: here by --credential-file, of a backend by its option credential-file";
const PASSING: &str = "look again when it answers";
const ABSENT: &str = "nothing, where nobody asks this of it; else let the path through to here";

/// A few words of a text, so that evidence stays short and on one line.
pub(super) fn brief(text: &str) -> String {
    const MOST: usize = 48;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_no_is_enough_and_one_unknown_is_no_yes() {
        use Probed::{No, Unknown, Yes};
        for (one, other, both) in [
            (Yes, Yes, Yes),
            (Yes, No, No),
            (Unknown, No, No),
            (Yes, Unknown, Unknown),
            (Unknown, Unknown, Unknown),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
    }

    #[test]
    fn what_to_do_fits_what_it_showed() {
        let remedy = |judged: Judged| judged.into_check("it", "as a rule").remedy;
        assert_eq!(remedy(Judged::ok("well")), None);
        assert_eq!(remedy(Judged::problem("not well")), Some("as a rule"));
        assert_eq!(remedy(Judged::untold(&Untold::TooLate)), Some(PASSING));
        assert_eq!(remedy(Judged::refused(&Untold::Busy(503))), Some(PASSING));
        assert_eq!(remedy(Judged::refused(&Untold::Denied(401))), Some(DENIED));
        let absent = Untold::Absent(404, "/tokenize");
        assert_eq!(remedy(Judged::refused(&absent)), Some(ABSENT));
        assert_eq!(remedy(Judged::untold(&absent)), Some("as a rule"));
        let mended = Judged::unknown("not well").mended_by("otherwise");
        assert_eq!(remedy(mended), Some("otherwise"));
    }

    #[test]
    fn evidence_is_short_and_on_one_line() {
        assert_eq!(brief("a\n潮"), r#""a\n潮""#);
        let long = brief(&"潮".repeat(1000));
        assert_eq!(long.chars().count(), 51);
    }
}
