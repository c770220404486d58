//! What a backend that could go on is asked, where that alone could open a gate. It costs nothing there.

use std::time::Duration;

use streamweld_dialect::{
    COUNT, Continuation, Dialect, Engine, Method, SoFar, ask_count, model_of, prompt_of,
    read_count, read_text, read_tokens,
};
use tokio::time::timeout;

use super::gates::Gate;
use super::mover::Mover;
use super::shown::{SoFarShown, cut};
use super::{Candidate, Facts, Judged, NoCount, NotBegun, Probed};
use crate::source::ByteSource;

/// How long a backend may take to say how it cuts a prompt, or counts it.
const INQUIRY: Duration = Duration::from_secs(2);

/// What was found out.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Whether it cuts prompt and answer into the tokens that were generated.
    pub(super) cut_alike: Probed,
    /// How many tokens it says that it would be given of the answer.
    count: Option<Result<u64, NoCount>>,
}

impl Found {
    /// Nobody was asked.
    pub(super) const NOTHING: Self = Self {
        cut_alike: Probed::Unknown,
        count: None,
    };

    pub(super) fn kept(&self) -> Option<u64> {
        self.count?.ok()
    }

    pub(super) fn uncounted(&self) -> Option<NoCount> {
        self.count?.err()
    }

    /// Whether asking again may find out more.
    pub(super) fn may_pass(&self) -> bool {
        self.uncounted() == Some(NoCount::Unheard)
    }
}

impl SoFarShown {
    /// What the gates say of a backend, once it was asked.
    pub(super) async fn weigh<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
        facts: &Facts,
    ) -> (Judged, Found) {
        let mut found = Found::NOTHING;
        let mut judged = self.judge(mover, Some(facts), &found);
        if judged.method != Some(Method::Prefill) {
            return (judged, found);
        }
        if judged.only_seam() {
            found.cut_alike = self.is_cut_alike(mover, place).await;
            judged = self.judge(mover, Some(facts), &found);
        }
        // Of nothing that it is given there is nothing to count.
        let is_given = cut(mover.dialect(), self.transcript.text(), None)
            .is_ok_and(|cut| !cut.kept.is_empty());
        let counts = self.is_counted_by_asking() && is_given;
        if counts && judged.refusing().all(|gate| gate == Gate::Tokens) {
            found.count = Some(self.count(mover, place).await);
            judged = self.judge(mover, Some(facts), &found);
        }
        (judged, found)
    }

    /// A stream of messages counts at its end alone.
    fn is_counted_by_asking(&self) -> bool {
        self.transcript.dialect() == Dialect::AnthropicMessages
    }

    /// Nobody is asked to count where something else refuses, so that is what is told.
    pub(super) fn unless_asked_later(&self, mut judged: Judged, found: &Found) -> Judged {
        let is_asked = !self.is_counted_by_asking() || found.count.is_some();
        if !is_asked && judged.refusing().any(|gate| gate != Gate::Tokens) {
            let mut verdicts = judged.verdicts.iter_mut();
            if let Some(tokens) = verdicts.find(|verdict| verdict.gate == Gate::Tokens) {
                tokens.refusal = None;
            }
        }
        judged
    }

    /// How many tokens a backend would be given of the answer: so many more has the prompt with it than without. That is
    /// believed where it counts the prompt alone as the first backend did.
    async fn count<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
    ) -> Result<u64, NoCount> {
        let usage = self.transcript.usage();
        let prompt = usage.and_then(|usage| usage.prompt_tokens);
        let prompt = prompt.ok_or(NoCount::NoPrompt)?;
        let (alone, whole) = self.counted(mover, place).ok_or(NoCount::Untold)?;
        let inquiry = async {
            tokio::try_join!(
                tokens_of_message(place, alone),
                tokens_of_message(place, whole)
            )
        };
        let (alone, whole) = timeout(INQUIRY, inquiry)
            .await
            .unwrap_or(Err(NoCount::Unheard))?;
        if alone != prompt {
            return Err(NoCount::Otherwise);
        }
        whole.checked_sub(prompt).ok_or(NoCount::Otherwise)
    }

    /// The two questions.
    fn counted<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
    ) -> Option<(String, String)> {
        let first = std::str::from_utf8(self.request.as_ref()?).ok()?;
        let cut = cut(mover.dialect(), self.transcript.text(), None).ok()?;
        let continuation = Continuation {
            engine: place.leg(None).engine?,
            so_far: SoFar::Text(cut.kept),
            tokens: 0,
        };
        let whole = continuation.body(mover.dialect(), first).ok()?;
        Some((ask_count(first)?, ask_count(&whole)?))
    }

    /// Whether a backend cuts prompt and answer into the tokens that were generated.
    async fn is_cut_alike<S: ByteSource>(
        &self,
        mover: &Mover<S>,
        place: &dyn Candidate<S>,
    ) -> Probed {
        let inquiry = async {
            let trail = self.told(mover)?;
            let engine = place.leg(None).engine?;
            let first = std::str::from_utf8(self.request.as_ref()?).ok()?;
            let continuation = Continuation {
                engine,
                so_far: SoFar::Text(self.transcript.text()),
                tokens: 0,
            };
            let whole = continuation.body(mover.dialect(), first).ok()?;
            let prompt = tokens_of_prompt(mover.dialect(), engine, place, first).await?;
            let whole = tokens_of_prompt(mover.dialect(), engine, place, &whole).await?;
            Some(trail.is_cut_alike(&prompt, &whole))
        };
        match timeout(INQUIRY, inquiry).await {
            Ok(Some(true)) => Probed::Yes,
            Ok(Some(false)) => Probed::No,
            Ok(None) | Err(_) => Probed::Unknown,
        }
    }
}

/// How many tokens the prompt of a message has.
async fn tokens_of_message<S>(place: &dyn Candidate<S>, question: String) -> Result<u64, NoCount> {
    match place.inquire_behind(COUNT, question).await {
        Ok(told) => read_count(&told).ok_or(NoCount::Untold),
        Err(NotBegun::Refused(_)) => Err(NoCount::Untold),
        Err(NotBegun::Failed) => Err(NoCount::Unheard),
    }
}

/// How a backend cuts the prompt of a request into tokens.
async fn tokens_of_prompt<S>(
    dialect: Dialect,
    engine: Engine,
    place: &dyn Candidate<S>,
    request: &str,
) -> Option<Vec<u32>> {
    let of_text = |text: &str| engine.ask_prompt_tokens(&model_of(request), text);
    let question = match dialect {
        Dialect::OpenAiCompletions => of_text(&prompt_of(request)?)?,
        _ => match engine.ask_rendered_tokens(request) {
            Some(question) => question,
            None => {
                let rendered = engine.ask_rendered_text(request)?;
                of_text(&read_text(&place.inquire(rendered).await?)?)?
            }
        },
    };
    read_tokens(&place.inquire(question).await?)
}
