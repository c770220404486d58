//! What was found out, for programs.

use serde_json::{Value, json};
use streamweld_dialect::{Dialect, Engine, Method};
use streamweld_upstream::examine::Examination;

use super::{Check, DIALECTS, Report};

/// One object on one line.
pub(super) fn of(report: &Report) -> Value {
    let backends = report.backends.iter();
    let backends: Vec<Value> = backends.map(|(name, it)| backend(name, it)).collect();
    let pair = report.pair.as_ref().map(|pair| {
        json!({
            "same_model": by_dialect(|dialect| pair.same_model(dialect).as_str().into()),
            "methods": by_dialect(|dialect| methods(pair.methods(dialect))),
            "checks": checks(&pair.checks),
        })
    });
    json!({"safe": report.is_safe(), "backends": backends, "pair": pair})
}

fn backend(name: &str, examination: &Examination) -> Value {
    let identity = &examination.identity;
    json!({
        "name": name,
        "identity": identity.digest(),
        "engine": identity.engine.map(Engine::as_str),
        "version": identity.description.version,
        "model": identity.model.as_ref().map(|model| &model.name),
        "root": identity.model.as_ref().map(|model| &model.root),
        "models": identity.models,
        "context": identity.context(),
        "settled": examination.settled(),
        "methods": by_dialect(|dialect| methods(&examination.methods(dialect))),
        "keeps_prefix": by_dialect(|dialect| examination.keeps_prefix(dialect).as_str().into()),
        "round_trip": {
            "openai_chat": examination.chat.round_trip.as_str(),
            "openai_completions": examination.completions.round_trip.as_str(),
        },
        "checks": checks(&examination.checks),
    })
}

fn by_dialect(of: impl Fn(Dialect) -> Value) -> Value {
    let members = DIALECTS.iter();
    members
        .map(|&dialect| (dialect.as_str(), of(dialect)))
        .collect()
}

fn methods(methods: &[Method]) -> Value {
    let names = methods.iter();
    names.map(|&method| name(method)).collect()
}

fn name(method: Method) -> &'static str {
    match method {
        Method::TokenIds => "token_ids",
        Method::Prefill => "prefill",
    }
}

fn checks(checks: &[Check]) -> Value {
    let each = checks.iter().map(|check| {
        json!({
            "name": check.name,
            "finding": check.finding.as_str(),
            "evidence": check.evidence,
            "remedy": check.remedy,
        })
    });
    each.collect()
}
