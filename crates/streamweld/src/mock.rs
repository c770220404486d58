//! `streamweld mock`.
#![allow(
    clippy::print_stdout,
    reason = "a command's answer goes to standard output"
)]

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use streamweld_mock::{Mock, MockConfig, Script};

use crate::args;
use crate::serve::runtime;

/// Serves until it is interrupted.
pub(crate) fn run(args: args::Mock) -> anyhow::Result<ExitCode> {
    let script = script(&args)?;
    runtime(None)?.block_on(async {
        let config = MockConfig {
            default: script,
            ..MockConfig::default()
        };
        let mock = Mock::bind(args.listen, config)
            .await
            .with_context(|| format!("cannot listen on {}", args.listen))?;
        println!("mock listening on {}", mock.url());
        tokio::signal::ctrl_c()
            .await
            .context("cannot listen for signals")?;
        Ok(ExitCode::SUCCESS)
    })
}

fn script(args: &args::Mock) -> anyhow::Result<Script> {
    let base = match (&args.script, &args.script_file) {
        (Some(json), _) => Script::from_json(json)?,
        (None, Some(file)) => {
            let json = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            Script::from_json(&json)?
        }
        (None, None) => Script::default(),
    };
    let mut patch = Map::new();
    for set in &args.set {
        let Some((name, value)) = set.split_once('=') else {
            bail!("--set takes NAME=VALUE, such as tokens=50; got {set:?}");
        };
        // `5` and `{"batch":8}` are JSON; `20ms` and `rst_after:5` are plain words.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        patch.insert(name.to_owned(), value);
    }
    Ok(base.patched(&patch)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(set: &[&str]) -> args::Mock {
        args::Mock {
            listen: ([127, 0, 0, 1], 0).into(),
            script: None,
            script_file: None,
            set: set.iter().map(|set| (*set).to_owned()).collect(),
        }
    }

    #[test]
    fn members_are_set_by_name() {
        let script = script(&args(&["tokens=50", "end=rst_after:10"])).expect("valid");
        assert_eq!(script.tokens, Some(50));
    }

    #[test]
    fn unknown_members_are_named() {
        let error = script(&args(&["tokenz=50"]))
            .expect_err("refused")
            .to_string();
        assert!(error.contains("tokenz"), "{error}");
    }
}
