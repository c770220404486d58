//! Everything that the gates look at, as it is at one moment.

use std::time::Duration;

use streamweld_dialect::{Asked, Dialect, Engine, FailureClass, Method, Unreadable};

/// One generation whose attempt is to be replaced, and what could replace it.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// Why it is to be replaced.
    pub trigger: Trigger,
    /// What the operator allows on its route.
    pub policy: Policy,
    /// The dialect of its answer.
    pub dialect: Dialect,
    /// Whether somebody has called stop.
    pub stop_requested: bool,
    /// What the journal has of it.
    pub journal: JournalState,
    /// How long it has run, and may.
    pub duration: Budget<Duration>,
    /// How often it has moved, and may.
    pub migrations: Budget<u32>,
    /// The body of its request.
    pub request: Kept,
    /// What that asks for.
    pub asked: Result<&'a Asked, Unreadable>,
    /// What has been shown.
    pub answer: Answer<'a>,
    /// Who would go on, if there is anybody.
    pub target: Option<Target<'a>>,
    /// The compatibility group of the backend that is left.
    pub group: Option<&'a str>,
}

/// Why an attempt is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It failed by itself.
    Failed {
        /// As what.
        class: FailureClass,
        /// Upstream said that the same request would fail again: an error of the kind 4xx.
        permanent: bool,
    },
    /// Its backend fails its probes, and nothing has come for as long.
    Unhealthy,
    /// An operator drains its backend.
    Drain,
    /// An operator moves it.
    Operator,
    /// The replica that runs it leaves, and this one goes on with it.
    HandOver,
    /// The replica that ran it is gone, and this one goes on with it.
    OwnerLost,
}

impl Trigger {
    /// The word in entries, logs and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed { class, .. } => class.as_str(),
            Self::Unhealthy => "unhealthy",
            Self::Drain => "drain",
            Self::Operator => "operator",
            Self::HandOver => "hand_over",
            Self::OwnerLost => "owner_lost",
        }
    }
}

/// What may be done when an attempt fails after something of its answer was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It ends.
    Off,
    /// It goes on elsewhere by token ids alone, which is exact by construction.
    Exact,
    /// By prefill as well.
    Prefill,
}

impl Policy {
    /// The word in settings, states and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exact => "exact",
            Self::Prefill => "prefill",
        }
    }
}

/// What the journal has of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalState {
    /// All that was shown.
    Complete,
    /// Not what was shown last; it may take it yet.
    Behind,
    /// Something is lost for good.
    Incomplete,
}

/// How much of something is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget<T> {
    /// So much.
    pub used: T,
    /// Of so much.
    pub of: T,
}

/// What there is of the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of it.
    Whole,
    /// It was longer than what is kept.
    TooLarge,
}

/// The answer so far.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its text.
    pub text: &'a str,
    /// Choices, or blocks of a message, that were begun.
    pub choices: usize,
    /// A part of it has come to its end already, and nobody knows what would have followed.
    pub finished: bool,
    /// It has something that is neither text, nor reasoning, nor a call.
    pub others: bool,
    /// A call of a tool was begun.
    pub tool_calls: bool,
    /// Reasoning was shown.
    pub reasoning: bool,
    /// Tokens of it.
    pub tokens: Count,
    /// How many of them a backend is given that goes on by prefill, where that can be told.
    pub kept: Option<u64>,
    /// Why that is not told, where somebody was asked.
    pub uncounted: Option<NoCount>,
    /// Tokens of its prompt.
    pub prompt_tokens: Option<u64>,
    /// Whether every token of prompt and answer is known by its id, and they agree with what upstream counted.
    pub ids: bool,
}

/// Why nobody can say how many tokens a part of an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCount {
    /// There is nothing to compare with.
    #[error("the answer did not say how many tokens its prompt has")]
    NoPrompt,
    /// It does not say that.
    #[error("the next backend does not say how many they are")]
    Untold,
    /// There was no answer, or not in time; there may be one soon.
    #[error("the next backend could not be asked how many they are")]
    Unheard,
    /// The same prompt is another number of tokens there.
    #[error("the next backend counts the prompt otherwise than it was counted")]
    Otherwise,
}

/// A number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As upstream counted, up to the last event.
    Exact(u64),
    /// At least so many.
    AtLeast(u64),
}

/// Who would go on.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says it is, where it was asked.
    pub engine: Option<Engine>,
    /// Its compatibility group.
    pub group: Option<&'a str>,
    /// Whether the same question is rendered to the same prompt there, and cut into the same tokens, as on the backend
    /// that is left.
    pub same_model: Probed,
    /// Whether its template leaves the end of an unfinished answer alone.
    pub keeps_prefix: Probed,
    /// Whether it cuts prompt and answer into the very tokens that were generated, so that nothing has to come again.
    pub cut_alike: Probed,
    /// How it can be told to go on.
    pub methods: &'a [Method],
    /// The longest prompt with its answer.
    pub context: Option<u64>,
    /// Whether there is a credential for it: the proxy's own, or the caller's, kept.
    pub has_credential: bool,
}

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// It is so.
    Yes,
    /// It is not.
    No,
    /// Nobody has asked, or there was no answer.
    Unknown,
}
