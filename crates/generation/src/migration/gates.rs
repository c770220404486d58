//! The gates: each one reason for which an answer must not be continued elsewhere.
//!
//! All are looked at, whatever the first says: an operator who opens one wants to know of the others. Where a gate
//! cannot know it is closed.

mod names;

use std::fmt::Display;

use streamweld_dialect::{Asked, Dialect, FailureClass, Hazard, Method};

pub use self::names::Gate;
use super::cut::{Cut, NoCut};
use super::{Count, JournalState, Kept, Policy, Probed, Snapshot, Target, Trigger};

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which.
    pub gate: Gate,
    /// What it saw, when it refuses: for somebody who has never seen this code. Never text of an answer or a prompt.
    pub refusal: Option<String>,
}

impl Verdict {
    /// It lets pass.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.refusal.is_none()
    }
}

/// What every gate says, in the order of [`Gate::ALL`].
#[must_use]
pub fn evaluate(snapshot: &Snapshot<'_>) -> Vec<Verdict> {
    let verdict = |gate| Verdict {
        gate,
        refusal: refusal(gate, snapshot),
    };
    Gate::ALL.into_iter().map(verdict).collect()
}

/// The most exact way to go on that policy, answer and target have in common.
#[must_use]
pub fn method(snapshot: &Snapshot<'_>) -> Option<Method> {
    let can = |method| {
        let target = snapshot.target.as_ref();
        target.is_some_and(|target| target.methods.contains(&method))
    };
    if snapshot.answer.ids && can(Method::TokenIds) {
        return Some(Method::TokenIds);
    }
    (snapshot.policy == Policy::Prefill && can(Method::Prefill)).then_some(Method::Prefill)
}

fn refusal(gate: Gate, snapshot: &Snapshot<'_>) -> Option<String> {
    match gate {
        Gate::StopRequested => no_stop(snapshot),
        Gate::Policy => policy(snapshot),
        Gate::FailureClass => failure_class(snapshot),
        Gate::Attempts => attempts(snapshot),
        Gate::Duration => duration(snapshot),
        Gate::JournalComplete => journal_complete(snapshot),
        Gate::RequestTooLarge => request_kept(snapshot),
        Gate::Dialect => dialect(snapshot),
        Gate::RequestShape => request_shape(snapshot),
        Gate::ToolCall => tool_call(snapshot),
        Gate::StructuredOutput => structured_output(snapshot),
        Gate::Reasoning => reasoning(snapshot),
        Gate::StopSequence => stop_sequence(snapshot),
        Gate::Tokens => tokens(snapshot),
        Gate::BackendAvailable => backend_available(snapshot),
        Gate::Compatibility => of_target(snapshot, compatibility),
        Gate::Credential => of_target(snapshot, credential),
        Gate::Template => of_target(snapshot, template),
        Gate::Seam => seam(snapshot),
    }
}

fn no_stop(snapshot: &Snapshot<'_>) -> Option<String> {
    refuse_if(snapshot.stop_requested, "it was told to stop")
}

fn policy(snapshot: &Snapshot<'_>) -> Option<String> {
    refuse_if(
        snapshot.policy == Policy::Off,
        "migration is off for this route; it is allowed by its `migration` setting",
    )
}

fn failure_class(snapshot: &Snapshot<'_>) -> Option<String> {
    let Trigger::Failed { class, permanent } = snapshot.trigger else {
        return refuse_if(snapshot.answer.finished, FINISHED);
    };
    if permanent {
        return Some(
            "the backend refused the request itself, and another one would too".to_owned(),
        );
    }
    match class {
        FailureClass::Aborted
        | FailureClass::UpstreamError
        | FailureClass::Truncated
        | FailureClass::Stalled => refuse_if(snapshot.answer.finished, FINISHED),
        FailureClass::InvalidUtf8 | FailureClass::EventTooLarge | FailureClass::EncodingError => {
            Some(format!(
                "the attempt failed as {class}, which the same answer would do elsewhere"
            ))
        }
    }
}

const FINISHED: &str =
    "a part of the answer had come to its end already, so nobody knows what is missing";

fn attempts(snapshot: &Snapshot<'_>) -> Option<String> {
    let budget = snapshot.migrations;
    refuse_if(
        budget.used >= budget.of,
        format_args!(
            "it has moved {} times, and may {} times",
            budget.used, budget.of
        ),
    )
}

fn duration(snapshot: &Snapshot<'_>) -> Option<String> {
    let budget = snapshot.duration;
    refuse_if(
        budget.used >= budget.of,
        format_args!(
            "it has run for {} s, and may for {} s",
            budget.used.as_secs(),
            budget.of.as_secs()
        ),
    )
}

fn journal_complete(snapshot: &Snapshot<'_>) -> Option<String> {
    match snapshot.journal {
        JournalState::Complete => None,
        JournalState::Behind => {
            Some("the journal has not taken all that was shown, and may yet".to_owned())
        }
        JournalState::Incomplete => {
            Some("the journal has lost a part of the answer for good".to_owned())
        }
    }
}

fn request_kept(snapshot: &Snapshot<'_>) -> Option<String> {
    refuse_if(
        snapshot.request == Kept::TooLarge,
        "the body of the request was not kept: it is longer than `max-kept-body`, or the bodies of others fill half of `journal-total`; raise the one or the other",
    )
}

fn dialect(snapshot: &Snapshot<'_>) -> Option<String> {
    match snapshot.dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::AnthropicMessages => None,
        other => Some(format!(
            "answers of the dialect {other} cannot be continued"
        )),
    }
}

fn request_shape(snapshot: &Snapshot<'_>) -> Option<String> {
    let asked = match snapshot.asked {
        Ok(asked) => asked,
        Err(_) if snapshot.request == Kept::TooLarge => return None,
        Err(error) => return Some(error.to_string()),
    };
    if !asked.unknown.is_empty() {
        let names: Vec<&str> = asked.unknown.iter().map(String::as_str).collect();
        return Some(format!(
            "nobody knows here what these members of the request do: {}",
            names.join(", ")
        ));
    }
    let lost: Vec<&str> = asked
        .hazards
        .iter()
        .filter(|hazard| is_shape(**hazard, asked))
        .map(|hazard| hazard.as_str())
        .collect();
    if !lost.is_empty() {
        return Some(format!(
            "the request asks for what a second backend cannot carry on: {}",
            lost.join(", ")
        ));
    }
    if snapshot.answer.others {
        return Some("the answer has a part that is more than text".to_owned());
    }
    let parts = match snapshot.dialect {
        Dialect::AnthropicMessages => "blocks",
        _ => "choices",
    };
    refuse_if(
        snapshot.answer.choices > 1,
        format_args!("the answer has {} {parts}", snapshot.answer.choices),
    )
}

/// Whether a hazard belongs to no gate of its own.
fn is_shape(hazard: Hazard, asked: &Asked) -> bool {
    match hazard {
        // Nothing is drawn.
        Hazard::Seed => !asked.greedy,
        Hazard::Choices
        | Hazard::Penalties
        | Hazard::Logprobs
        | Hazard::Echo
        | Hazard::Media
        | Hazard::Truncation
        | Hazard::Prefilled
        | Hazard::EngineState => true,
        Hazard::Tools
        | Hazard::ServerTools
        | Hazard::StructuredOutput
        | Hazard::StopSequence
        | Hazard::Reasoning => false,
    }
}

fn tool_call(snapshot: &Snapshot<'_>) -> Option<String> {
    if snapshot.answer.tool_calls {
        return Some("a call of a tool had begun".to_owned());
    }
    asks(
        snapshot,
        Hazard::ServerTools,
        "the request has tools that the server runs",
    )
    .or_else(|| {
        asks(
            snapshot,
            Hazard::Tools,
            "the request has tools that may be called",
        )
    })
}

fn structured_output(snapshot: &Snapshot<'_>) -> Option<String> {
    asks(
        snapshot,
        Hazard::StructuredOutput,
        "the request asks for a format, whose grammar would begin anew",
    )
}

fn reasoning(snapshot: &Snapshot<'_>) -> Option<String> {
    if snapshot.answer.reasoning {
        return Some("reasoning was shown, which a second backend would not know".to_owned());
    }
    asks(
        snapshot,
        Hazard::Reasoning,
        "the request says how to reason",
    )
}

fn stop_sequence(snapshot: &Snapshot<'_>) -> Option<String> {
    asks(
        snapshot,
        Hazard::StopSequence,
        "the request names text that ends the answer, and some of it may have been held back",
    )
}

fn tokens(snapshot: &Snapshot<'_>) -> Option<String> {
    if snapshot.request == Kept::TooLarge {
        return None;
    }
    let Ok(asked) = snapshot.asked else {
        return Some("the limits of the request are not known".to_owned());
    };
    let is_limited = asked.max_tokens.is_some() || asked.min_tokens.is_some();
    let answer = &snapshot.answer;
    // What has to come again is counted again.
    let given = match (method(snapshot), answer.kept) {
        // Then nothing has to come again.
        _ if joint(snapshot) == Some(Joint::Alike) => answer.tokens,
        (Some(Method::Prefill), Some(kept)) => Count::Exact(kept),
        // The seam refuses; there is nothing to count up to.
        (Some(Method::Prefill), None) if joint(snapshot).is_none() => return None,
        // How many tokens a message has is told by whoever is given it.
        (None, _) if snapshot.dialect == Dialect::AnthropicMessages => return None,
        (Some(Method::Prefill), None) => Count::AtLeast(0),
        (Some(Method::TokenIds) | None, _) => answer.tokens,
    };
    let shown = match given {
        Count::Exact(count) => count,
        Count::AtLeast(_) if is_limited => {
            let why = answer.uncounted.map(|why| format!(": {why}"));
            return Some(format!(
                "the request limits its tokens, and those that were shown cannot be counted exactly{}",
                why.unwrap_or_default()
            ));
        }
        Count::AtLeast(count) => count,
    };
    if asked.max_tokens.is_some_and(|most| shown >= most) {
        return Some("all the tokens that the request allows were shown".to_owned());
    }
    let target = snapshot.target.as_ref();
    let (Some(context), Some(prompt)) = (
        target.and_then(|target| target.context),
        snapshot.answer.prompt_tokens,
    ) else {
        return None;
    };
    refuse_if(
        prompt.saturating_add(shown) >= context,
        format_args!("prompt and answer fill the {context} tokens that the next backend has"),
    )
}

fn backend_available(snapshot: &Snapshot<'_>) -> Option<String> {
    refuse_if(snapshot.target.is_none(), "no backend is free to go on")
}

/// What depends on who goes on. Without anybody that is what is told, once.
fn of_target(
    snapshot: &Snapshot<'_>,
    gate: fn(&Snapshot<'_>, &Target<'_>) -> Option<String>,
) -> Option<String> {
    gate(snapshot, snapshot.target.as_ref()?)
}

fn compatibility(snapshot: &Snapshot<'_>, target: &Target<'_>) -> Option<String> {
    let name = target.name;
    if target.engine.is_none() {
        return Some(format!(
            "nobody knows which engine {name} is: declare it by `engine=`, and let it show that it is, or vouch for its group"
        ));
    }
    match (snapshot.group, target.group) {
        (Some(group), Some(other)) if group == other => {}
        _ => {
            return Some(format!(
                "{name} is not in the compatibility group of the backend that is left"
            ));
        }
    }
    match target.same_model {
        Probed::Yes => None,
        Probed::No => Some(format!(
            "{name} is another model, or renders or tokenises otherwise"
        )),
        Probed::Unknown => Some(format!(
            "whether {name} has the same model was not found out"
        )),
    }
}

fn credential(_: &Snapshot<'_>, target: &Target<'_>) -> Option<String> {
    refuse_if(
        !target.has_credential,
        format_args!(
            "{} is shown the caller's credential, which is not known here: the caller has shown none, or it is not kept for other replicas \
             (`--keep-credentials`); it can be given one of its own by `credential-file`",
            target.name
        ),
    )
}

fn template(snapshot: &Snapshot<'_>, target: &Target<'_>) -> Option<String> {
    // Ids pass no template, and tokens that are the same show that it changes nothing.
    if method(snapshot) == Some(Method::TokenIds) || joint(snapshot) == Some(Joint::Alike) {
        return None;
    }
    match target.keeps_prefix {
        Probed::Yes => None,
        Probed::No => Some(format!(
            "the template of {} changes the end of an unfinished answer; `streamweld doctor` shows how",
            target.name
        )),
        Probed::Unknown => Some(format!(
            "what the template of {} makes of an unfinished answer was not found out; `streamweld doctor` shows why",
            target.name
        )),
    }
}

fn seam(snapshot: &Snapshot<'_>) -> Option<String> {
    let target = snapshot.target.as_ref()?;
    match method(snapshot) {
        Some(Method::TokenIds) => None,
        Some(Method::Prefill) => match joint(snapshot) {
            Some(_) => None,
            None => Some(no_joint(snapshot, target)),
        },
        None if snapshot.policy == Policy::Prefill => Some(format!(
            "{} cannot be told to go on with an answer",
            target.name
        )),
        None if snapshot.answer.ids => Some(format!(
            "{} takes no token ids, and prefill is not allowed",
            target.name
        )),
        None => {
            Some("the ids of the tokens are not all known, and prefill is not allowed".to_owned())
        }
    }
}

/// How two parts are joined by prefill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// The last word has to come again.
    Again,
    /// Nothing has to, for the text is cut into the tokens that were generated.
    Alike,
}

/// How the parts of an answer can be joined by prefill. What comes again is looked at when it comes; so that is preferred.
#[must_use]
pub fn joint(snapshot: &Snapshot<'_>) -> Option<Joint> {
    if method(snapshot) != Some(Method::Prefill) {
        return None;
    }
    let is_greedy = snapshot.asked.is_ok_and(|asked| asked.greedy);
    if is_greedy && cut(snapshot).is_ok() {
        return Some(Joint::Again);
    }
    let alike = snapshot.target.as_ref()?.cut_alike == Probed::Yes;
    alike.then_some(Joint::Alike)
}

fn no_joint(snapshot: &Snapshot<'_>, target: &Target<'_>) -> String {
    let is_greedy = snapshot.asked.is_ok_and(|asked| asked.greedy);
    let why = match cut(snapshot) {
        _ if !is_greedy => {
            "the request lets tokens be drawn at random, so that what has to come again would be another".to_owned()
        }
        Ok(_) => String::new(),
        Err(no) => no.to_string(),
    };
    let name = target.name;
    match target.cut_alike {
        Probed::No => {
            format!("{why}; and {name} cuts the answer into other tokens than were generated")
        }
        Probed::Yes | Probed::Unknown => {
            format!(
                "{why}; and whether {name} cuts the answer into the tokens that were generated was not found out"
            )
        }
    }
}

fn cut<'a>(snapshot: &Snapshot<'a>) -> Result<Cut<'a>, NoCut> {
    Cut::of(snapshot.dialect, snapshot.answer.text)
}

fn asks(snapshot: &Snapshot<'_>, hazard: Hazard, refusal: &str) -> Option<String> {
    let asked = snapshot.asked.ok()?;
    refuse_if(asked.hazards.contains(&hazard), refusal)
}

fn refuse_if(closed: bool, refusal: impl Display) -> Option<String> {
    closed.then(|| refusal.to_string())
}

#[cfg(test)]
mod tests;
