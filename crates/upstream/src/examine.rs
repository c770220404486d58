//! Finding out what one backend is, and how an answer that was cut can go on there.
//!
//! Nothing is believed of a backend that it has not shown. Engines look alike and differ in what they do with an answer
//! that they are given: some begin a new one, some change its end, some tell half of its tokens, and all of them say
//! `200`. So a backend is asked for short answers, and for the rest of each; only what went on exactly counts.
//!
//! [`identify`] is cheap, one to three `GET`s, and gives an [`Identity`]. [`examine`] does the whole, in some twenty requests
//! and about [`TOKENS`] generated tokens, and gives an [`Examination`]. Verdicts are cached by
//! [`Identity::digest`]: as long as it is the same, so are they, unless the examination is not [`settled`]. What a backend
//! does not tell does not change its identity (such as the flags that vLLM was started with), so one that was away is
//! examined again. [`compare`] says whether two may take over from each other.
//!
//! Promises:
//! - Every answer is bounded in size and time, and all of them together by [`Bounds::whole`].
//! - Prompts are fixed and harmless. No evidence holds anything but what was told of these, in a few words.
//! - The backend's credential is shown, and the caller's never, because there is no caller.
//! - Nothing is logged here, and nothing decided about health: an examination that fails takes nobody out.
//!
//! Reading and judging are pure (`identity`, `judge`, `pair`); around them there is `ask`, which has the sockets, and
//! `exam`, which knows the order. What members of requests and answers are called is known to
//! `streamweld_dialect`.
//!
//! [`settled`]: Examination::settled

use std::time::Duration;

use tokio::time::Instant;

use crate::fleet::{self, Credential, Member};
use crate::{Backend, Client};

mod ask;
mod check;
mod exam;
mod examination;
mod identity;
mod judge;
mod likeness;
mod pair;
mod prompts;

pub use ask::{NotExamined, Untold};
pub use check::{Check, Finding, Probed};
pub use examination::{Examination, Ways};
pub use identity::Identity;
pub use likeness::Likeness;
pub use pair::{Pair, compare};
pub use prompts::TOKENS;

/// Who is examined, and as what.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What requests are sent with.
    pub client: &'a Client,
    /// Where it is.
    pub backend: &'a Backend,
    /// What it is shown. Where callers' credentials pass through, none.
    pub credential: &'a Credential,
    /// The engine that the operator says it is.
    pub declared: fleet::Engine,
    /// The model; by default the first that it lists.
    pub model: Option<&'a str>,
    /// How long it may take.
    pub bounds: Bounds,
}

impl<'a> Subject<'a> {
    /// One of a fleet.
    pub fn of(client: &'a Client, member: &'a Member) -> Self {
        Self {
            client,
            backend: member.backend(),
            credential: member.credential(),
            declared: member.engine(),
            model: None,
            bounds: Bounds::default(),
        }
    }
}

/// The longest that an examination may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// One answer, from its request to its end. A busy engine answers late; what it did not say in time is unknown.
    /// Default 20 s.
    pub answer: Duration,
    /// All of them. Default 2 min.
    pub whole: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(20),
            whole: Duration::from_secs(120),
        }
    }
}

/// Asks a backend which engine it is and what it serves.
///
/// # Errors
/// It did not say. That may pass; nothing is known of it then.
///
/// # Cancel safety
/// Dropping the future ends the request under way.
pub async fn identify(subject: &Subject<'_>) -> Result<Identity, NotExamined> {
    let asker = ask::Asker::new(subject, Instant::now() + subject.bounds.whole);
    identity::ask(&asker, subject.model).await
}

/// Finds out how an answer can go on at a backend that was [identified](identify). What cannot be found out is unknown,
/// and never taken for a yes.
///
/// # Cancel safety
/// Dropping the future ends the request under way.
pub async fn examine(subject: &Subject<'_>, identity: Identity) -> Examination {
    let asker = ask::Asker::new(subject, Instant::now() + subject.bounds.whole);
    let mut examination = Examination::new(identity, subject.declared);
    exam::run(&asker, &mut examination).await;
    examination
}
