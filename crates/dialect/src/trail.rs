//! The ids of the tokens of an answer, as an engine tells them chunk by chunk.
//!
//! They make a continuation exact, if they are all there and end where a character does. Neither is given: one engine
//! leaves out the first ids of a character that takes several; and a prompt that ends within a character makes another
//! one write the whole prompt again, what the system was told included. So an answer is only taken up to the last chunk
//! that showed text, and what lies behind it, shown by nobody yet, is generated anew.

use std::borrow::Cow;

use serde::Deserialize;

/// The ids that were told so far, of an answer with one choice.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    prompt: Option<Vec<u32>>,
    ids: Vec<u32>,
    /// How many ids there were behind the last chunk that ended with a whole character, and how many that chunk had.
    clean: Option<Clean>,
    fault: Option<NoIds>,
}

#[derive(Clone, Copy, Debug)]
struct Clean {
    ids: usize,
    in_chunk: usize,
}

/// Everything up to a place at which a continuation can begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Of the rendered prompt and the answer, in order.
    pub all: Vec<u32>,
    /// How many of them are the answer's.
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
}

impl Trail {
    /// Reads the data of the next chunk. What is no chunk says nothing.
    pub fn push(&mut self, data: &str) {
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            return;
        };
        let Some(choice) = chunk.choices.into_iter().next() else {
            return;
        };
        if self.prompt.is_none() {
            self.prompt = chunk.prompt_token_ids.or(choice.prompt_token_ids);
        }
        let text = choice.text.or(choice.delta.and_then(|delta| delta.content));
        let text = text.unwrap_or_default();
        let told = choice.token_ids.unwrap_or_default();
        let in_chunk = told.len();
        self.ids.extend(told);
        if in_chunk == 0 && !text.is_empty() {
            self.fault = self.fault.or(Some(NoIds::Missing));
        }
        // A count on the way is of everything up to here.
        let counted = chunk.usage.and_then(|usage| usage.completion_tokens);
        if counted.is_some_and(|counted| counted != self.ids.len() as u64) {
            self.fault = self.fault.or(Some(NoIds::Disagree));
        }
        // What an engine writes for the bytes of half a character.
        if !text.is_empty() && !text.ends_with(char::REPLACEMENT_CHARACTER) {
            self.clean = Some(Clean {
                ids: self.ids.len(),
                in_chunk,
            });
        }
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
        let clean = self.clean.ok_or(NoIds::NoText)?;
        let answer = &self.ids[..clean.ids];
        Ok(Ids {
            all: prompt.iter().chain(answer).copied().collect(),
            of_answer: answer.len() as u64,
            unsure: clean.in_chunk > 1,
        })
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    prompt_token_ids: Option<Vec<u32>>,
    token_ids: Option<Vec<u32>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"prompt_token_ids":[9,8],"choices":[{"delta":{"role":"assistant","content":""}}]}"#;

    fn chunk(text: &str, ids: &[u32]) -> String {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"token_ids":{ids:?}}}]}}"#
        )
    }

    #[track_caller]
    fn check(chunks: &[String], expected: Result<(&[u32], u64, bool), NoIds>) {
        let mut trail = Trail::default();
        trail.push(PROMPT);
        for chunk in chunks {
            trail.push(chunk);
        }
        let ids = trail.ids();
        let ids = ids
            .as_ref()
            .map(|ids| (ids.all.as_slice(), ids.of_answer, ids.unsure));
        assert_eq!(ids, expected.as_ref().map(|ids| *ids), "{chunks:?}");
    }

    #[test]
    fn prompt_and_answer_are_put_together() {
        check(
            &[chunk("a", &[1]), chunk("b", &[2])],
            Ok((&[9, 8, 1, 2], 2, false)),
        );
        // As completions have them.
        let mut trail = Trail::default();
        trail.push(r#"{"choices":[{"text":"a","token_ids":[1],"prompt_token_ids":[7]}]}"#);
        assert_eq!(trail.ids().unwrap().all, [7, 1]);
    }

    #[test]
    fn half_a_character_is_left_out_and_a_whole_one_is_not() {
        let half = [chunk("a", &[1]), chunk("", &[2]), chunk("", &[3])];
        check(&half, Ok((&[9, 8, 1], 1, false)));
        let whole = [&half[..], &[chunk("潮", &[4])]].concat();
        check(&whole, Ok((&[9, 8, 1, 2, 3, 4], 4, false)));
        check(
            &[chunk("a", &[1]), chunk("\u{fffd}", &[2])],
            Ok((&[9, 8, 1], 1, false)),
        );
    }

    #[test]
    fn of_several_ids_the_last_may_be_half_a_character() {
        check(&[chunk("a", &[1, 2])], Ok((&[9, 8, 1, 2], 2, true)));
        check(
            &[chunk("a", &[1, 2]), chunk("b", &[3])],
            Ok((&[9, 8, 1, 2, 3], 3, false)),
        );
    }

    #[test]
    fn holes_are_noticed() {
        check(&[chunk("a", &[1]), chunk("b", &[])], Err(NoIds::Missing));
        let counted = |count: u64| {
            let text = chunk("a", &[1]);
            text.replace(
                "{\"choices\"",
                &format!("{{\"usage\":{{\"completion_tokens\":{count}}},\"choices\""),
            )
        };
        check(&[counted(1)], Ok((&[9, 8, 1], 1, false)));
        check(&[counted(2)], Err(NoIds::Disagree));
        // Also those of before.
        check(&[counted(2), chunk("b", &[2])], Err(NoIds::Disagree));
    }

    #[test]
    fn without_a_prompt_or_text_there_is_nothing() {
        check(&[], Err(NoIds::NoText));
        check(&[chunk("", &[1])], Err(NoIds::NoText));
        let mut trail = Trail::default();
        trail.push(&chunk("a", &[1]));
        assert_eq!(trail.ids(), Err(NoIds::NoPrompt));
        trail.push("[DONE]");
        trail.push(r#"{"choices":[]}"#);
        assert_eq!(trail.ids(), Err(NoIds::NoPrompt));
    }
}
