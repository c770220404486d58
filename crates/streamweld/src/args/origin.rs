//! Where a value was written, so that an error names what its reader has to change.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::Args;

/// Names the settings of one command by where their values come from.
pub(super) struct Origin<'a>(&'a ArgMatches);

impl<'a> Origin<'a> {
    pub(super) fn of(matches: &'a ArgMatches) -> Self {
        Self(matches)
    }

    /// It stands on the command line.
    pub(super) fn is_flag(&self, setting: &str) -> bool {
        self.0.value_source(setting) == Some(ValueSource::CommandLine)
    }

    /// It stands somewhere, rather than being the default.
    pub(super) fn is_given(&self, setting: &str) -> bool {
        self.0.value_source(setting) != Some(ValueSource::DefaultValue)
    }

    /// `--journal-total` or `STREAMWELD_JOURNAL_TOTAL` for `journal_total`.
    pub(super) fn name(&self, setting: &str) -> String {
        match self.0.value_source(setting) {
            Some(ValueSource::EnvVariable) => {
                format!("STREAMWELD_{}", setting.to_ascii_uppercase())
            }
            _ => format!("--{}", setting.replace('_', "-")),
        }
    }
}

/// Lets an error about a value name the variable that it came from. The parser names the flag always.
///
/// When a value is refused there are no matches to ask for its source. But a flag wins over its variable, so a fault
/// that stays when no variable is looked at is the flag's, and any other is the variable's.
pub(super) fn name_variable(mut error: clap::Error, line: &[OsString]) -> clap::Error {
    let flag = |error: &clap::Error| match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => Some(flag.clone()),
        _ => None,
    };
    let Some(named) = flag(&error) else {
        return error;
    };
    let mut command = Args::command();
    // An argument can be shown once its command is complete.
    command.build();
    let variable = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .find(|argument| argument.get_env().is_some() && argument.to_string() == named)
        .and_then(|argument| argument.get_env()?.to_str())
        .map(str::to_owned);
    let Some(variable) = variable else {
        return error;
    };
    let bare = Args::command()
        .mut_subcommands(|command| command.mut_args(|argument| argument.env(Resettable::Reset)))
        .try_get_matches_from(line);
    if bare.err().as_ref().and_then(flag) != Some(named) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}
