//! What an engine tells of the tokens of an answer, chunk by chunk: their ids, and how many there are.
//!
//! Ids make a continuation exact, if they are all there and end where a character does. Neither is given: one engine
//! leaves out the first ids of a character that takes several; and a prompt that ends within a character makes another
//! one write the whole prompt again, what the system was told included. So an answer is only taken up to the last chunk
//! that showed text, and what lies behind it, shown by nobody yet, is generated anew.
//!
//! Counts keep a limit: the second part may have what the first has left of it.

mod piece;

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;

use self::piece::{Count, Piece};

/// The tokens of an answer with one choice, as far as they were told.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    prompt: Option<Vec<u32>>,
    /// Tokens of the prompt of the first attempt: a later one counts what it is given of the answer among its own.
    prompt_tokens: Option<u64>,
    /// Of this attempt.
    ids: Vec<u32>,
    /// Ids that were told behind the place at which this attempt began.
    told: Vec<u32>,
    /// Tokens of the answer that stood before this attempt, and the bytes of their text.
    before: Mark,
    /// How many ids there were behind the last chunk that ended with a whole character, how many that chunk had, and the
    /// text up to there.
    clean: Option<Clean>,
    fault: Option<NoIds>,
    text: usize,
    /// What was counted behind each of the last chunks with text.
    marks: VecDeque<Mark>,
    /// What was counted last, if that was with the last chunk.
    counted: Option<u64>,
    /// Tokens that are known by their place in the answer, counted from one, and their id: not all are.
    places: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Clean {
    ids: usize,
    in_chunk: usize,
    text: usize,
}

/// So many tokens are so much text.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    tokens: u64,
    text: usize,
}

/// How many chunks with text are remembered. Each has a character at least, so this reaches as far back as a cut may.
const MARKS: usize = 80;

/// Everything up to a place at which a continuation can begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Of the rendered prompt and the answer, in order.
    pub all: Vec<u32>,
    /// How many tokens the answer has up to there.
    pub of_answer: u64,
    /// The last chunk had several, so that the last of them may belong to a character that is not shown yet: whether it
    /// does has to be asked (their text must end as the answer does).
    pub unsure: bool,
}

/// Why the ids are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIds {
    /// The engine tells none.
    #[error("the backend did not tell the ids of the prompt")]
    NoPrompt,
    /// A chunk had text without them.
    #[error("a piece of the answer came without the ids of its tokens")]
    Missing,
    /// They are fewer, or more, than the engine counted.
    #[error("the ids are not as many as the backend counted")]
    Disagree,
    /// Nothing was shown.
    #[error("no text was shown yet")]
    NoText,
    /// What stands for the half of a character was shown.
    #[error("the answer ends within a character")]
    WithinCharacter,
}

impl Trail {
    /// Behind a beginning of an answer that was given by its ids: `prompt` is all of them, of which `tokens` are the
    /// answer's, and these are `text` bytes. `told` are those behind it that were told already.
    #[must_use]
    pub fn behind_ids(prompt: Vec<u32>, tokens: u64, text: usize, told: Vec<u32>) -> Self {
        let prompt_tokens = (prompt.len() as u64).checked_sub(tokens);
        Self {
            prompt: Some(prompt),
            told,
            ..Self::behind_text(prompt_tokens, tokens, text)
        }
    }

    /// Behind a beginning that was given as text, and a prompt of so many tokens where that is known.
    #[must_use]
    pub fn behind_text(prompt_tokens: Option<u64>, tokens: u64, text: usize) -> Self {
        let before = Mark { tokens, text };
        Self {
            prompt_tokens,
            before,
            text,
            marks: VecDeque::from([before]),
            ..Self::default()
        }
    }

    /// The same with the tokens that were known of what stands before.
    #[must_use]
    pub fn knowing(mut self, earlier: &Self) -> Self {
        let known = earlier.places.iter().copied();
        self.places = known
            .filter(|(place, _)| *place <= self.before.tokens)
            .collect();
        self
    }

    /// Reads the data of the next chunk. What is no chunk says nothing.
    pub fn push(&mut self, data: &str) {
        let piece = self.read(data);
        self.add(piece);
    }

    /// What an attempt behind a part of the answer counts has that part among it.
    fn takes_prompt_tokens(&self) -> bool {
        self.prompt_tokens.is_none() && self.before.text == 0
    }

    fn add(&mut self, piece: Piece) {
        if self.takes_prompt_tokens() {
            self.prompt_tokens = piece.prompt_tokens;
        }
        let Some(told) = piece.choice else {
            return;
        };
        if self.prompt.is_none() {
            self.prompt = told.prompt;
        }
        let in_chunk = told.ids.len();
        self.ids.extend(told.ids);
        if in_chunk == 0 && told.text > 0 {
            self.fault = self.fault.or(Some(NoIds::Missing));
        }
        // Pieces of another process may say anything.
        self.text = self.text.saturating_add(told.text);
        if in_chunk > 0 || told.text > 0 || told.has_counts {
            self.count(told.count, in_chunk > 0);
        }
        if let (Some(place), Some(id)) = (self.counted, told.beside) {
            self.places.push((place, id));
        }
        if told.text > 0 && !told.is_torn {
            self.clean = Some(Clean {
                ids: self.ids.len(),
                in_chunk,
                text: self.text,
            });
        }
    }

    /// A count on the way is of everything of this attempt up to here.
    fn count(&mut self, told: Option<Count>, has_ids: bool) {
        let of_ids = self.ids.len() as u64;
        if matches!(told, Some(Count::Usage(tokens)) if tokens != of_ids) {
            self.fault = self.fault.or(Some(NoIds::Disagree));
        }
        let counted = told.map(Count::tokens).or(has_ids.then_some(of_ids));
        self.counted = counted.map(|counted| self.before.tokens.saturating_add(counted));
        let Some(tokens) = self.counted else {
            // A beginning, or an end, without text takes nothing back.
            if self.marks.back().is_some_and(|mark| mark.text < self.text) {
                self.marks.clear();
            }
            return;
        };
        let is_new = |mark: &Mark| mark.text < self.text;
        if self.marks.back().is_none_or(is_new) {
            if self.marks.len() == MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back(Mark {
                tokens,
                text: self.text,
            });
        }
    }

    /// The ids of the rendered prompt, where they were told.
    #[must_use]
    pub fn prompt(&self) -> Option<&[u32]> {
        self.prompt.as_deref()
    }

    /// How many ids of the answer were told, those behind the last text included.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The ids up to the last place at which a continuation can begin.
    ///
    /// # Errors
    /// They are not all there.
    pub fn ids(&self) -> Result<Ids, NoIds> {
        let prompt = self.prompt.as_ref().ok_or(NoIds::NoPrompt)?;
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Nothing was added to what it was given: that is where it can begin again.
        let nothing = (self.text == self.before.text && self.before.text > 0).then_some(Clean {
            ids: 0,
            in_chunk: 1,
            text: self.before.text,
        });
        let clean = self.clean.or(nothing).ok_or(NoIds::NoText)?;
        if clean.text < self.text {
            return Err(NoIds::WithinCharacter);
        }
        let answer = &self.ids[..clean.ids];
        Ok(Ids {
            all: prompt.iter().chain(answer).copied().collect(),
            of_answer: self.before.tokens.saturating_add(answer.len() as u64),
            unsure: clean.in_chunk > 1,
        })
    }

    /// The ids that were told behind that place, and come again from there.
    #[must_use]
    pub fn told_behind(&self) -> &[u32] {
        let new = &self.ids[self.clean.map_or(0, |clean| clean.ids)..];
        // Those of an earlier attempt, which has not been caught up with.
        if self.clean.is_none() && new.len() < self.told.len() {
            &self.told
        } else {
            new
        }
    }

    /// The bytes of the answer's text.
    #[must_use]
    pub fn text(&self) -> usize {
        self.text
    }

    /// How many tokens of the answer there are, where that was told with the last chunk.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        if self.is_miscounted() {
            return None;
        }
        self.counted
            .or((self.text == self.before.text).then_some(self.before.tokens))
    }

    /// How many tokens the first `text` bytes of the answer are, where a chunk ended there and a count was told with it.
    #[must_use]
    pub fn tokens_of(&self, text: usize) -> Option<u64> {
        if text == 0 {
            return Some(0);
        }
        if self.is_miscounted() {
            return None;
        }
        let mark = self.marks.iter().find(|mark| mark.text == text)?;
        Some(mark.tokens)
    }

    /// What was counted does not agree with the ids, and nobody knows which of them is wrong.
    fn is_miscounted(&self) -> bool {
        self.fault == Some(NoIds::Disagree)
    }

    /// Whether an engine cuts the answer into the very tokens that were generated. `prompt` is how it cuts what the answer
    /// is behind, and `whole` how it cuts both. Not every id has to be known: one engine tells the last one of each character
    /// alone. All that were told have to be in their places, and there have to be as many tokens as were counted.
    #[must_use]
    pub fn is_cut_alike(&self, prompt: &[u32], whole: &[u32]) -> bool {
        let (Some(tokens), Some(answer)) = (self.tokens(), whole.strip_prefix(prompt)) else {
            return false;
        };
        let at = |place: u64| answer.get(usize::try_from(place).ok()?.checked_sub(1)?);
        let ends = self
            .places
            .last()
            .is_some_and(|(place, _)| *place == tokens);
        ends && answer.len() as u64 == tokens
            && self.places.iter().all(|(place, id)| at(*place) == Some(id))
    }

    /// How many tokens the prompt has, where that was told.
    #[must_use]
    pub fn prompt_tokens(&self) -> Option<u64> {
        let ids = self.prompt.as_ref().filter(|_| self.before.text == 0);
        self.prompt_tokens.or(ids.map(|ids| ids.len() as u64))
    }
}

/// The ids of the prompt that a chunk says it continues, where it says so.
#[must_use]
pub fn prompt_ids(data: &str) -> Option<Vec<u32>> {
    let chunk = serde_json::from_str::<Chunk<'_>>(data).ok()?;
    let of_choice = chunk.choices.into_iter().next();
    chunk
        .prompt_token_ids
        .or(of_choice.and_then(|choice| choice.prompt_token_ids))
}

/// The text that a chunk adds.
#[must_use]
pub fn text_of(data: &str) -> Option<String> {
    let chunk = serde_json::from_str::<Chunk<'_>>(data).ok()?;
    let choice = chunk.choices.into_iter().next()?;
    let text = choice
        .text
        .or(choice.delta.and_then(|delta| delta.content))?;
    Some(text.into_owned())
}

#[derive(Deserialize)]
struct Chunk<'a> {
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
    timings: Option<Timings>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    prompt_token_ids: Option<Vec<u32>>,
    token_ids: Option<Vec<u32>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    logprobs: Option<Beside>,
}

/// What llama.cpp writes beside its text.
#[derive(Deserialize)]
struct Beside {
    content: Option<Vec<Token>>,
}

#[derive(Deserialize)]
struct Token {
    id: Option<u32>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// What llama.cpp tells of its work.
#[derive(Deserialize)]
struct Timings {
    predicted_n: Option<u64>,
    /// Tokens of the prompt that it had to read, and those that it still knew.
    prompt_n: Option<u64>,
    cache_n: Option<u64>,
}

impl Timings {
    fn prompt_tokens(&self) -> Option<u64> {
        self.prompt_n?.checked_add(self.cache_n?)
    }
}

#[cfg(test)]
mod tests;
