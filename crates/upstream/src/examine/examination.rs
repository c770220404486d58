//! What was found out about one backend.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use streamweld_dialect::{Description, Dialect, Method};

use super::check::Judged;
use super::identity::hex;
use super::{Check, Finding, Identity, Probed};
use crate::fleet::Engine;

/// What was found out about one backend: for people in `checks`, for the gates in the rest.
#[derive(Clone, Debug)]
pub struct Examination {
    /// Who it is.
    pub identity: Identity,
    /// Everything that was looked at, in order.
    pub checks: Vec<Check>,
    /// How chats can go on there.
    pub chat: Ways,
    /// How completions can.
    pub completions: Ways,
    /// How Anthropic messages can.
    pub messages: Ways,
    /// Whether its template leaves an unfinished answer alone that ends in a word.
    pub keeps_word: Probed,
    /// The same of one that ends in white space.
    pub keeps_space: Probed,
    /// Whether text that looks like a control token becomes one in a prompt.
    pub reads_controls: Probed,
    /// How it cuts text into tokens.
    pub(super) tokenisation: Option<Fingerprint>,
    /// Which prompt it makes of a chat.
    pub(super) rendering: Option<Fingerprint>,
    pub(super) settled: bool,
}

/// How answers of one dialect can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    /// What was seen to work, the most exact first.
    pub methods: Vec<Method>,
    /// Whether a prompt with the answer so far is cut into the very tokens that were generated.
    pub round_trip: Probed,
}

/// Tokens of something fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    way: Way,
    digest: String,
}

/// How the tokens were learned. Two ways may differ in the tokens that a prompt begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// It was asked for them.
    Asked,
    /// They came with an answer.
    Told,
}

impl Fingerprint {
    pub(super) fn new(way: Way, ids: &[u32]) -> Self {
        let mut hash = Sha256::new();
        for id in ids {
            hash.update(id.to_be_bytes());
        }
        Self {
            way,
            digest: hex(&hash.finalize()),
        }
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn same(&self, other: &Self) -> Probed {
        match (self.digest == other.digest, self.way == other.way) {
            (true, _) => Probed::Yes,
            (false, true) => Probed::No,
            (false, false) => Probed::Unknown,
        }
    }
}

impl Ways {
    const NONE: Self = Self {
        methods: Vec::new(),
        round_trip: Probed::Unknown,
    };
}

impl Examination {
    /// What an identity alone shows.
    pub(super) fn new(identity: Identity, declared: Engine) -> Self {
        let mut examination = Self::unexamined(identity);
        let engine = engine(&examination.identity, declared);
        examination.add("engine", engine, ENGINE);
        let model = model(&examination.identity);
        examination.add("model", model, "name one of these models (--model)");
        let context = match examination.identity.context() {
            Some(tokens) => Judged::ok(format!("{tokens} tokens")),
            None => Judged::unknown("it is not told"),
        };
        let remedy = "nothing: what does not fit is refused by the server itself";
        examination.add("context", context, remedy);
        examination
    }

    fn unexamined(identity: Identity) -> Self {
        Self {
            checks: Vec::new(),
            chat: Ways::NONE,
            completions: Ways::NONE,
            messages: Ways::NONE,
            keeps_word: Probed::Unknown,
            keeps_space: Probed::Unknown,
            reads_controls: Probed::Unknown,
            tokenisation: None,
            rendering: None,
            settled: true,
            identity,
        }
    }

    /// What is said of a hosted service, of which nothing is asked: its answers cost money. `None` for an engine that is
    /// examined.
    #[must_use]
    pub fn hosted(declared: Engine) -> Option<Self> {
        if declared != Engine::Anthropic {
            return None;
        }
        let evidence =
            format!("declared as {declared}, a hosted service, of which nothing is asked");
        let identity = Identity {
            engine: None,
            evidence: evidence.clone(),
            description: Description::default(),
            models: Vec::new(),
            model: None,
        };
        let mut examination = Self::unexamined(identity);
        examination.add("engine", Judged::unknown(evidence), HOSTED);
        let prefill =
            "models up to Claude 4.5 go on with the beginning of an answer, newer ones refuse it";
        examination.add("messages.prefill", Judged::unknown(prefill), HOSTED);
        Some(examination)
    }

    /// Whether asking again would show the same. Otherwise some of it was not answered, for a reason that may pass.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Whether an unfinished answer is left alone in front of what goes on with it. Completions have no template.
    #[must_use]
    pub fn keeps_prefix(&self, dialect: Dialect) -> Probed {
        match dialect {
            // An engine renders both by one template.
            Dialect::OpenAiChat | Dialect::AnthropicMessages => self.keeps_word,
            Dialect::OpenAiCompletions => Probed::Yes,
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic => {
                Probed::Unknown
            }
        }
    }

    /// How an answer of this dialect can go on there, the most exact first: what was seen to work, and by its text only
    /// where that is left alone.
    #[must_use]
    pub fn methods(&self, dialect: Dialect) -> Vec<Method> {
        let ways = match dialect {
            Dialect::OpenAiChat => &self.chat,
            Dialect::OpenAiCompletions => &self.completions,
            Dialect::AnthropicMessages => &self.messages,
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mcp | Dialect::Generic => {
                return Vec::new();
            }
        };
        let keeps = self.keeps_prefix(dialect) == Probed::Yes;
        let mut methods = ways.methods.clone();
        methods.retain(|&method| method == Method::TokenIds || keeps);
        methods
    }

    /// Whether it was looked at how messages go on there.
    pub(super) fn was_asked_for_messages(&self) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.name == "messages.prefill")
    }

    /// Takes down what something showed.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        judged: Judged,
        remedy: &'static str,
    ) -> Finding {
        let finding = judged.finding;
        self.settled &= !judged.passing;
        self.checks.push(judged.into_check(name, remedy));
        finding
    }
}

fn engine(identity: &Identity, declared: Engine) -> Judged {
    let evidence = &identity.evidence;
    match identity.engine {
        None => Judged::unknown(evidence).mended_by(HIDDEN),
        Some(told) if declared == Engine::Unknown || told.as_str() == declared.as_str() => {
            Judged::ok(format!("{told}: {evidence}"))
        }
        Some(told) => Judged::problem(format!(
            "declared as {declared}, but it is {told}: {evidence}"
        )),
    }
}

fn model(identity: &Identity) -> Judged {
    match &identity.model {
        Some(model) => Judged::ok(match &model.root {
            Some(root) => format!("{} from {root}", model.name),
            None => model.name.clone(),
        }),
        None => {
            let some: Vec<&str> = identity.models.iter().take(8).map(String::as_str).collect();
            Judged::problem(format!(
                "it is not served there; these are: {}",
                some.join(", ")
            ))
        }
    }
}

const ENGINE: &str = "declare the engine that it is, here by --engine, of a backend by its option engine; or ask another server";
const HIDDEN: &str = "let the paths of the engine through to here, beside /v1/*; where a gateway hides them, vouch for the group (--vouched)";

const HOSTED: &str =
    "put backends of one model into one group, allow prefill there, and vouch for it (--vouched)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_were_learned_in_two_ways_may_differ() {
        let asked = Fingerprint::new(Way::Asked, &[1, 2]);
        let other = Fingerprint::new(Way::Asked, &[2, 1]);
        let told = Fingerprint::new(Way::Told, &[1, 2]);
        assert_eq!(asked.same(&asked), Probed::Yes);
        assert_eq!(asked.same(&told), Probed::Yes);
        assert_eq!(asked.same(&other), Probed::No);
        assert_eq!(other.same(&told), Probed::Unknown);
    }
}
