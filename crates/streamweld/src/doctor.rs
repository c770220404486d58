//! `streamweld doctor`: how answers that were cut can go on at a backend, or from one to another.
//!
//! Exit codes (protocol.md 13.1): 0 when they can by one method at least, 3 when they cannot, 1 when a backend did not say
//! what it is.
#![allow(
    clippy::print_stdout,
    reason = "a command's answer goes to standard output"
)]

mod json;
mod table;

use std::process::ExitCode;

use streamweld_dialect::{Dialect, Method};
use streamweld_upstream::examine::{
    Bounds, Check, Examination, Finding, Pair, Subject, compare, examine, identify,
};
use streamweld_upstream::{Backend, Client, UpstreamConfig};

use crate::args::{self, ReportFormat};
use crate::serve::runtime;

/// Examines, shows what it found, and ends with what it means.
pub(crate) fn run(args: args::Doctor) -> anyhow::Result<ExitCode> {
    let runtime = runtime(Some(1))?;
    let report = runtime.block_on(look(&args))?;
    match args.format {
        ReportFormat::Table => print!("{}", table::of(&report)),
        ReportFormat::Json => println!("{}", json::of(&report)),
    }
    // Nothing is waited for any more: a blocking name lookup must not hold the exit up.
    runtime.shutdown_background();
    Ok(if report.is_safe() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNSAFE)
    })
}

/// What was found out.
struct Report {
    /// Each backend by its name.
    backends: Vec<(String, Examination)>,
    /// Of two.
    pair: Option<Pair>,
}

impl Report {
    /// By which methods an answer of this dialect can go on: at the one backend, or at either of the two. By none where one is
    /// another engine than was declared: a proxy that is told the same lets nothing go on there.
    fn methods(&self, dialect: Dialect) -> Vec<Method> {
        match &self.pair {
            _ if self.backends.iter().any(|(_, it)| is_another(it)) => Vec::new(),
            Some(pair) => pair.methods(dialect).to_vec(),
            None => {
                let mut backends = self.backends.iter();
                let methods = backends.next().map(|(_, it)| it.methods(dialect));
                methods.unwrap_or_default()
            }
        }
    }

    fn is_safe(&self) -> bool {
        let mut dialects = DIALECTS.iter();
        dialects.any(|&dialect| !self.methods(dialect).is_empty())
    }
}

/// Whether it is another engine than was declared.
fn is_another(examination: &Examination) -> bool {
    let mut checks = examination.checks.iter();
    checks.any(|check| check.name == "engine" && check.finding == Finding::Problem)
}

async fn look(args: &args::Doctor) -> anyhow::Result<Report> {
    let client = Client::new(UpstreamConfig::default())?;
    let mut backends = Vec::new();
    for url in [Some(&args.backend), args.other.as_ref()]
        .into_iter()
        .flatten()
    {
        let backend = Backend::new(url.checked()?);
        let examination = one(args, &client, &backend).await?;
        backends.push((backend.name().to_owned(), examination));
    }
    let pair = match &backends[..] {
        [(_, one), (_, other)] => Some(compare(one, other)),
        _ => None,
    };
    Ok(Report { backends, pair })
}

async fn one(
    args: &args::Doctor,
    client: &Client,
    backend: &Backend,
) -> anyhow::Result<Examination> {
    if let Some(examination) = Examination::hosted(args.engine) {
        return Ok(examination);
    }
    let credential = args.credential_file.clone().unwrap_or_default();
    let subject = Subject {
        client,
        backend,
        credential: &credential,
        declared: args.engine,
        model: args.model.as_deref(),
        bounds: Bounds::default(),
    };
    let identity = identify(&subject).await?;
    Ok(examine(&subject, identity).await)
}

/// Those in which answers can go on at all.
const DIALECTS: [Dialect; 3] = [
    Dialect::OpenAiChat,
    Dialect::OpenAiCompletions,
    Dialect::AnthropicMessages,
];

/// The exit code for an answer that would not go on.
const UNSAFE: u8 = 3;
