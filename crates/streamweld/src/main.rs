//! The `streamweld` command.

mod args;
mod demo;
mod logging;
mod mock;
mod serve;
mod values;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match args.command {
        Command::Serve(serve) => serve::run(*serve),
        Command::Mock(mock) => mock::run(mock),
        Command::Demo(demo) => demo::run(demo),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // The chain on one line: what failed, and why.
            eprintln!("streamweld: {error:#}");
            ExitCode::FAILURE
        }
    }
}
