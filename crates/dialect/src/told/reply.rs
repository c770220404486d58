//! A short answer that was asked for to see how an engine goes on, read whole.

use streamweld_sse::{DecodeError, Decoder, Limits};

use crate::{BodyEnd, Dialect, Failure, Judge, Trail, Transcript, Verdict};

/// An event stream of one choice, from its head to its end.
#[derive(Debug)]
pub struct Reply {
    chunks: Vec<Chunk>,
    transcript: Transcript,
}

#[derive(Debug)]
struct Chunk {
    data: String,
    /// How much text there is behind it.
    shown: usize,
}

/// Why an answer says nothing.
#[derive(Debug, thiserror::Error)]
pub enum BadReply {
    /// It is no event stream.
    #[error(transparent)]
    NoStream(#[from] DecodeError),
    /// It did not come to its end.
    #[error("the answer did not come to its end")]
    Failed(Failure),
}

impl Reply {
    /// Reads the body of a response.
    ///
    /// # Errors
    /// It is not a whole answer.
    pub fn read(dialect: Dialect, mut body: &[u8], end: BodyEnd) -> Result<Self, BadReply> {
        let mut judge = Judge::new(dialect);
        let mut transcript = Transcript::new(dialect);
        let mut chunks = Vec::new();
        let mut decoder = Decoder::new(Limits {
            max_event: body.len(),
        });
        while let Some(event) = decoder.decode(&mut body)? {
            judge.event(&event);
            transcript.push(&event);
            chunks.push(Chunk {
                data: event.data().into_owned(),
                shown: transcript.text().len(),
            });
        }
        match judge.end(end, decoder.tail_event().as_ref()) {
            Verdict::Done(_) => Ok(Self { chunks, transcript }),
            Verdict::Failed(failure) => Err(BadReply::Failed(failure)),
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.transcript.text()
    }

    /// Why it ended.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.transcript.reasons().next().map(|(_, reason)| reason)
    }

    /// Whether it is nothing but text: without reasoning, without calls.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.transcript.reasoning().is_empty() && !self.transcript.has_tool_calls()
    }

    /// The tokens of the answer, as upstream counted them.
    #[must_use]
    pub fn counted(&self) -> Option<u64> {
        let usage = self.transcript.usage().filter(|usage| !usage.estimated);
        usage.and_then(|usage| usage.completion_tokens)
    }

    /// The tokens of the prompt, as upstream counted them.
    #[must_use]
    pub fn prompt_tokens(&self) -> Option<u64> {
        self.transcript.usage()?.prompt_tokens
    }

    /// How many chunks it has.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The text of its first chunks.
    #[must_use]
    pub fn text_of(&self, chunks: usize) -> &str {
        let shown = chunks.checked_sub(1).and_then(|last| self.chunks.get(last));
        &self.text()[..shown.map_or(0, |chunk| chunk.shown)]
    }

    /// What its first chunks tell of tokens.
    #[must_use]
    pub fn trail(&self, chunks: usize) -> Trail {
        let mut trail = Trail::default();
        for chunk in self.chunks.iter().take(chunks) {
            trail.push(&chunk.data);
        }
        trail
    }
}
