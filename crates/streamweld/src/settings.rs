//! `streamweld check-config` and `streamweld config show`.

use std::io::Write;
use std::process::ExitCode;

use crate::args::{Serve, Setting, Stands};
use crate::serve;

/// Says that the settings are well. What is not was refused when they were read.
pub(crate) fn check(args: &Serve) -> anyhow::Result<ExitCode> {
    serve::config(args)?;
    serve::journal(args)?;
    let mut out = std::io::stdout().lock();
    match &args.config {
        Some(file) => writeln!(out, "{} is well", file.display())?,
        None => writeln!(out, "the settings are well")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows all settings as a file that says the same, each with where it stands.
pub(crate) fn show(settings: &[Setting]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for setting in settings {
        writeln!(out, "{}", line(setting))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line of that file. What is the default, has no value, or none that could be shown, is a comment.
fn line(setting: &Setting) -> String {
    let Setting { name, values, .. } = setting;
    let value = match &values[..] {
        [] => return format!("# {name} has no value"),
        [value] if !setting.takes_several => quoted(value),
        values => {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("[{}]", values.join(", "))
        }
    };
    match &setting.stands {
        stands if setting.is_redacted => format!("# {name} = {value} # {stands}, redacted"),
        Stands::Nowhere => format!("# {name} = {value} # default"),
        stands => format!("{name} = {value} # {stands}"),
    }
}

/// A value in TOML, whose strings may be written as JSON has them.
fn quoted(value: &str) -> String {
    let is_plain = matches!(value, "true" | "false") || is_number(value);
    if is_plain {
        return value.to_owned();
    }
    serde_json::Value::from(value).to_string()
}

/// A number as TOML has it: without zeros in front.
fn is_number(value: &str) -> bool {
    let is_decimal = value.bytes().all(|c| c.is_ascii_digit()) && value.len() < 19;
    value == "0" || (is_decimal && !value.is_empty() && !value.starts_with('0'))
}
