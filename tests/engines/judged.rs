//! Whether an answer is whole, refused, or wrong.

use streamweld_tests::End;

use crate::answer::{Answer, Own};
use crate::round::Round;

/// What became of an answer. Anything else is a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is the uninterrupted one, and another engine went on with it, by this method.
    Moved(String),
    /// Another engine went on with it, and behind the seam it became another one.
    Another,
    /// It is the uninterrupted one; its engine was done before it went away.
    DoneBefore,
    /// These gates refused.
    Refused(Vec<String>),
}

/// What the answer has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected<'a> {
    /// The uninterrupted one.
    This(&'a Answer),
    /// The uninterrupted one up to the seam. The sums of an engine depend on how many tokens it takes at once, so that
    /// one of two words that are as good as each other may be the other one when a part of the answer is its prompt.
    Near(&'a Answer),
    /// Nobody knows, as tokens are drawn.
    Whole,
}

/// Compares with what had to come.
pub(crate) fn judge(round: &Round, expected: Expected<'_>) -> Result<Outcome, String> {
    let (shown, own) = (&round.shown, &round.own);
    if own.identities.len() > 1 {
        return wrong("its id or model changed");
    }
    if round.journaled != shown.text {
        return wrong("the journal has another text than the reader has seen");
    }
    if !shown.text.starts_with(&round.before) {
        return wrong("what had been shown changed");
    }
    if round.end == End::Proper && own.errors.is_empty() {
        complete(round, expected)
    } else {
        refused(round, own, expected)
    }
}

fn complete(round: &Round, expected: Expected<'_>) -> Result<Outcome, String> {
    let shown = &round.shown;
    if shown.ends > 1 || shown.behind > 0 || shown.finish.len() != 1 {
        return wrong("it does not end once");
    }
    match expected {
        Expected::This(whole) | Expected::Near(whole) if is_same(shown, whole) => {}
        Expected::Near(whole) if !round.moves.is_empty() => {
            let prompt = |answer: &Answer| answer.usage.first().map(|[prompt, ..]| *prompt);
            if (prompt(whole), whole.roles, &whole.shapes)
                != (prompt(shown), shown.roles, &shown.shapes)
            {
                return wrong("it is another answer, and not only its text");
            }
            return Ok(Outcome::Another);
        }
        Expected::This(_) | Expected::Near(_) => return wrong("it is another answer"),
        Expected::Whole => {}
    }
    Ok(match round.moves.last() {
        Some(method) => Outcome::Moved(method.clone()),
        None => Outcome::DoneBefore,
    })
}

/// To the last figure; but what an engine did not get to write behind the finish reason is not made up.
fn is_same(shown: &Answer, whole: &Answer) -> bool {
    if shown.ends == 1 {
        return shown == whole;
    }
    (&shown.text, &shown.finish, shown.roles) == (&whole.text, &whole.finish, whole.roles)
        && whole.usage.starts_with(&shown.usage)
}

fn refused(round: &Round, own: &Own, expected: Expected<'_>) -> Result<Outcome, String> {
    let shown = &round.shown;
    let [error] = &own.errors[..] else {
        return wrong("it does not end with one error");
    };
    if error["error"]["code"] != "migration_refused" || round.refused.is_empty() {
        return wrong("the error names no gate");
    }
    if round.end != End::Fin || shown.ends > 0 || !shown.finish.is_empty() {
        return wrong("it is refused, and looks complete");
    }
    if matches!(expected, Expected::This(whole) if !whole.text.starts_with(&shown.text)) {
        return wrong("it is refused, and its text is another");
    }
    let gates = round.refused.iter().map(|(gate, _)| gate.clone());
    Ok(Outcome::Refused(gates.collect()))
}

fn wrong<T>(what: &str) -> Result<T, String> {
    Err(what.to_owned())
}
