//! The backends of one server, and who of them is asked next.

use streamweld_dialect::Dialect;
use streamweld_upstream::fleet::{self, Family, Fleet, MemberId, Permit, Spec, SpecError, Wanted};

use crate::error::{Error, ErrorCode};

/// All of them.
pub(crate) struct Backends {
    pub(crate) fleet: Fleet,
}

impl Backends {
    pub(crate) fn new(specs: Vec<Spec>, config: fleet::Config) -> Result<Self, Vec<SpecError>> {
        Ok(Self {
            fleet: Fleet::new(specs, config)?,
        })
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
