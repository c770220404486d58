//! The judge: reads each complete event as it is committed and says what it means for the end.
//!
//! It promises that an answer is `done` only by its dialect's own success reason for everything
//! that was started, and, unless the sentinel came, for as much as was asked for. It is on the hot
//! path: an ordinary event costs a few byte searches over its data and no allocation; JSON is parsed
//! only for an event that could matter.
//!
//! It holds no time (the caller keeps the grace while [`Judge::is_settled`] holds) and no
//! text (see [`Transcript`](crate::Transcript)).

use streamweld_sse::Event;

use crate::{
    Dialect, Done, End, Failure, FailureClass, Verdict,
    anthropic::{self, Blocks},
    gemini::{self, Candidates},
    generic,
    mcp::{self, Calls},
    openai::{self, Choices},
    responses::{self, Response},
};

/// The reading of one attempt, event by event, until there is a verdict.
///
/// A verdict stands: after an event was marked [`Mark::End`] or [`Mark::Failed`], every later event
/// is a [`Mark::Skip`] and [`Judge::end`] repeats the verdict.
#[derive(Debug, Clone)]
pub struct Judge {
    reading: Reading,
    verdict: Option<Verdict>,
}

#[derive(Debug, Clone)]
enum Reading {
    OpenAi(Choices),
    Responses(Response),
    Anthropic(Blocks),
    Gemini(Candidates),
    Mcp(Calls),
    Generic,
}

/// What to do with one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// Commit it as it came.
    Event,
    /// Commit it with the event behind it, or with an end that is a success; and not at all if a failure comes first.
    /// Clients take it for the end of a whole answer, and some read no further.
    Hold,
    /// Do not journal it: no data in it, or it comes after the end.
    Skip,
    /// Commit it, it is the sentinel of a whole answer; then the terminal `done`.
    End(Done),
    /// Do not commit it: it tells that the attempt failed.
    Failed {
        /// What it tells.
        failure: Failure,
        /// Where the event also carried output: the same event with the failure taken out, as its
        /// wire lines (no id line, no blank line), to be committed instead of it.
        salvage: Option<Vec<u8>>,
    },
}

/// How the body of a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyEnd {
    /// The proper end of its framing.
    Clean,
    /// A reset, or the end of the connection before the end of the framing.
    Cut,
    /// Nothing came for as long as the caller waits.
    Silence,
}

impl Judge {
    /// A judge for one attempt, before its first event.
    pub fn new(dialect: Dialect) -> Self {
        let reading = match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => Reading::OpenAi(Choices::default()),
            Dialect::OpenAiResponses => Reading::Responses(Response::default()),
            Dialect::AnthropicMessages => Reading::Anthropic(Blocks::default()),
            Dialect::Gemini => Reading::Gemini(Candidates::default()),
            Dialect::Mcp => Reading::Mcp(Calls::default()),
            Dialect::Generic => Reading::Generic,
        };
        Self {
            reading,
            verdict: None,
        }
    }

    /// Tells how many choices were asked for (see
    /// [`RequestShape::choices`](crate::RequestShape::choices)). Until it is told, one. It may be
    /// told at any time before the end, and may unsettle; a verdict stands. Dialects other than chat,
    /// completions and MCP take no notice.
    pub fn expect(&mut self, choices: usize) {
        match &mut self.reading {
            Reading::OpenAi(known) => known.expect(choices),
            Reading::Mcp(calls) => calls.expect(choices),
            Reading::Responses(_)
            | Reading::Anthropic(_)
            | Reading::Gemini(_)
            | Reading::Generic => {}
        }
    }

    /// Tells the id of the one call that is to be answered (see
    /// [`RequestShape::call`](crate::RequestShape::call)), as JSON. Until it is told, any answer counts. Dialects other
    /// than MCP take no notice.
    pub fn answers(&mut self, call: &str) {
        if let Reading::Mcp(calls) = &mut self.reading {
            calls.answers(call);
        }
    }

    /// Reads the next complete event.
    pub fn event(&mut self, event: &Event<'_>) -> Mark {
        if self.verdict.is_some() {
            return Mark::Skip;
        }
        let mark = self.reading.event(event);
        match &mark {
            Mark::Event | Mark::Hold | Mark::Skip => {}
            Mark::End(done) => self.verdict = Some(Verdict::Done(done.clone())),
            Mark::Failed { failure, .. } => self.verdict = Some(Verdict::Failed(failure.clone())),
        }
        mark
    }

    /// Another attempt goes on with what has failed: what it sends is judged as the rest of the same answer.
    pub fn resume(&mut self) {
        if let Some(Verdict::Failed(_)) = self.verdict {
            self.verdict = None;
        }
        if let Reading::Anthropic(blocks) = &mut self.reading {
            blocks.resume();
        }
    }

    /// Whether everything started has its success reason, and as much was started as was asked for.
    /// While this holds the end of the body, in whatever way, is `done`, and only an error in the
    /// stream is not. An event that starts something more unsettles; a verdict does not.
    ///
    /// The sentinel may end a success without it: it says itself that no more choices will come. In Gemini it never
    /// holds, because there a proper end of the body belongs to a success.
    pub fn is_settled(&self) -> bool {
        match &self.reading {
            Reading::OpenAi(choices) => choices.is_settled(),
            Reading::Responses(response) => response.is_settled(),
            Reading::Anthropic(blocks) => blocks.is_settled(),
            Reading::Mcp(calls) => calls.is_settled(),
            Reading::Gemini(_) | Reading::Generic => false,
        }
    }

    /// The verdict when the body has ended without one.
    ///
    /// `tail` is what an unterminated last block says. It was never an event, so it cannot make an
    /// answer whole; it can only show that the answer failed, and why.
    pub fn end(&self, how: BodyEnd, tail: Option<&Event<'_>>) -> Verdict {
        if let Some(verdict) = &self.verdict {
            return verdict.clone();
        }
        let reasons = match &self.reading {
            Reading::OpenAi(choices) => choices.reasons(),
            Reading::Responses(response) => response.reasons(),
            Reading::Anthropic(blocks) => blocks.reasons(),
            Reading::Gemini(candidates) => candidates.reasons(),
            Reading::Mcp(calls) => return calls.end(how),
            Reading::Generic => return generic::end(how),
        };
        if let Some(failure) = tail.and_then(|tail| self.failure_in(tail)) {
            return Verdict::Failed(failure);
        }
        let whole = match &self.reading {
            // A torn block shows that it went on.
            Reading::Gemini(candidates) => {
                candidates.is_finished() && how == BodyEnd::Clean && tail.is_none()
            }
            _ => self.is_settled(),
        };
        if whole {
            let end = match how {
                BodyEnd::Clean => End::Eof,
                BodyEnd::Cut => End::Cut,
                BodyEnd::Silence => End::Silence,
            };
            return Verdict::Done(Done { end, reasons });
        }
        let failure = match how {
            BodyEnd::Clean => truncated("the stream ended before the answer was complete"),
            BodyEnd::Cut => truncated("the connection was lost before the answer was complete"),
            BodyEnd::Silence => Failure::new(FailureClass::Stalled)
                .message("nothing came although the answer was not complete"),
        };
        Verdict::Failed(match tail {
            Some(tail) => failure.frame(&tail.data()),
            None => failure,
        })
    }

    /// The failure that a torn last block tells, if it tells one. That it is torn is not news.
    fn failure_in(&self, tail: &Event<'_>) -> Option<Failure> {
        match self.reading.clone().event(tail) {
            Mark::Failed { failure, .. } if failure.class != FailureClass::Truncated => {
                Some(failure)
            }
            Mark::Failed { .. } | Mark::Event | Mark::Hold | Mark::Skip | Mark::End(_) => None,
        }
    }
}

impl Reading {
    fn event(&mut self, event: &Event<'_>) -> Mark {
        match self {
            Self::OpenAi(choices) => openai::event(choices, event),
            Self::Responses(response) => responses::event(response, event),
            Self::Anthropic(blocks) => anthropic::event(blocks, event),
            Self::Gemini(candidates) => gemini::event(candidates, event),
            Self::Mcp(calls) => mcp::event(calls, event),
            Self::Generic => generic::event(event),
        }
    }
}

/// The most choices, candidates or open blocks of one answer that are told apart. The largest batch seen is a
/// few thousand prompts; without a bound an upstream could fill the memory by counting.
///
/// An answer of more is never taken for whole.
pub(crate) const MAX_PARTS: usize = 16 * 1024;

pub(crate) fn truncated(message: &str) -> Failure {
    Failure::new(FailureClass::Truncated).message(message)
}
