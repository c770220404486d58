//! `streamweld mock`.
#![allow(
    clippy::print_stdout,
    reason = "a command's answer goes to standard output"
)]

use std::process::ExitCode;

use anyhow::Context;
use streamweld_mock::{Mock, MockConfig, Script};

use crate::args;
use crate::serve::runtime;
use crate::signals::Signals;

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: args::Mock) -> anyhow::Result<ExitCode> {
    let listen = args.listen;
    let script = script(args)?;
    runtime(None)?.block_on(async {
        let config = MockConfig {
            default: script,
            ..MockConfig::default()
        };
        let mut signals = Signals::new()?;
        let mock = Mock::bind(listen, config)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        println!("mock listening on {}", mock.url());
        signals.next().await;
        Ok(ExitCode::SUCCESS)
    })
}

fn script(args: args::Mock) -> anyhow::Result<Script> {
    let base = args.script.or(args.script_file).unwrap_or_default();
    let patch = args
        .set
        .into_iter()
        .map(|member| (member.name, member.value))
        .collect();
    Ok(base.patched(&patch)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};

    #[track_caller]
    fn read(line: &[&str]) -> Script {
        let args = Args::read([&["streamweld", "mock"], line].concat()).expect("valid");
        let Command::Mock(mock) = args.command else {
            panic!("another command");
        };
        script(*mock).expect("valid")
    }

    #[test]
    fn members_are_set_by_name() {
        let script = read(&["--set", "tokens=50", "--set=end=rst_after:10"]);
        assert_eq!(script, Script::tokens(50).rst_after(10));
    }

    #[test]
    fn members_change_the_script_that_is_given() {
        let script = read(&[
            "--set",
            "tokens=5",
            "--script",
            r#"{"tokens":9,"bom":true}"#,
        ]);
        assert_eq!((script.tokens, script.bom), (Some(5), true));
    }
}
