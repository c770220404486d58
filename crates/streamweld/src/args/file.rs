//! The settings file: TOML, with the names of the flags and `_` for `-`, and each value as a flag has it.
//!
//! What it says stands below the variables and the flags. So it is given to the parser of the command line as the defaults
//! there, and goes through the same checks as everything else.

mod backend;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Stands;
use crate::values::nearest;

/// What a settings file says.
#[derive(Debug)]
pub(super) struct SettingsFile {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
}

/// One setting in it.
#[derive(Debug)]
struct Entry {
    line: usize,
    /// As a flag would be given them.
    values: Vec<String>,
}

impl SettingsFile {
    /// Reads the settings of `command` from a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in words for whoever wrote it: the file cannot be read, is no TOML, names a setting
    /// that there is not, or has a value of another kind than that setting. No value is repeated.
    pub(super) fn read(path: &Path, command: &Command) -> Result<Self, Vec<String>> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| vec![format!("{shown} cannot be read: {error}")])?;
        let place = |at: usize| format!("{shown}:{}", line(&text, at));
        let table = DeTable::parse(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![format!("{} is no TOML: {}", place(at), error.message())]
        })?;
        let (mut entries, mut faults) = (BTreeMap::new(), Vec::new());
        for (key, value) in table.get_ref() {
            let name = key.get_ref().as_ref();
            let at = key.span().start;
            let of = format!("{}: {name}", place(at));
            match values(name, value, command) {
                Ok(values) => {
                    let line = line(&text, at);
                    entries.insert(name.to_owned(), Entry { line, values });
                }
                Err(fault) => faults.push(format!("{of} {fault}")),
            }
        }
        if faults.is_empty() {
            let path = path.to_owned();
            Ok(Self { path, entries })
        } else {
            Err(faults)
        }
    }

    /// The same command, with what the file says as the defaults of its settings.
    pub(super) fn put_below(&self, command: Command) -> Command {
        self.entries.iter().fold(command, |command, (name, entry)| {
            let values = entry.values.clone();
            command.mut_arg(name, |setting| {
                // A setting that is demanded is there.
                setting.required(false).default_values(values)
            })
        })
    }

    /// Whether it says something of this setting.
    pub(super) fn says(&self, setting: &str) -> bool {
        self.entries.contains_key(setting)
    }

    /// Where it says so.
    pub(super) fn place(&self, setting: &str) -> Option<Stands> {
        let entry = self.entries.get(setting)?;
        Some(Stands::Line {
            file: self.path.clone(),
            line: entry.line,
        })
    }
}

/// The number of the line in which the byte `at` stands.
fn line(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// The values of a setting, as a flag would be given them.
fn values(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    command: &Command,
) -> Result<Vec<String>, String> {
    let settings = || command.get_arguments().filter(|of| is_setting(of));
    let Some(setting) = settings().find(|setting| setting.get_id() == name) else {
        return Err(unknown(
            name,
            settings().map(|setting| setting.get_id().as_str()),
        ));
    };
    let takes_several = matches!(setting.get_action(), ArgAction::Append);
    match value.get_ref() {
        DeValue::Array(members) if takes_several => members
            .iter()
            .map(|member| match member.get_ref() {
                DeValue::Table(table) if name == "backend" => backend::written(table),
                member => scalar(member),
            })
            .collect(),
        DeValue::Array(_) => Err("has several values, and takes one".to_owned()),
        DeValue::Table(_) if name == "backend" => {
            Err("is one table; write [[backend]] in front of each".to_owned())
        }
        value => Ok(vec![scalar(value)?]),
    }
}

/// Whether a file may say it: not which file that is, nor a wish for help.
fn is_setting(argument: &clap::Arg) -> bool {
    argument.get_env().is_some() && argument.get_id() != super::FILE
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut fault = "is no setting".to_owned();
    if let Some(near) = nearest(name, known) {
        write!(fault, "; did you mean {near}?").expect("into memory");
    } else {
        fault.push_str("; `streamweld config show` lists them all");
    }
    fault
}

/// One value as it is written behind a flag.
fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Boolean(is_on) => Ok(is_on.to_string()),
        // In decimal: a hexadecimal number has no meaning to any setting.
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
        _ => Err(format!(
            "is a {}; write a string, such as \"30s\" or \"16MiB\", a whole number, or true or false",
            value.type_str()
        )),
    }
}

#[cfg(test)]
mod tests;
