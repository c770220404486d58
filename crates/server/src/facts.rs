//! What is known of one backend that could go on with what another began, as the gates ask it.

use std::sync::Arc;

use streamweld_dialect::{Dialect, Engine};
use streamweld_generation::migration::{Facts, Probed};
use streamweld_upstream::examine::{self, Examination, compare};
use streamweld_upstream::fleet::{self, Credential, Member};

use crate::app::App;
use crate::examined;

/// One that is to go on, and what it is asked.
pub(crate) struct Wanted<'a> {
    /// Who would go on.
    pub(crate) member: &'a Member,
    /// Who is left.
    pub(crate) from: &'a Member,
    /// What was known of it when it was asked.
    pub(crate) before: Option<&'a Examination>,
    pub(crate) dialect: Dialect,
    /// The model that the request named.
    pub(crate) model: Option<&'a str>,
    /// The caller has shown a credential.
    pub(crate) has_callers: bool,
}

impl App {
    /// What software a backend is, by its own words, or by the operator's where they vouch for it.
    pub(crate) fn known_engine(&self, member: &Member) -> Option<Engine> {
        if self.backends.migration.is_vouched(member.group()) {
            return engine(member.engine());
        }
        let examination = self.examined.now(member.id())?;
        let declared = member.engine();
        let told = examination.identity.engine?;
        (declared == fleet::Engine::Unknown || engine(declared) == Some(told)).then_some(told)
    }

    /// What is known of one that could go on.
    pub(crate) fn facts(&self, wanted: &Wanted<'_>) -> Facts {
        let Wanted {
            member,
            from,
            dialect,
            ..
        } = *wanted;
        let engine = self.known_engine(member);
        let facts = Facts {
            name: Arc::from(member.name()),
            is_pending: examined::concerns(self, member)
                && self.examined.now(member.id()).is_none(),
            engine,
            group: member.group().map(Arc::from),
            same_model: Probed::Unknown,
            keeps_prefix: Probed::Unknown,
            methods: Vec::new(),
            context: None,
            has_credential: wanted.has_callers
                || matches!(member.credential(), Credential::Owned(_))
                || matches!(from.credential(), Credential::PassThrough),
        };
        if self.backends.migration.is_vouched(member.group()) {
            return Facts {
                same_model: Probed::Yes,
                keeps_prefix: Probed::Yes,
                methods: engine.map_or(Vec::new(), |engine| engine.methods(dialect).to_vec()),
                ..facts
            };
        }
        let Some(examination) = self.examined.now(member.id()) else {
            return facts;
        };
        Facts {
            same_model: self.same_model(wanted, &examination),
            keeps_prefix: probed(examination.keeps_prefix(dialect)),
            methods: examination.methods(dialect),
            context: examination.identity.context(),
            ..facts
        }
    }

    fn same_model(&self, wanted: &Wanted<'_>, examination: &Examination) -> Probed {
        if !is_examined(examination, wanted.model) {
            return Probed::Unknown;
        }
        wanted.before.map_or(Probed::Unknown, |before| {
            probed(compare(before, examination).same_model(wanted.dialect))
        })
    }
}

/// Whether what was found out is about the model of a request: of several models of one backend, one was looked at.
fn is_examined(examination: &Examination, model: Option<&str>) -> bool {
    let identity = &examination.identity;
    let looked_at = identity.model.as_ref().map(|served| served.name.as_str());
    identity.models.len() <= 1 || (model.is_some() && model == looked_at)
}

fn probed(probed: examine::Probed) -> Probed {
    match probed {
        examine::Probed::Yes => Probed::Yes,
        examine::Probed::No => Probed::No,
        examine::Probed::Unknown => Probed::Unknown,
    }
}

/// Those whose answers can be continued.
fn engine(engine: fleet::Engine) -> Option<Engine> {
    match engine {
        fleet::Engine::Vllm => Some(Engine::Vllm),
        fleet::Engine::Sglang => Some(Engine::Sglang),
        fleet::Engine::LlamaCpp => Some(Engine::LlamaCpp),
        fleet::Engine::Anthropic => Some(Engine::Anthropic),
        _ => None,
    }
}
