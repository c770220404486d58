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
mod serve;
mod signals;
mod values;

use std::process::ExitCode;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = match Args::read(std::env::args_os()) {
        Ok(args) => args,
        // Help and the version come this way as well, with code 0.
        Err(refused) => refused.exit(),
    };
    let outcome = match args.command {
        Command::Serve(serve) => serve::run(*serve),
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
