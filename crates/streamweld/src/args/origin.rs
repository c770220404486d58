//! Where a value was written, so that an error names what its reader has to change.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::Args;
use super::file::SettingsFile;

/// Names the settings of one command by where their values come from.
pub(super) struct Origin<'a> {
    matches: &'a ArgMatches,
    file: Option<&'a SettingsFile>,
}

impl<'a> Origin<'a> {
    pub(super) fn of(matches: &'a ArgMatches, file: Option<&'a SettingsFile>) -> Self {
        Self { matches, file }
    }

    /// It stands on the command line.
    pub(super) fn is_flag(&self, setting: &str) -> bool {
        self.matches.value_source(setting) == Some(ValueSource::CommandLine)
    }

    /// It stands somewhere, rather than being the default.
    pub(super) fn is_given(&self, setting: &str) -> bool {
        let is_in_file = self.file.is_some_and(|file| file.says(setting));
        is_in_file || self.matches.value_source(setting) != Some(ValueSource::DefaultValue)
    }

    /// `--journal-total`, `STREAMWELD_JOURNAL_TOTAL`, or `journal_total in streamweld.toml:7` for `journal_total`.
    pub(super) fn name(&self, setting: &str) -> String {
        let in_file = || named_in(self.file?, setting);
        match self.matches.value_source(setting) {
            Some(ValueSource::EnvVariable) => {
                format!("STREAMWELD_{}", setting.to_ascii_uppercase())
            }
            Some(ValueSource::CommandLine) => flag(setting),
            _ => in_file().unwrap_or_else(|| flag(setting)),
        }
    }
}

fn flag(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

fn named_in(file: &SettingsFile, setting: &str) -> Option<String> {
    Some(format!("{setting} in {}", file.place(setting)?))
}

/// Lets an error about a value name the line of the file that it stands in.
pub(super) fn name_line(mut error: clap::Error, file: Option<&SettingsFile>) -> clap::Error {
    let named = || {
        let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        // `--journal-total <SIZE>`
        let flag = shown.split([' ', '[', '=']).next()?;
        named_in(file?, &flag.strip_prefix("--")?.replace('-', "_"))
    };
    if let Some(named) = named() {
        error.insert(ContextKind::InvalidArg, ContextValue::String(named));
    }
    error
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
        // Of those that lie deeper, one has settings, and those of `serve`.
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
