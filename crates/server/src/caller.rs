//! Who asks for a generation, and whether they may have it (protocol.md 9).

use streamweld_generation::Access;
use streamweld_journal::StreamId;

use crate::capability::{Capability, Scope};
use crate::config::ResumeUrlConfig;
use crate::error::{Error, ErrorCode};

/// How a caller came to a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// As its maker, or as an operator.
    Own,
    /// By a URL that its maker was given.
    Lent,
}

/// Who asks for a generation, and for what.
pub(crate) enum Caller {
    /// An operator may do everything.
    Operator,
    Client {
        access: Access,
        capability: Option<Capability>,
        wants: Scope,
    },
}

impl Caller {
    /// One that has its credential, and nothing else to show.
    pub(crate) fn with(access: Access) -> Self {
        Self::Client {
            access,
            capability: None,
            wants: Scope::Read,
        }
    }

    /// One that may have a capability in its query.
    pub(crate) fn of(access: Access, query: Option<&str>, wants: Scope) -> Self {
        Self::Client {
            access,
            capability: Capability::of(query),
            wants,
        }
    }

    /// Whether it may have the generation with this digest.
    ///
    /// # Errors
    /// It may not. A stranger is told what it is told of a generation that never was, and only the holder of a good
    /// capability what is wrong with that.
    pub(crate) fn admit(
        &self,
        config: &ResumeUrlConfig,
        id: StreamId,
        digest: &[u8; 32],
    ) -> Result<Entry, Error> {
        let (capability, wants) = match self {
            Self::Operator => return Ok(Entry::Own),
            Self::Client { access, .. } if access.matches(digest) => return Ok(Entry::Own),
            Self::Client {
                capability, wants, ..
            } => (capability.as_ref(), *wants),
        };
        match capability {
            Some(capability) if capability.is_good(config, id, digest) => {
                capability.admit(id, wants).map(|()| Entry::Lent)
            }
            Some(_) | None => Err(unknown(id)),
        }
    }

    /// Whether it is told anything at all of the generation with this digest.
    pub(crate) fn knows(&self, config: &ResumeUrlConfig, id: StreamId, digest: &[u8; 32]) -> bool {
        match self.admit(config, id, digest) {
            Ok(_) => true,
            Err(error) => error.code != ErrorCode::StreamNotFound,
        }
    }

    /// What it is told of a generation that is not there; in the time that it takes to be told so of one that is.
    pub(crate) fn unknown(&self, config: &ResumeUrlConfig, id: StreamId) -> Error {
        if let Self::Client {
            capability: Some(capability),
            ..
        } = self
        {
            let _ = std::hint::black_box(capability.is_good(config, id, &[0; 32]));
        }
        unknown(id)
    }
}

/// What a stranger is told, and whoever asks for what never was.
pub(crate) fn unknown(id: StreamId) -> Error {
    let message = "no such stream, or it was made with another credential";
    Error::new(ErrorCode::StreamNotFound, message).about(id)
}
