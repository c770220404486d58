//! What the gates of a migration say, as operators see it (protocol.md 12.1).

use serde::Serialize;
use streamweld_dialect::Method;
use streamweld_generation::migration::Judged;
use streamweld_generation::migration::gates::Verdict;

/// What one gate says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct GateState {
    gate: &'static str,
    open: bool,
    /// What it saw, where it refuses.
    message: Option<String>,
}

impl GateState {
    /// What all of them say.
    pub(crate) fn all(judged: &Judged) -> Vec<Self> {
        judged.verdicts.iter().map(Self::of).collect()
    }

    /// What those say that refuse.
    pub(crate) fn refusing(judged: &Judged) -> Vec<Self> {
        let refusing = judged.verdicts.iter().filter(|verdict| !verdict.is_open());
        refusing.map(Self::of).collect()
    }

    fn of(verdict: &Verdict) -> Self {
        Self {
            gate: verdict.gate.as_str(),
            open: verdict.is_open(),
            message: verdict.refusal.clone(),
        }
    }
}

/// The word for how a backend is told where an answer is. Without one nothing had been said yet.
pub(crate) fn method(method: Option<Method>) -> &'static str {
    match method {
        Some(Method::TokenIds) => "token_ids",
        Some(Method::Prefill) => "prefill",
        None => "restart",
    }
}
