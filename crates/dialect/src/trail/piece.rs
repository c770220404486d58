//! What a trail learns of one chunk, and the same as bytes: whoever takes an answer over makes its trail of them.
//!
//! They are kept with each event of the answer, so they are few: what the trail knows already is left out, and numbers
//! take as many bytes as they need. What is read back may be anything: it never panics, and takes memory in proportion
//! to what is there.
//!
//! ```text
//! numbers   7 bits in each byte, the lowest first, the highest bit set in all but the last
//! ids       how many, and each
//! piece     its first byte says which of these follow:
//!           1 tokens of the prompt   2 length of the text, ids of its tokens   4 ids of the prompt (with 2)
//!           8 how many tokens the engine counted by itself   16 how many its usage has (one of both, with 2)
//!           32 the id of the last token (with 2)
//!           64 the text ends within a character   128 it told of its work, whatever that was
//! beginning 0; its second byte says which of these follow, then all of the rest:
//!           1 ids of the prompt   2 tokens of the prompt   4 it is behind something
//!           tokens and length of the text before, ids that were told behind it, places (how many, each with its id)
//! ```

use super::{Chunk, Mark, Timings, Trail};

/// What one chunk tells. What it does not tell, or what is known, is left out.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) choice: Option<Told>,
}

/// What it tells of the answer.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) prompt: Option<Vec<u32>>,
    /// Bytes.
    pub(super) text: usize,
    /// The text ends with what stands for the half of a character.
    pub(super) is_torn: bool,
    pub(super) ids: Vec<u32>,
    /// The id of the last token, where ids are told in another way.
    pub(super) beside: Option<u32>,
    pub(super) count: Option<Count>,
    /// There were counts, or something in their place.
    pub(super) has_counts: bool,
}

/// How many tokens there are up to here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    /// By the usage, which counts ids.
    Usage(u64),
    /// By what llama.cpp tells of its work.
    Timings(u64),
}

impl Count {
    pub(super) fn tokens(self) -> u64 {
        let (Self::Usage(tokens) | Self::Timings(tokens)) = self;
        tokens
    }
}

impl Trail {
    /// The same as [`push`](Self::push), and appends what was learnt to `out`, for [`rebuild`](Self::rebuild).
    pub fn push_told(&mut self, data: &str, out: &mut Vec<u8>) {
        let piece = self.read(data);
        piece.write(out);
        self.add(piece);
    }

    /// Appends this trail as it was when it began, before anything was pushed; see [`rebuild`](Self::rebuild).
    pub fn begin_bytes(&self, out: &mut Vec<u8>) {
        debug_assert!(
            self.ids.is_empty() && self.clean.is_none() && self.text == self.before.text,
            "what was pushed is told by itself"
        );
        let is_behind = !self.marks.is_empty();
        out.push(BEGINNING);
        out.push(flags([
            (self.prompt.is_some(), IDS),
            (self.prompt_tokens.is_some(), TOKENS),
            (is_behind, BEHIND),
        ]));
        put_ids(out, self.prompt.as_deref());
        put_some(out, self.prompt_tokens);
        put(out, self.before.tokens);
        put(out, self.before.text as u64);
        put_ids(out, Some(&self.told));
        put(out, self.places.len() as u64);
        for (place, id) in &self.places {
            put(out, *place);
            put(out, u64::from(*id));
        }
    }

    /// The trail that was told in these bytes, one behind the other in the order in which they were written. A beginning
    /// takes the place of what was before it. `None` when they are no such bytes.
    #[must_use]
    pub fn rebuild(pieces: &[u8]) -> Option<Self> {
        let (mut trail, mut rest) = (Self::default(), Rest(pieces));
        while !rest.0.is_empty() {
            match rest.byte()? {
                BEGINNING => trail = rest.beginning()?,
                first => {
                    let piece = rest.piece(first)?;
                    trail.add(piece);
                }
            }
        }
        Some(trail)
    }

    /// What a chunk tells that this trail does not know.
    pub(super) fn read(&self, data: &str) -> Piece {
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            return Piece::default();
        };
        let (usage, timings) = (chunk.usage.as_ref(), chunk.timings.as_ref());
        let prompt_tokens = usage.and_then(|usage| usage.prompt_tokens);
        let prompt_tokens = prompt_tokens.or_else(|| timings?.prompt_tokens());
        let choice = chunk.choices.into_iter().next().map(|choice| {
            let text = choice.text.or(choice.delta.and_then(|delta| delta.content));
            let text = text.unwrap_or_default();
            let prompt = chunk.prompt_token_ids.or(choice.prompt_token_ids);
            let by_usage = usage.and_then(|usage| usage.completion_tokens);
            let by_timings = timings.and_then(|timings: &Timings| timings.predicted_n);
            Told {
                prompt: prompt.filter(|_| self.prompt.is_none()),
                text: text.len(),
                is_torn: text.ends_with(char::REPLACEMENT_CHARACTER),
                ids: choice.token_ids.unwrap_or_default(),
                beside: choice.logprobs.and_then(|beside| beside.content?.pop()?.id),
                count: by_usage
                    .map(Count::Usage)
                    .or(by_timings.map(Count::Timings)),
                has_counts: usage.is_some() || timings.is_some(),
            }
        });
        Piece {
            prompt_tokens: prompt_tokens.filter(|_| self.takes_prompt_tokens()),
            choice,
        }
    }
}

impl Piece {
    fn write(&self, out: &mut Vec<u8>) {
        let told = self.choice.as_ref();
        let is = |is: fn(&Told) -> bool| told.is_some_and(is);
        let first = flags([
            (self.prompt_tokens.is_some(), PROMPT_TOKENS),
            (told.is_some(), CHOICE),
            (is(|told| told.prompt.is_some()), PROMPT),
            (
                is(|told| matches!(told.count, Some(Count::Timings(_)))),
                TIMINGS,
            ),
            (
                is(|told| matches!(told.count, Some(Count::Usage(_)))),
                USAGE,
            ),
            (is(|told| told.beside.is_some()), BESIDE),
            (is(|told| told.is_torn), TORN),
            (is(|told| told.has_counts), COUNTS),
        ]);
        // It tells nothing.
        if first == BEGINNING {
            return;
        }
        out.push(first);
        put_some(out, self.prompt_tokens);
        if let Some(told) = told {
            put(out, told.text as u64);
            put_ids(out, Some(&told.ids));
            put_ids(out, told.prompt.as_deref());
            put_some(out, told.count.map(Count::tokens));
            put_some(out, told.beside.map(u64::from));
        }
    }
}

fn flags<const N: usize>(each: [(bool, u8); N]) -> u8 {
    let set = each.into_iter().filter(|(is_set, _)| *is_set);
    set.fold(0, |all, (_, flag)| all | flag)
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_some(out: &mut Vec<u8>, number: Option<u64>) {
    if let Some(number) = number {
        put(out, number);
    }
}

fn put_ids(out: &mut Vec<u8>, ids: Option<&[u32]>) {
    if let Some(ids) = ids {
        put(out, ids.len() as u64);
        for id in ids {
            put(out, u64::from(*id));
        }
    }
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn id(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// So many of something that takes a byte at least.
    fn many<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.length().filter(|count| *count <= self.0.len())?;
        // Not all of it at once: what takes several bytes is fewer than could be there.
        (0..count).map(|_| read(self)).collect()
    }

    fn ids(&mut self) -> Option<Vec<u32>> {
        self.many(Self::id)
    }

    /// The outer `None`: there should be something, and there is not.
    #[expect(clippy::option_option, reason = "one is the error, as everywhere here")]
    fn if_set<T>(
        &mut self,
        is_set: bool,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if is_set {
            read(self).map(Some)
        } else {
            Some(None)
        }
    }

    fn piece(&mut self, first: u8) -> Option<Piece> {
        let has = |flag: u8| first & flag != 0;
        let prompt_tokens = self.if_set(has(PROMPT_TOKENS), Self::number)?;
        if !has(CHOICE) {
            // Everything else is of one.
            let piece = Piece {
                prompt_tokens,
                choice: None,
            };
            return (first == PROMPT_TOKENS).then_some(piece);
        }
        if has(TIMINGS) && has(USAGE) {
            return None;
        }
        let (text, ids) = (self.length()?, self.ids()?);
        let prompt = self.if_set(has(PROMPT), Self::ids)?;
        let count = self.if_set(has(TIMINGS | USAGE), Self::number)?;
        let count = count.map(match has(USAGE) {
            true => Count::Usage,
            false => Count::Timings,
        });
        let beside = self.if_set(has(BESIDE), Self::id)?;
        let choice = Some(Told {
            prompt,
            text,
            is_torn: has(TORN),
            ids,
            beside,
            count,
            has_counts: has(COUNTS),
        });
        Some(Piece {
            prompt_tokens,
            choice,
        })
    }

    fn beginning(&mut self) -> Option<Trail> {
        let second = self.byte()?;
        let has = |flag: u8| second & flag != 0;
        if second & !(IDS | TOKENS | BEHIND) != 0 {
            return None;
        }
        let prompt = self.if_set(has(IDS), Self::ids)?;
        let prompt_tokens = self.if_set(has(TOKENS), Self::number)?;
        let before = Mark {
            tokens: self.number()?,
            text: self.length()?,
        };
        let told = self.ids()?;
        let places = self.many(|rest| Some((rest.number()?, rest.id()?)))?;
        Some(Trail {
            prompt,
            prompt_tokens,
            told,
            before,
            text: before.text,
            marks: has(BEHIND).then_some(before).into_iter().collect(),
            places,
            ..Trail::default()
        })
    }
}

/// No piece begins with it, because one that tells nothing is none.
const BEGINNING: u8 = 0;
const PROMPT_TOKENS: u8 = 1;
const CHOICE: u8 = 2;
const PROMPT: u8 = 4;
const TIMINGS: u8 = 8;
const USAGE: u8 = 16;
const BESIDE: u8 = 32;
const TORN: u8 = 64;
const COUNTS: u8 = 128;
// Of a beginning.
const IDS: u8 = 1;
const TOKENS: u8 = 2;
const BEHIND: u8 = 4;

#[cfg(test)]
mod tests;
