//! What of an examination decides whether another backend is the same model: small enough to be kept with a generation,
//! for whoever has to compare when the backend, and all that was known of it, is gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use streamweld_dialect::Dialect;

use super::check::Judged;
use super::examination::Fingerprint;
use super::{Examination, Probed};

/// What a model and its prompts look like from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Likeness {
    name: Option<String>,
    root: Option<String>,
    weights: BTreeMap<String, String>,
    pub(super) tokenisation: Option<Fingerprint>,
    pub(super) rendering: Option<Fingerprint>,
}

impl Likeness {
    /// Of what was found out.
    #[must_use]
    pub fn of(examination: &Examination) -> Self {
        let model = examination.identity.model.as_ref();
        let weights = examination.identity.weights();
        Self {
            name: model.map(|model| model.name.clone()),
            root: model.and_then(|model| Some(last_part(model.root.as_deref()?).to_owned())),
            weights: weights
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            tokenisation: examination.tokenisation.clone(),
            rendering: examination.rendering.clone(),
        }
    }

    /// Whether the same question is the same prompt on both, for the same model: name and weights as far as they are told,
    /// and tokens; of a chat the rendering too.
    #[must_use]
    pub fn same_model(&self, other: &Self, dialect: Dialect) -> Probed {
        let found = |judged: Judged| Probed::from(judged.finding);
        let tokens = alike(self.tokenisation.as_ref(), other.tokenisation.as_ref());
        let tokens = found(self.models(other)).and(found(tokens));
        match dialect {
            Dialect::OpenAiChat | Dialect::AnthropicMessages => {
                let prompts = alike(self.rendering.as_ref(), other.rendering.as_ref());
                tokens.and(found(prompts))
            }
            Dialect::OpenAiCompletions => tokens,
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic => {
                Probed::Unknown
            }
        }
    }

    /// Whether both are the same weights, as far as they tell.
    pub(super) fn models(&self, other: &Self) -> Judged {
        let (Some(name), Some(second)) = (&self.name, &other.name) else {
            let unknown = Judged::unknown("one of them does not serve the model");
            return unknown.mended_by("name a model that both serve (--model)");
        };
        if name != second {
            return Judged::problem(format!("{name} and {second}"));
        }
        // Where weights lie differs from host to host; what they are called does not.
        let roots = self.root.as_ref().zip(other.root.as_ref());
        if let Some((one, other)) = roots.filter(|(one, other)| one != other) {
            return Judged::problem(format!("{name}: {one} and {other}"));
        }
        for (what, value) in &self.weights {
            match other.weights.get(what) {
                Some(told) if told != value => {
                    return Judged::problem(format!("{what}: {value} and {told}"));
                }
                _ => {}
            }
        }
        Judged::ok(format!("both serve {name}"))
    }
}

fn last_part(root: &str) -> &str {
    let root = root.trim_end_matches('/');
    root.rsplit('/').next().unwrap_or(root)
}

pub(super) fn alike(one: Option<&Fingerprint>, other: Option<&Fingerprint>) -> Judged {
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

const NOT_TOLD: &str = "see its line in the tables of both, and have both tell it in the same way";
