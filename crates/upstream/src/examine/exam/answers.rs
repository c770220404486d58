//! Short answers, and how they go on.

use streamweld_dialect::{Added, Continuation, Dialect, Method, Reply, SoFar};

use super::Exam;
use crate::examine::ask::Untold;
use crate::examine::check::Judged;
use crate::examine::judge::{self, ByIds};
use crate::examine::{Examination, Finding, Ways, prompts};

/// What the checks of a dialect are called.
pub(super) struct Names {
    token_ids: &'static str,
    prefill: &'static str,
    round_trip: &'static str,
}

pub(super) const CHAT: Names = Names {
    token_ids: "chat.token_ids",
    prefill: "chat.prefill",
    round_trip: "chat.round_trip",
};

pub(super) const COMPLETIONS: Names = Names {
    token_ids: "completions.token_ids",
    prefill: "completions.prefill",
    round_trip: "completions.round_trip",
};

/// A short answer, and what it was asked for with.
pub(super) struct First {
    path: &'static str,
    pub(super) body: String,
    pub(super) reply: Reply,
}

impl Exam<'_> {
    /// How answers of a dialect go on, and the tokens of a prompt where they came with an answer.
    pub(super) async fn answers(
        &self,
        dialect: Dialect,
        names: &Names,
        out: &mut Examination,
    ) -> (Ways, Option<Vec<u32>>) {
        let mut methods = Vec::new();
        let first = match self.first(dialect).await {
            Ok(first) => first,
            Err(judged) => {
                out.add(names.token_ids, judged.clone(), TOKEN_IDS);
                out.add(names.prefill, judged.clone(), PREFILL);
                let round_trip = out.add(names.round_trip, judged, ROUND_TRIP).into();
                return (
                    Ways {
                        methods,
                        round_trip,
                    },
                    None,
                );
            }
        };
        let cut = judge::cut_ids(&first.reply);
        let judged = match &cut {
            Ok(cut) => self.by_ids(dialect, &first, cut).await,
            Err(judged) => judged.clone(),
        };
        if out.add(names.token_ids, judged, TOKEN_IDS) == Finding::Ok {
            methods.push(Method::TokenIds);
        }
        let judged = self.by_text(dialect, &first).await;
        if out.add(names.prefill, judged, PREFILL) == Finding::Ok {
            methods.push(Method::Prefill);
        }
        let judged = match &cut {
            Ok(cut) => self.round_trip(dialect, &first, cut).await,
            Err(judged) => Judged::unknown(&judged.evidence),
        };
        let round_trip = out.add(names.round_trip, judged, ROUND_TRIP).into();
        let trail = first.reply.trail(first.reply.chunks());
        let prompt = trail.prompt().map(<[u32]>::to_vec);
        (
            Ways {
                methods,
                round_trip,
            },
            prompt,
        )
    }

    /// A short answer with all that the engine tells of it.
    pub(super) async fn first(&self, dialect: Dialect) -> Result<First, Judged> {
        let question = prompts::short_answer(dialect, self.model);
        let added = Added::to(self.engine, dialect, &question.body, true);
        let body = added.map_or(question.body, |(body, _)| body);
        let reply = self.reply(dialect, question.path, body.clone()).await?;
        if !reply.is_text() {
            let shown = "its answer is not text alone, but reasoning or a call";
            return Err(Judged::unknown(shown).mended_by(NO_TEXT));
        }
        Ok(First {
            path: question.path,
            body,
            reply,
        })
    }

    async fn reply(
        &self,
        dialect: Dialect,
        path: &'static str,
        body: String,
    ) -> Result<Reply, Judged> {
        let answer = self.asker.stream(path, body).await;
        let answer = answer.map_err(|untold| Judged::refused(&untold))?;
        let reply = Reply::read(dialect, &answer.body, answer.end);
        // An engine that breaks off, or says that it failed, may do better the next time.
        reply.map_err(|_| Judged::untold(&Untold::Cut))
    }

    async fn goes_on(
        &self,
        dialect: Dialect,
        first: &First,
        so_far: SoFar<'_>,
        tokens: u64,
    ) -> Result<Reply, Judged> {
        let body = self.continuation(dialect, &first.body, so_far, tokens)?;
        self.reply(dialect, first.path, body).await
    }

    pub(super) fn continuation(
        &self,
        dialect: Dialect,
        first: &str,
        so_far: SoFar<'_>,
        tokens: u64,
    ) -> Result<String, Judged> {
        let continuation = Continuation {
            engine: self.engine,
            so_far,
            tokens,
        };
        continuation.body(dialect, first).map_err(Judged::problem)
    }

    async fn by_ids(&self, dialect: Dialect, first: &First, cut: &ByIds) -> Judged {
        let so_far = SoFar::Ids(&cut.ids.all);
        match self
            .goes_on(dialect, first, so_far, cut.ids.of_answer)
            .await
        {
            Ok(second) => judge::went_on_by_ids(&first.reply, cut, &second),
            Err(judged) => judged,
        }
    }

    pub(super) async fn by_text(&self, dialect: Dialect, first: &First) -> Judged {
        let cut = match judge::cut_text(&first.reply) {
            Ok(cut) => cut,
            Err(judged) => return judged,
        };
        let so_far = SoFar::Text(cut.kept);
        match self.goes_on(dialect, first, so_far, cut.tokens).await {
            Ok(second) => judge::went_on_by_text(&first.reply, &cut, &second),
            Err(judged) => judged,
        }
    }

    async fn round_trip(&self, dialect: Dialect, first: &First, cut: &ByIds) -> Judged {
        let shown = &first.reply.text()[..cut.shown];
        let tokens = if dialect == Dialect::OpenAiCompletions {
            let prompt = [prompts::LIST, shown].concat();
            self.tokens_of_prompt(&prompt).await
        } else {
            match self.continuation(dialect, &first.body, SoFar::Text(shown), 0) {
                Ok(body) => self.rendered_tokens(&body).await,
                Err(judged) => Err(judged),
            }
        };
        match tokens {
            Ok(tokens) => judge::comes_back(&cut.ids.all, &tokens),
            Err(judged) => judged,
        }
    }
}

const TOKEN_IDS: &str = "allow prefill for its group (--migration GROUP=prefill), or take an engine that tells ids and goes on with them";
pub(super) const PREFILL: &str = "leave its group at exact, the default; where ids are not to be had either, take a release of the engine that goes on with an answer";
const ROUND_TRIP: &str = "nothing, for what goes on by token ids and for prefill at temperature 0; above it prefill is refused";
const NO_TEXT: &str =
    "name a model that answers with text alone (--model); other answers do not go on";
