//! The backends of one server, and who of them is asked next.

use streamweld_dialect::Dialect;
use streamweld_upstream::fleet::{
    self, Family, Fleet, MemberId, Permit, Reach, Spec, SpecError, Wanted,
};

use crate::config::MigrationConfig;
use crate::error::{Error, ErrorCode};

/// All of them.
pub(crate) struct Backends {
    pub(crate) fleet: Fleet,
    pub(crate) migration: MigrationConfig,
    /// There is, or may be, more than one.
    several: bool,
}

impl Backends {
    pub(crate) fn new(
        specs: Vec<Spec>,
        config: fleet::Config,
        migration: MigrationConfig,
    ) -> Result<Self, Vec<SpecError>> {
        let several = specs.len() > 1 || specs.iter().any(|spec| spec.reach == Reach::EveryAddress);
        Ok(Self {
            fleet: Fleet::new(specs, config)?,
            migration,
            several,
        })
    }

    /// Whether a request that one has failed may be given to another, and so has to be kept.
    pub(crate) fn are_several(&self) -> bool {
        self.several
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
