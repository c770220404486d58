//! How Anthropic messages go on: by their text alone, for nothing tells the ids of their tokens.

use streamweld_dialect::{Dialect, Method, Question, ask_count, read_count};

use super::Exam;
use super::answers::{First, PREFILL};
use crate::examine::check::Judged;
use crate::examine::{Examination, Finding};

impl Exam<'_> {
    pub(super) async fn messages(&self, out: &mut Examination) {
        let dialect = Dialect::AnthropicMessages;
        let (prefill, count) = match self.first(dialect).await {
            Ok(first) => (
                self.by_text(dialect, &first).await,
                self.counts(&first).await,
            ),
            Err(judged) => (judged.clone(), judged),
        };
        if out.add("messages.prefill", prefill, PREFILL) == Finding::Ok {
            out.messages.methods.push(Method::Prefill);
        }
        out.add("messages.count", count, COUNT);
    }

    /// Whether it counts a prompt as it does when it answers. Each message has a limit, which is kept by that.
    async fn counts(&self, first: &First) -> Judged {
        let question = ask_count(&first.body).map(|body| Question {
            path: "/v1/messages/count_tokens",
            body,
        });
        let counted = match self.told(question, read_count).await {
            Ok(counted) => counted,
            Err(judged) => return judged,
        };
        match first.reply.prompt_tokens() {
            None => Judged::unknown("its answer did not say how many tokens the prompt has"),
            Some(told) if told == counted => Judged::ok(format!(
                "counts {counted} tokens of the prompt, as it did for its answer"
            )),
            Some(told) => Judged::problem(format!(
                "counts {counted} tokens of the prompt, and {told} for its answer"
            )),
        }
    }
}

const COUNT: &str = "let /v1/messages/count_tokens through to here; without it messages that have a limit do not go on";
