//! The `streamweld` command.
//!
//! Exit codes (protocol.md 13.1): 2 when what was asked for is refused, which is known before anything starts; 1 when
//! it could not be started or failed later; 3 when `doctor` found that answers would not go on; 0 at an orderly end. Commands that
//! ask a running server (`operate`): 1 when it refuses, 3 when it does not answer.

mod args;
mod demo;
mod doctor;
mod journal;
mod logging;
mod mock;
mod operate;
mod relay;
mod reload;
mod serve;
mod settings;
mod signals;
mod supervisor;
mod tls;
mod traces;
mod values;

use std::process::ExitCode;

use crate::args::{Args, Command, ConfigCommand, ConfigWhat};

fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    let args = match Args::read(&line) {
        Ok(args) => args,
        // Help and the version come this way as well, with code 0.
        Err(refused) => refused.exit(),
    };
    let outcome = match args.command {
        Command::Serve(serve) => serve::run(*serve, line, args.settings),
        Command::CheckConfig(serve) => settings::check(&serve),
        Command::Config(ConfigCommand {
            what: ConfigWhat::Show(_),
        }) => settings::show(&args.settings),
        Command::Streams(streams) => operate::streams(&streams),
        Command::Migrate(migrate) => operate::migrate(&migrate),
        Command::Drain(drain) => operate::drain(&drain),
        Command::Backends(backends) => operate::backends(&backends),
        Command::Mock(mock) => mock::run(*mock),
        Command::Demo(demo) => demo::run(demo),
        Command::Doctor(doctor) => doctor::run(*doctor),
    };
    let code = outcome.unwrap_or_else(|error| {
        // The chain on one line: what failed, and why.
        logging::say_last(&format!("streamweld: {error:#}"));
        ExitCode::FAILURE
    });
    logging::flush();
    code
}
