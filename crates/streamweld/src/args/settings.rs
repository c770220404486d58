//! Each setting of `serve`, its value as it would be written, and where that stands.

use std::fmt;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use streamweld_journal_redis::RedisUrl;

use super::FILE;
use super::file::SettingsFile;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// As a file has it.
    pub(crate) name: String,
    /// As a flag would be given them, without what is secret. Empty: it has none, which has a meaning of its own.
    pub(crate) values: Vec<String>,
    /// It can be given several times.
    pub(crate) takes_several: bool,
    /// Something of it is not shown.
    pub(crate) is_redacted: bool,
    /// Where.
    pub(crate) stands: Stands,
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// On the command line.
    Flag(String),
    /// In a variable.
    Variable(String),
    /// In a line of a file.
    Line {
        /// Which file.
        file: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Nowhere: it is the default.
    Nowhere,
}

impl fmt::Display for Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Nowhere => f.write_str("default"),
        }
    }
}

/// All of them, in the order in which `serve --help` has them.
pub(super) fn all(
    command: &Command,
    matches: &ArgMatches,
    file: Option<&SettingsFile>,
) -> Vec<Setting> {
    let serve = command.find_subcommand("serve").expect("it is one");
    let settings = serve
        .get_arguments()
        .filter(|argument| argument.get_env().is_some() && argument.get_id() != FILE);
    settings
        .map(|setting| one(setting, matches, file))
        .collect()
}

fn one(setting: &Arg, matches: &ArgMatches, file: Option<&SettingsFile>) -> Setting {
    let name = setting.get_id().as_str();
    let stands = match matches.value_source(name) {
        Some(ValueSource::CommandLine) => Stands::Flag(format!("--{}", name.replace('_', "-"))),
        Some(ValueSource::EnvVariable) => {
            Stands::Variable(format!("STREAMWELD_{}", name.to_ascii_uppercase()))
        }
        _ => file
            .and_then(|file| file.place(name))
            .unwrap_or(Stands::Nowhere),
    };
    let values = matches.get_raw(name).into_iter().flatten();
    let values = values.map(|value| value.to_string_lossy().into_owned());
    let mut is_redacted = false;
    let values = values
        .map(|value| match redacted(name, &value) {
            Some(shown) => {
                is_redacted = true;
                shown
            }
            None => value,
        })
        .collect();
    Setting {
        name: name.to_owned(),
        values,
        takes_several: matches!(setting.get_action(), ArgAction::Append),
        is_redacted,
        stands,
    }
}

/// What is shown in place of a value that may hold a secret. Others are names of files at most.
fn redacted(name: &str, value: &str) -> Option<String> {
    let url: RedisUrl = match name {
        "journal" => value.parse().ok()?,
        _ => return None,
    };
    url.has_credential().then(|| url.to_string())
}
