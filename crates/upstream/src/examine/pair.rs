//! Whether two backends may take over from each other. Pure.

use streamweld_dialect::{Dialect, Method};

use super::check::Judged;
use super::likeness::{Likeness, alike};
use super::{Check, Examination, Probed};

/// What two examinations say together. The same in both directions.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Everything that was compared, in order.
    pub checks: Vec<Check>,
    likeness: [Likeness; 2],
    chat: Vec<Method>,
    completions: Vec<Method>,
    messages: Vec<Method>,
}

impl Pair {
    /// Whether the same question is the same prompt on both; see [`Likeness::same_model`].
    #[must_use]
    pub fn same_model(&self, dialect: Dialect) -> Probed {
        self.likeness[0].same_model(&self.likeness[1], dialect)
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
        checks.push(judged.into_check(name, remedy));
    };
    let likeness = [Likeness::of(one), Likeness::of(other)];
    add("pair.model", likeness[0].models(&likeness[1]), MODEL);
    let tokens = alike(one.tokenisation.as_ref(), other.tokenisation.as_ref());
    add("pair.tokenisation", tokens, TOKENISATION);
    let prompts = alike(one.rendering.as_ref(), other.rendering.as_ref());
    add("pair.rendering", prompts, RENDERING);
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
        likeness,
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

const MODEL: &str =
    "serve the same weights under the same name on both, or put them into two groups";
const TOKENISATION: &str = "give both the same tokenizer, or put them into two groups";
const RENDERING: &str = "give both the same chat template, or put them into two groups";
const METHODS: &str = "mend what stands in the way at each of them: see the two tables";

#[cfg(test)]
mod tests;
