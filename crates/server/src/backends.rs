//! The backends of one server, and who of them is asked next.

use streamweld_dialect::Dialect;
use streamweld_generation::migration::Policy;
use streamweld_upstream::fleet::{
    self, Family, Fleet, MemberId, Permit, Reach, Spec, SpecError, Wanted,
};

use crate::config::MigrationConfig;
use crate::error::{Error, ErrorCode};

/// All of them.
pub(crate) struct Backends {
    pub(crate) fleet: Fleet,
    pub(crate) migration: MigrationConfig,
    /// A request that one has failed may be sent again.
    keeps: bool,
}

impl Backends {
    pub(crate) fn new(
        specs: Vec<Spec>,
        config: fleet::Config,
        migration: MigrationConfig,
    ) -> Result<Self, Vec<SpecError>> {
        // One alone may be asked again when it is back.
        let keeps = specs.len() > 1
            || specs.iter().any(|spec| {
                spec.reach == Reach::EveryAddress
                    || migration.policy(spec.group.as_deref()) != Policy::Off
            });
        Ok(Self {
            fleet: Fleet::new(specs, config)?,
            migration,
            keeps,
        })
    }

    /// Whether a request that one has failed may be sent again, and so has to be kept.
    pub(crate) fn keep_requests(&self) -> bool {
        self.keeps
    }

    /// Takes a place for an attempt: not at one of `exclude`, which have failed it.
    pub(crate) fn pick(&self, dialect: Dialect, exclude: &[MemberId]) -> Result<Permit, Error> {
        let wanted = Wanted {
            exclude,
            family: Some(self.family(dialect)),
            even_down: true,
            ..Wanted::default()
        };
        self.fleet
            .pick(&wanted)
            .map_err(|none| Error::new(ErrorCode::BackendUnavailable, none.to_string()))
    }

    /// The vendor whose API a dialect is.
    pub(crate) fn family(&self, dialect: Dialect) -> Family {
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::OpenAiResponses => {
                Family::Openai
            }
            Dialect::AnthropicMessages => Family::Anthropic,
            Dialect::Gemini => Family::Gemini,
            Dialect::Mcp | Dialect::Generic => Family::Unknown,
        }
    }
}
