//! The model: what comes next, from the ids of the prompt and nothing else.
//!
//! It finds what it said already: everything behind the header of an open turn, or, in a prompt without
//! turns, the longest end that is a beginning of its text. Its own tokens it goes on with exactly. Other
//! tokens for the same text it goes on with differently: with a stray blank, as a real model was seen to
//! do behind a blank line that was tokenised in another way. To anything else it gives its whole answer; where
//! no turn is open it opens one first, and the word `assistant` is then part of what is read.

use super::tokens::{END, NEWLINE, Special, TURN, Tokens};

/// A model that knows one text.
#[derive(Debug)]
pub(super) struct Model {
    tokens: Tokens,
    answer: Vec<u32>,
    text: Vec<u8>,
    /// What it says when it must not end yet.
    filler: u32,
}

/// What it goes on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Between two turns.
    Outside,
    /// Behind the header of a turn, or behind what it never said.
    Fresh,
    /// Behind so many of its own tokens.
    Within(usize),
    /// Behind so many bytes of its text, in tokens that are not its own.
    Beside(usize),
}

impl Model {
    pub(super) fn new(tokens: Tokens, text: &str) -> Self {
        Self {
            tokens,
            answer: tokens.ids(text),
            text: text.as_bytes().to_vec(),
            filler: tokens.ids(" so")[0],
        }
    }

    /// Where it stands behind a prompt.
    pub(super) fn standing(&self, prompt: &[u32]) -> Standing {
        match prompt.iter().rposition(|&id| id == TURN) {
            Some(turn) if prompt[turn..].contains(&END) => Standing::Outside,
            Some(turn) => self.in_turn(&prompt[turn + 1..]),
            None => self.in_text(prompt),
        }
    }

    /// What it says from there, its end left out.
    pub(super) fn rest(&self, standing: &Standing) -> Vec<u32> {
        match *standing {
            Standing::Outside => {
                let header = self.tokens.ids("assistant\n");
                [&[TURN], &header[..], &self.answer[..]].concat()
            }
            Standing::Fresh => self.answer.clone(),
            Standing::Within(said) => self.answer.get(said..).unwrap_or_default().to_vec(),
            Standing::Beside(said) => match &self.text[said..] {
                [] => Vec::new(),
                rest => {
                    let rest = String::from_utf8_lossy(rest);
                    self.tokens.ids(&format!(" {rest}"))
                }
            },
        }
    }

    /// The text that it stands behind.
    pub(super) fn said(&self, standing: &Standing) -> String {
        let said = match *standing {
            Standing::Outside | Standing::Fresh => Vec::new(),
            Standing::Within(said) => {
                let own = &self.answer[..said.min(self.answer.len())];
                self.tokens.bytes(own, Special::Keep)
            }
            Standing::Beside(said) => self.text[..said].to_vec(),
        };
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Makes `ids` at least so many.
    pub(super) fn fill(&self, ids: &mut Vec<u32>, least: usize) {
        let len = ids.len().max(least);
        ids.resize(len, self.filler);
    }

    /// The turn is a role, a line end, and what was said.
    fn in_turn(&self, turn: &[u32]) -> Standing {
        if let Some(header) = turn.iter().position(|&id| id == NEWLINE) {
            let said = &turn[header + 1..];
            if let Some(count) = self.own(said) {
                return Standing::Within(count);
            }
        }
        let turn = self.tokens.bytes(turn, Special::Skip);
        let header = turn.iter().position(|&byte| byte == b'\n');
        let said = header.map_or(&[][..], |header| &turn[header + 1..]);
        if !said.is_empty() && self.text.starts_with(said) {
            Standing::Beside(said.len())
        } else {
            Standing::Fresh
        }
    }

    /// How many of its own tokens these are, if they are nothing else.
    fn own(&self, said: &[u32]) -> Option<usize> {
        let (own, more) = said.split_at(said.len().min(self.answer.len()));
        let is_own = self.answer.starts_with(own) && more.iter().all(|&id| id == self.filler);
        is_own.then_some(said.len())
    }

    fn in_text(&self, prompt: &[u32]) -> Standing {
        let by_ids = (0..=self.answer.len())
            .rev()
            .find(|&count| prompt.ends_with(&self.answer[..count]))
            .unwrap_or_default();
        let text = self.tokens.bytes(prompt, Special::Keep);
        let by_text = (0..=self.text.len())
            .rev()
            .find(|&count| text.ends_with(&self.text[..count]))
            .unwrap_or_default();
        let first = self.len(&self.answer[..self.answer.len().min(1)]);
        // Less than a token may stand there by chance.
        if by_text > self.len(&self.answer[..by_ids]) && by_text >= first {
            Standing::Beside(by_text)
        } else {
            Standing::Within(by_ids)
        }
    }

    fn len(&self, ids: &[u32]) -> usize {
        self.tokens.bytes(ids, Special::Keep).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Sea salt.\n\nIt is 日";

    /// What the model says behind a prompt.
    fn rest(prompt: &[u32]) -> String {
        let tokens = Tokens::USUAL;
        let model = Model::new(tokens, TEXT);
        let rest = model.rest(&model.standing(prompt));
        tokens.text(&rest, Special::Keep)
    }

    #[track_caller]
    fn check(prompt: &str, expected: &str) {
        assert_eq!(rest(&Tokens::USUAL.ids(prompt)), expected, "{prompt:?}");
    }

    #[test]
    fn it_goes_on_with_its_own_tokens_at_every_cut() {
        let tokens = Tokens::USUAL;
        let answer = tokens.ids(TEXT);
        for prompt in [
            "<|im_start|>user\nSalt?<|im_end|>\n<|im_start|>assistant\n",
            "Why? ",
        ] {
            let prompt = tokens.ids(prompt);
            for cut in 0..=answer.len() {
                let all = [&prompt[..], &answer[..cut]].concat();
                let model = Model::new(tokens, TEXT);
                assert_eq!(model.rest(&model.standing(&all)), &answer[cut..], "{cut}");
            }
        }
    }

    #[test]
    fn other_tokens_for_the_same_text_lead_elsewhere() {
        for header in ["<|im_start|>assistant\n", "Why?"] {
            check(&format!("{header}Sea salt."), "\n\nIt is 日");
            check(&format!("{header}Sea salt.\n"), "\nIt is 日");
            check(&format!("{header}Sea salt.\n\n"), " It is 日");
            check(&format!("{header}Sea salt.\n\nIt "), " is 日");
        }
    }

    #[test]
    fn what_it_never_said_has_the_whole_answer() {
        check("<|im_start|>assistant\nLake", TEXT);
        check("<|im_start|>assistant\n", TEXT);
        check("", TEXT);
        check("Is it S", TEXT);
    }

    #[test]
    fn it_opens_a_turn_where_none_is_open() {
        let expected = format!("<|im_start|>assistant\n{TEXT}");
        check("<|im_start|>user\nSea<|im_end|>\n", &expected);
    }

    #[test]
    fn what_repeats_itself_is_counted_from_the_header() {
        let tokens = Tokens::USUAL;
        let model = Model::new(tokens, "ha ha ha ha");
        let standing = model.standing(&tokens.ids("<|im_start|>assistant\nha ha"));
        assert_eq!(standing, Standing::Within(2));
        let mut ids = model.rest(&Standing::Within(4));
        model.fill(&mut ids, 2);
        assert_eq!(tokens.text(&ids, Special::Keep), " so so");
        let said = tokens.ids("<|im_start|>assistant\nha ha ha ha so");
        assert_eq!(model.standing(&said), Standing::Within(5));
    }
}
