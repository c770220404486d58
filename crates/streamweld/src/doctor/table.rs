//! What was found out, for people.

use std::fmt::Write;

use streamweld_dialect::{Dialect, Method};
use streamweld_upstream::examine::Finding;

use super::{Check, DIALECTS, Report};

/// A table for each backend, one for the pair, and what they mean.
pub(super) fn of(report: &Report) -> String {
    let mut out = String::new();
    for (name, examination) in &report.backends {
        let identity = examination.identity.digest();
        table(
            &mut out,
            &format!("{name}  (identity {identity})"),
            &examination.checks,
        );
        if !examination.settled() {
            line(
                &mut out,
                "  Some of this was not answered now; look again later.",
            );
        }
        line(&mut out, "");
    }
    if let Some(pair) = &report.pair {
        table(&mut out, "both together", &pair.checks);
        line(&mut out, "");
    }
    for dialect in DIALECTS {
        line(&mut out, &meaning(report, dialect));
    }
    out
}

fn table(out: &mut String, title: &str, checks: &[Check]) {
    line(out, title);
    let width = checks.iter().map(|check| check.name.len()).max();
    let width = width.unwrap_or_default();
    for check in checks {
        let word = match check.finding {
            Finding::Ok => "ok",
            Finding::Problem => "PROBLEM",
            Finding::Unknown => "unknown",
        };
        let name = check.name;
        line(
            out,
            &format!("  {name:width$}  {word:7}  {}", check.evidence),
        );
        if let Some(remedy) = check.remedy {
            let behind = width + "  ".len() + "PROBLEM".len() + "  ".len();
            line(out, &format!("  {:behind$}-> {remedy}", ""));
        }
    }
}

fn meaning(report: &Report, dialect: Dialect) -> String {
    let names: Vec<&str> = report
        .methods(dialect)
        .into_iter()
        .map(|method| match method {
            Method::TokenIds => "token ids",
            Method::Prefill => "prefill",
        })
        .collect();
    let what = match dialect {
        Dialect::OpenAiCompletions => "completion",
        Dialect::AnthropicMessages => "message",
        _ => "chat",
    };
    let place = match report.pair {
        Some(_) => "from each of them at the other",
        None => "there",
    };
    if names.is_empty() {
        format!("A {what} that was cut cannot go on {place}.")
    } else {
        format!(
            "A {what} that was cut can go on {place}, by {}.",
            names.join(" or ")
        )
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a text takes everything");
}
