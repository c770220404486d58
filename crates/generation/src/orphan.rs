//! What happens to a generation when its last reader has left.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The orphan policy of a generation (protocol.md 8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// The producer goes on to the end. The default: a reader that lost its network comes back.
    #[default]
    Continue,
    /// The producer is cancelled when no reader has come back within this time.
    CancelAfter(Duration),
    /// The producer is cancelled at once.
    Cancel,
}

/// The text is none of `continue`, `cancel` and `cancel_after=<duration>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an orphan policy is `continue`, `cancel` or `cancel_after=<duration>` such as `cancel_after=60s`"
)]
pub struct ParseOrphanPolicyError;

impl FromStr for OrphanPolicy {
    type Err = ParseOrphanPolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "continue" => Ok(Self::Continue),
            "cancel" => Ok(Self::Cancel),
            _ => text
                .strip_prefix("cancel_after=")
                .and_then(|after| humantime::parse_duration(after).ok())
                .map(Self::CancelAfter)
                .ok_or(ParseOrphanPolicyError),
        }
    }
}

impl fmt::Display for OrphanPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue => f.write_str("continue"),
            Self::Cancel => f.write_str("cancel"),
            Self::CancelAfter(after) => {
                write!(f, "cancel_after={}", humantime::format_duration(*after))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<OrphanPolicy>) {
        assert_eq!(text.parse().ok(), expected, "{text:?}");
    }

    #[test]
    fn the_three_policies_are_read() {
        check("continue", Some(OrphanPolicy::Continue));
        check("cancel", Some(OrphanPolicy::Cancel));
        check(
            "cancel_after=60s",
            Some(OrphanPolicy::CancelAfter(Duration::from_secs(60))),
        );
        check(
            "cancel_after=1m 30s",
            Some(OrphanPolicy::CancelAfter(Duration::from_secs(90))),
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "Continue",
            "stop",
            "cancel_after",
            "cancel_after=",
            "cancel_after=-1s",
            "cancel_after=60",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn display_is_what_parse_reads() {
        for policy in [
            OrphanPolicy::Continue,
            OrphanPolicy::Cancel,
            OrphanPolicy::CancelAfter(Duration::from_millis(1500)),
        ] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }
}
