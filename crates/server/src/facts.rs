//! What is known of one backend that could go on with what another began, as the gates ask it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use streamweld_dialect::{Dialect, Engine};
use streamweld_generation::migration::{Facts, Probed};
use streamweld_upstream::examine::{self, Examination, Likeness};
use streamweld_upstream::fleet::{self, Credential, Member, MemberId};

use crate::app::App;
use crate::examined;

/// One that is to go on, and what it is asked.
pub(crate) struct Wanted<'a> {
    /// Who would go on.
    pub(crate) member: &'a Member,
    /// Who is left.
    pub(crate) from: &'a Former,
    pub(crate) dialect: Dialect,
    /// The model that the request named.
    pub(crate) model: Option<&'a str>,
    /// What the caller has shown.
    pub(crate) callers: Callers,
}

/// One that was asked, as far as it has to be known for whoever goes on.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    /// Which it was: whoever comes back is another.
    pub(crate) id: MemberId,
    /// It was shown the callers' credentials.
    pub(crate) passes_through: bool,
    /// What was known of it when it was asked.
    pub(crate) known: Option<Arc<Likeness>>,
    /// Itself, where it is one of this server's.
    pub(crate) member: Option<Arc<Member>>,
}

impl Former {
    /// One that was asked by another replica.
    pub(crate) const ELSEWHERE: MemberId = MemberId::of(u64::MAX);
}

/// By what callers prove themselves to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Callers {
    /// They have shown nothing.
    Nothing,
    /// The request has it.
    Shown,
    /// They have shown something that was not kept.
    NotKept,
}

impl App {
    /// What software a backend is, by its own words, or by the operator's where they vouch for it.
    pub(crate) fn known_engine(&self, member: &Member) -> Option<Engine> {
        if self.settings().migration.is_vouched(member.group()) {
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
            has_credential: matches!(member.credential(), Credential::Owned(_))
                || match wanted.callers {
                    Callers::Shown => true,
                    Callers::Nothing => from.passes_through,
                    Callers::NotKept => false,
                },
        };
        if self.settings().migration.is_vouched(member.group()) {
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
        let before = wanted.from.known.as_deref();
        before.map_or(Probed::Unknown, |before| {
            probed(before.same_model(&Likeness::of(examination), wanted.dialect))
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
