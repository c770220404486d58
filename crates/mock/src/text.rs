//! The text of an answer, token by token.
//!
//! Numbered words are written straight into the buffer, so that a long benchmark stream needs no
//! memory of its own; a given text is cut and escaped once per request.

use std::borrow::Cow;

/// The token id of the first token; the next has the next number. Prompt tokens have smaller ids.
pub(crate) const FIRST_ID: u32 = 1000;

/// A run of letters longer than this (Chinese, base64) is cut into tokens all the same.
const LONGEST: usize = 12;

/// The tokens of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    words: Words,
    count: usize,
    /// Where this answer begins: token, and byte within it.
    start: (usize, usize),
}

#[derive(Debug, Clone)]
enum Words {
    Numbered,
    /// Empty only when there are no tokens.
    Given(Vec<Word>),
}

#[derive(Debug, Clone)]
struct Word {
    raw: String,
    escaped: Vec<u8>,
}

impl Text {
    /// The tokens of `text`, or numbered words; as many as `tokens` says.
    pub(crate) fn new(text: Option<&str>, tokens: Option<usize>) -> Self {
        let words: Vec<Word> = text.map(split).unwrap_or_default();
        let (words, natural) = match (text, words.len()) {
            (None, _) => (Words::Numbered, 16),
            (Some(_), 0) => (Words::Numbered, 0),
            (Some(_), count) => (Words::Given(words), count),
        };
        let count = match (&words, tokens) {
            (Words::Numbered, Some(_)) if text.is_some() => 0,
            (_, tokens) => tokens.unwrap_or(natural),
        };
        Self {
            words,
            count,
            start: (0, 0),
        }
    }

    /// These tokens and no others.
    pub(crate) fn of<'a>(tokens: impl Iterator<Item = &'a str>) -> Self {
        let words: Vec<Word> = tokens.map(word).collect();
        Self {
            count: words.len(),
            words: Words::Given(words),
            start: (0, 0),
        }
    }

    /// A text, cut as the text of an answer is.
    pub(crate) fn pieces(text: &str) -> Vec<String> {
        split(text).into_iter().map(|word| word.raw).collect()
    }

    /// The tokens of this answer, from the one it begins with.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start.0..self.count
    }

    /// How many tokens this answer has.
    pub(crate) fn len(&self) -> usize {
        self.range().len()
    }

    /// Keeps at most `limit` tokens; says whether that took any away.
    pub(crate) fn limit(&mut self, limit: usize) -> bool {
        let end = self.start.0.saturating_add(limit);
        let cut = self.count > end;
        self.count = self.count.min(end);
        cut
    }

    /// Begins after `prefix`, if the text begins with it; else stays as it is.
    pub(crate) fn skip_text(&mut self, prefix: &str) {
        let mut rest = prefix;
        for token in 0..self.count {
            let raw = self.raw(token);
            if rest.len() < raw.len() {
                if raw.starts_with(rest) {
                    self.start = (token, rest.len());
                }
                return;
            }
            match rest.strip_prefix(raw.as_ref()) {
                Some(more) => rest = more,
                None => return,
            }
        }
        if rest.is_empty() {
            self.start = (self.count, 0);
        }
    }

    /// Begins after the last of `ids`, if that is one of our tokens.
    pub(crate) fn skip_ids(&mut self, ids: &[u32]) {
        if let Some(last) = ids.last().and_then(|id| id.checked_sub(FIRST_ID)) {
            self.start = ((last as usize + 1).min(self.count), 0);
        }
    }

    /// Appends the token as it stands inside a JSON string.
    pub(crate) fn push_escaped(&self, token: usize, out: &mut Vec<u8>) {
        match &self.words {
            Words::Given(words) if token != self.start.0 || self.start.1 == 0 => {
                out.extend_from_slice(&words[token % words.len()].escaped);
            }
            Words::Numbered if token != self.start.0 || self.start.1 == 0 => {
                out.extend_from_slice(if token == 0 { b"t" } else { b" t" });
                push_number(token as u64 + 1, out);
            }
            // A prefix that ended inside the first token: its rest.
            Words::Given(_) | Words::Numbered => {
                out.extend_from_slice(&escape(&self.raw(token)[self.start.1..]));
            }
        }
    }

    /// The whole text of this answer.
    pub(crate) fn whole(&self) -> String {
        let text: String = self.range().map(|token| self.raw(token)).collect();
        text[self.start.1..].to_owned()
    }

    fn raw(&self, token: usize) -> Cow<'_, str> {
        match &self.words {
            Words::Given(words) => Cow::Borrowed(&words[token % words.len()].raw),
            Words::Numbered if token == 0 => Cow::Borrowed("t1"),
            Words::Numbered => Cow::Owned(format!(" t{}", token + 1)),
        }
    }
}

/// Appends a number in decimal, without the formatting machinery.
pub(crate) fn push_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// White space belongs to the word after it, as in the tokenisers of the engines.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut letters = 0;
    for (at, char) in text.char_indices() {
        let space = char.is_whitespace();
        if letters > 0 && (space || letters == LONGEST) {
            words.push(word(&text[start..at]));
            start = at;
            letters = 0;
        }
        letters += usize::from(!space);
    }
    if start < text.len() {
        words.push(word(&text[start..]));
    }
    words
}

fn word(raw: &str) -> Word {
    Word {
        raw: raw.to_owned(),
        escaped: escape(raw),
    }
}

fn escape(raw: &str) -> Vec<u8> {
    let quoted = serde_json::to_vec(raw).expect("a string is always valid JSON");
    quoted[1..quoted.len() - 1].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &Text) -> Vec<String> {
        text.range()
            .map(|token| {
                let mut out = Vec::new();
                text.push_escaped(token, &mut out);
                String::from_utf8(out).unwrap()
            })
            .collect()
    }

    #[test]
    fn numbered_words_and_given_words() {
        assert_eq!(pieces(&Text::new(None, Some(3))), ["t1", " t2", " t3"]);
        assert_eq!(
            pieces(&Text::new(Some("a  \"b\"\nc "), None)),
            ["a", "  \\\"b\\\"", "\\nc", " "]
        );
        assert_eq!(pieces(&Text::new(Some("a b"), Some(3))), ["a", " b", "a"]);
        assert_eq!(pieces(&Text::new(Some(""), None)), [""; 0]);
        assert_eq!(
            pieces(&Text::new(Some("日本語日本語日本語日本語日"), None)).len(),
            2
        );
    }

    #[track_caller]
    fn check_rest(prefix: &str, rest: &[&str]) {
        let mut text = Text::new(None, Some(3));
        text.skip_text(prefix);
        assert_eq!(pieces(&text), rest, "after {prefix:?}");
        assert_eq!(text.whole(), rest.concat());
    }

    #[test]
    fn a_prefix_is_continued_and_a_foreign_one_is_not() {
        check_rest("", &["t1", " t2", " t3"]);
        check_rest("t1", &[" t2", " t3"]);
        check_rest("t1 t", &["2", " t3"]);
        check_rest("t1 t2 t3", &[]);
        check_rest("t1 x", &["t1", " t2", " t3"]);
        check_rest("t1 t2 t3 t4", &["t1", " t2", " t3"]);
    }

    #[test]
    fn ids_are_continued_after_the_last() {
        let mut text = Text::new(None, Some(3));
        text.skip_ids(&[1, 2, FIRST_ID, FIRST_ID + 1]);
        assert_eq!(pieces(&text), [" t3"]);
        assert!(!text.limit(1));
        assert!(text.limit(0));
    }
}
