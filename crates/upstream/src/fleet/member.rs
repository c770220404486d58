//! One backend of a fleet: what does not change about it while it is there.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use http::uri::PathAndQuery;

use super::{Credential, Engine, Family, Spec};
use crate::Backend;

/// Tells members apart. Never given twice, so that a member that comes back under an old name or
/// address is not taken for the one that went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub(super) u64);

impl MemberId {
    /// The number, for whoever does not know fleets.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The member of this number.
    pub const fn of(number: u64) -> Self {
        Self(number)
    }
}

/// A backend as one of several.
pub struct Member {
    id: MemberId,
    backend: Backend,
    spec: Arc<Spec>,
}

impl Member {
    pub(super) fn new(id: MemberId, backend: Backend, spec: Arc<Spec>) -> Self {
        Self { id, backend, spec }
    }

    /// Which one it is.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Where requests to it are sent.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The name, which is all that is ever shown of where it is.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// The software that answers there.
    pub fn engine(&self) -> Engine {
        self.spec.engine
    }

    /// The dialects it is asked in.
    pub fn family(&self) -> Family {
        self.spec.family
    }

    /// Within which another may go on with what it began.
    pub fn group(&self) -> Option<&str> {
        self.spec.group.as_deref()
    }

    /// Its share of the attempts, compared with the others'.
    pub fn weight(&self) -> NonZeroU32 {
        self.spec.weight
    }

    /// Whose credential it is shown.
    pub fn credential(&self) -> &Credential {
        &self.spec.credential
    }

    /// All that an operator has said of it.
    pub(super) fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub(super) fn health_path(&self) -> Option<PathAndQuery> {
        self.spec.health_path()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.name()).finish()
    }
}
