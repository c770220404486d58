//! Who could go on: the seam between a producer and whoever knows the backends.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_dialect::{Engine, Method, Question};

use super::Probed;
use crate::leg::Leg;

/// The backends as one generation may use them.
pub trait Backends<S>: Send + Sync {
    /// Takes a place at a backend for an attempt that goes on with the answer of `from`: within its compatibility group, or
    /// anywhere where nothing was said yet. Never at `from` itself, nor at one of `failed`.
    fn pick(&self, from: &Leg, within: Within, failed: &[u64]) -> Option<Box<dyn Candidate<S>>>;

    /// Whether the backend of an attempt is being drained.
    fn is_drained(&self, leg: &Leg) -> bool;

    /// Resolves when a pick may have become possible.
    fn changed(&self) -> Later<()>;

    /// The body of the app's request, where all of it was kept.
    fn request(&self) -> Option<Bytes>;

    /// Nobody will ask for the request any more.
    fn forget_request(&self);

    /// How often and how long is tried.
    fn bounds(&self) -> Bounds;
}

/// A place at a backend, held until this is dropped.
pub trait Candidate<S>: Send + Sync {
    /// What is known of it.
    fn facts(&self) -> Facts;

    /// The attempt as it would be, with what is added to its request.
    fn leg(&self, added: Option<streamweld_dialect::Added>) -> Leg;

    /// Asks it something that costs it nothing. `None`: there was no answer that can be used.
    fn inquire(&self, question: Question) -> Later<Option<Vec<u8>>>;

    /// The same, with `behind` put behind the path of the app's own request. What failed may do better soon.
    fn inquire_behind(
        &self,
        behind: &'static str,
        body: String,
    ) -> Later<Result<Vec<u8>, NotBegun>>;

    /// Sends the app's request there with another body. The attempt counts from here on.
    fn ask(self: Box<Self>, body: Bytes) -> Later<Result<S, NotBegun>>;
}

/// What somebody waits for.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Where a backend is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// In the group of the one that is left.
    Group,
    /// Among all.
    All,
}

/// How often and how long is tried.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Attempts until something was said.
    pub attempts: NonZeroU32,
    /// Moves behind that.
    pub moves: u32,
    /// How long a cut waits for a backend.
    pub wait: Duration,
    /// How long one may take for the beginning of what it adds.
    pub begin: Duration,
}

/// What is known of a backend that could go on with the answer of another.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its name.
    pub name: Arc<str>,
    /// What it is is just being found out: it is worth waiting for.
    pub is_pending: bool,
    /// What it has shown itself to be.
    pub engine: Option<Engine>,
    /// Its compatibility group.
    pub group: Option<Arc<str>>,
    /// Whether it renders and tokenises as the other does.
    pub same_model: Probed,
    /// Whether its template leaves the end of an unfinished answer alone.
    pub keeps_prefix: Probed,
    /// How it can be told to go on.
    pub methods: Vec<Method>,
    /// The longest prompt with its answer, in tokens.
    pub context: Option<u64>,
    /// Whether there is a credential for it.
    pub has_credential: bool,
}

/// Why an attempt brought no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// It refused the request itself.
    #[error("it refused the request with status {0}")]
    Refused(u16),
    /// It failed, or could not be reached.
    #[error("it gave no answer that can be used")]
    Failed,
}
