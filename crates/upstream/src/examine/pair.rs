//! Whether two backends may take over from each other. Pure.

use std::collections::BTreeMap;

use streamweld_dialect::{Dialect, Method};

use super::check::Judged;
use super::examination::Fingerprint;
use super::{Check, Examination, Identity, Probed};

/// What two examinations say together. The same in both directions.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Everything that was compared, in order.
    pub checks: Vec<Check>,
    model: Probed,
    tokenisation: Probed,
    rendering: Probed,
    chat: Vec<Method>,
    completions: Vec<Method>,
    messages: Vec<Method>,
}

impl Pair {
    /// Whether the same question is the same prompt on both, for the same model: name and weights as far as they are told,
    /// and tokens; of a chat the rendering too.
    #[must_use]
    pub fn same_model(&self, dialect: Dialect) -> Probed {
        let tokens = self.model.and(self.tokenisation);
        match dialect {
            Dialect::OpenAiChat | Dialect::AnthropicMessages => tokens.and(self.rendering),
            Dialect::OpenAiCompletions => tokens,
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic => {
                Probed::Unknown
            }
        }
    }

    /// How an answer that one began can go on at the other, whichever begins, the most exact first.
    #[must_use]
    pub fn methods(&self, dialect: Dialect) -> &[Method] {
        match dialect {
            _ if self.same_model(dialect) != Probed::Yes => &[],
            Dialect::OpenAiCompletions => &self.completions,
            Dialect::AnthropicMessages => &self.messages,
            _ => &self.chat,
        }
    }
}

/// Compares two backends.
#[must_use]
pub fn compare(one: &Examination, other: &Examination) -> Pair {
    let mut checks = Vec::new();
    let mut add = |name, judged: Judged, remedy| {
        let finding = judged.finding;
        checks.push(judged.into_check(name, remedy));
        Probed::from(finding)
    };
    let model = add("pair.model", models(&one.identity, &other.identity), MODEL);
    let tokens = alike(one.tokenisation.as_ref(), other.tokenisation.as_ref());
    let tokenisation = add("pair.tokenisation", tokens, TOKENISATION);
    let prompts = alike(one.rendering.as_ref(), other.rendering.as_ref());
    let rendering = add("pair.rendering", prompts, RENDERING);
    let mut both = |name, dialect| {
        let of_other = other.methods(dialect);
        let mut methods = one.methods(dialect);
        methods.retain(|method| of_other.contains(method));
        add(name, named(&methods), METHODS);
        methods
    };
    let chat = both("pair.chat", Dialect::OpenAiChat);
    let completions = both("pair.completions", Dialect::OpenAiCompletions);
    // Of engines that do not go on with messages there is nothing to say.
    let looked_at = [one, other].iter().all(|it| it.was_asked_for_messages());
    let messages = match looked_at {
        true => both("pair.messages", Dialect::AnthropicMessages),
        false => Vec::new(),
    };
    Pair {
        checks,
        model,
        tokenisation,
        rendering,
        chat,
        completions,
        messages,
    }
}

fn named(methods: &[Method]) -> Judged {
    if methods.is_empty() {
        return Judged::problem("no method works on both");
    }
    let names: Vec<&str> = methods.iter().copied().map(method_name).collect();
    Judged::ok(format!("both go on by {}", names.join(" and ")))
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::TokenIds => "token ids",
        Method::Prefill => "prefill",
    }
}

fn models(one: &Identity, other: &Identity) -> Judged {
    let (Some(first), Some(second)) = (&one.model, &other.model) else {
        let unknown = Judged::unknown("one of them does not serve the model");
        return unknown.mended_by("name a model that both serve (--model)");
    };
    if first.name != second.name {
        return Judged::problem(format!("{} and {}", first.name, second.name));
    }
    // Where weights lie differs from host to host; what they are called does not.
    let roots = first.root.as_deref().zip(second.root.as_deref());
    let roots = roots.map(|(one, other)| (last_part(one), last_part(other)));
    if let Some((one, other)) = roots.filter(|(one, other)| one != other) {
        return Judged::problem(format!("{}: {one} and {other}", first.name));
    }
    let weights: BTreeMap<_, _> = other.weights().collect();
    for (name, value) in one.weights() {
        match weights.get(name) {
            Some(told) if *told != value => {
                return Judged::problem(format!("{name}: {value} and {told}"));
            }
            _ => {}
        }
    }
    Judged::ok(format!("both serve {}", first.name))
}

fn last_part(root: &str) -> &str {
    let root = root.trim_end_matches('/');
    root.rsplit('/').next().unwrap_or(root)
}

fn alike(one: Option<&Fingerprint>, other: Option<&Fingerprint>) -> Judged {
    let (Some(one), Some(other)) = (one, other) else {
        return Judged::unknown("one of them does not tell").mended_by(NOT_TOLD);
    };
    let digests = format!("{} and {}", one.digest(), other.digest());
    match one.same(other) {
        Probed::Yes => Judged::ok(one.digest()),
        Probed::No => Judged::problem(digests),
        Probed::Unknown => {
            Judged::unknown(format!("{digests}, learned in two ways")).mended_by(NOT_TOLD)
        }
    }
}

const MODEL: &str =
    "serve the same weights under the same name on both, or put them into two groups";
const NOT_TOLD: &str = "see its line in the tables of both, and have both tell it in the same way";
const TOKENISATION: &str = "give both the same tokenizer, or put them into two groups";
const RENDERING: &str = "give both the same chat template, or put them into two groups";
const METHODS: &str = "mend what stands in the way at each of them: see the two tables";

#[cfg(test)]
mod tests;
