//! A tokeniser without a vocabulary: an id is made of the bytes that it stands for.
//!
//! So two processes agree on every id without sharing a file, and every text survives the way there and
//! back. What makes continuations go wrong on real engines is here too: a character outside of ASCII is
//! several tokens, one for each byte; and white space looks ahead. Before a word the last blank belongs to
//! the word and the last line end stands alone, while at the end of a text all of it is one token: `\n\n`
//! is two tokens before a word and one at the end.

/// Begins a turn.
pub(super) const TURN: u32 = 1;
/// Ends a turn, and so an answer.
pub(super) const END: u32 = 2;
/// `\n` alone.
pub(super) const NEWLINE: u32 = 1 << 7 | b'\n' as u32;

const SPECIAL: [(&str, u32); 2] = [("<|im_start|>", TURN), ("<|im_end|>", END)];

/// Bytes of characters outside of ASCII have their ids from here.
const FIRST_BYTE: u32 = 256;

/// A tokeniser.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    /// The most characters of a token. At most 4: an id has seven bits for each, and a bit before them.
    longest: usize,
}

/// What becomes of special tokens in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Keep,
    Skip,
}

impl Tokens {
    pub(super) const USUAL: Self = Self { longest: 4 };
    pub(super) const OTHER: Self = Self { longest: 3 };

    /// The ids of a text. The names of special tokens in it are those tokens, as on real engines.
    pub(super) fn ids(self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut rest = text;
        loop {
            let found = SPECIAL
                .iter()
                .filter_map(|(name, id)| Some((rest.find(name)?, name.len(), *id)))
                .min();
            let Some((at, len, id)) = found else {
                self.plain(rest, &mut ids);
                return ids;
            };
            self.plain(&rest[..at], &mut ids);
            ids.push(id);
            rest = &rest[at + len..];
        }
    }

    /// The text of ids. What is no whole character becomes U+FFFD.
    pub(super) fn text(self, ids: &[u32], special: Special) -> String {
        String::from_utf8_lossy(&self.bytes(ids, special)).into_owned()
    }

    /// The bytes of ids. One that is no token of ours has none.
    pub(super) fn bytes(self, ids: &[u32], special: Special) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &id in ids {
            match SPECIAL.iter().find(|(_, known)| *known == id) {
                Some((name, _)) if special == Special::Keep => bytes.extend(name.as_bytes()),
                Some(_) => {}
                None => bytes.extend(piece(id)),
            }
        }
        bytes
    }

    fn plain(self, text: &str, ids: &mut Vec<u32>) {
        for word in words(text) {
            let mut chars = word;
            while let Some(first) = chars.chars().next() {
                let ascii = chars.bytes().take(self.longest);
                let len = ascii.take_while(u8::is_ascii).count();
                if len == 0 {
                    let (char, rest) = chars.split_at(first.len_utf8());
                    ids.extend(char.bytes().map(|byte| FIRST_BYTE + u32::from(byte - 0x80)));
                    chars = rest;
                } else {
                    let (piece, rest) = chars.split_at(len);
                    let id = piece.bytes().fold(1, |id, byte| id << 7 | u32::from(byte));
                    ids.push(id);
                    chars = rest;
                }
            }
        }
    }
}

/// The bytes of a token that is not special.
fn piece(id: u32) -> Vec<u8> {
    if let Some(byte) = id.checked_sub(FIRST_BYTE).filter(|byte| *byte < 0x80) {
        return vec![0x80 + byte as u8];
    }
    // The highest bit tells how many characters there are behind it.
    let bits = id.checked_ilog2().unwrap_or_default();
    if bits % 7 != 0 {
        return Vec::new();
    }
    (0..bits / 7)
        .rev()
        .map(|at| (id >> (7 * at) & 0x7f) as u8)
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    White,
    Word,
    Mark,
    Foreign,
}

fn class(char: char) -> Class {
    match char {
        ' ' | '\n' | '\t' | '\r' => Class::White,
        _ if char.is_ascii_alphanumeric() => Class::Word,
        _ if char.is_ascii() => Class::Mark,
        _ => Class::Foreign,
    }
}

/// What is tokenised on its own, each piece behind the one before.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let mut end = run(text, start);
        if text[start..].starts_with([' ', '\n', '\t', '\r']) && end < text.len() {
            // All but the last is one piece, if there is more.
            let last = end - 1;
            if last > start {
                words.push(&text[start..last]);
                start = last;
            }
            if text[start..].starts_with(' ') {
                end = run(text, end);
            }
        }
        words.push(&text[start..end]);
        start = end;
    }
    words
}

/// Where the run of characters of one class ends that begins at `start`.
fn run(text: &str, start: usize) -> usize {
    let mut chars = text[start..].char_indices();
    let first = chars.next().map(|(_, char)| class(char));
    let end = chars.find(|(_, char)| Some(class(*char)) != first);
    end.map_or(text.len(), |(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USUAL: Tokens = Tokens::USUAL;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let pieces: Vec<String> = USUAL
            .ids(text)
            .iter()
            .map(|id| USUAL.text(&[*id], Special::Keep))
            .collect();
        assert_eq!(pieces, expected, "{text:?}");
    }

    #[test]
    fn a_token_is_a_piece_of_a_word_with_the_blank_before_it() {
        check("The sea is", &["The", " sea", " is"]);
        check("capital, ok", &["capi", "tal", ",", " ok"]);
        check("a <|im_end|>b", &["a", " ", "<|im_end|>", "b"]);
        check("日", &["\u{fffd}", "\u{fffd}", "\u{fffd}"]);
    }

    #[test]
    fn white_space_looks_ahead() {
        check("a\n\nb", &["a", "\n", "\n", "b"]);
        check("a\n\n", &["a", "\n\n"]);
        check("a\n    b", &["a", "\n   ", " b"]);
        check("a ", &["a", " "]);
        check("a\nb", &["a", "\n", "b"]);
        assert_eq!(USUAL.ids("\n"), [NEWLINE]);
    }

    #[test]
    fn the_other_tokeniser_cuts_elsewhere() {
        let other = Tokens::OTHER;
        assert_ne!(other.ids("abcd"), USUAL.ids("abcd"));
        assert_eq!(other.text(&other.ids("abcd 日"), Special::Keep), "abcd 日");
    }

    #[test]
    fn ids_of_nobody_have_no_text() {
        assert_eq!(USUAL.text(&[0, 3, 1000, u32::MAX], Special::Keep), "");
        assert_eq!(USUAL.text(&[TURN, END], Special::Skip), "");
    }

    proptest! {
        #[test]
        fn every_text_survives(text in "([a-z]{0,6}|[ \n\t]{1,6}|\\PC{0,3}|<\\|im_end\\|>){0,8}") {
            for tokens in [USUAL, Tokens::OTHER] {
                let ids = tokens.ids(&text);
                prop_assert_eq!(tokens.text(&ids, Special::Keep), text.clone());
            }
        }

        /// Only white space looks ahead, so a text that ends in none has its own ids in any longer one.
        #[test]
        fn what_ends_in_a_word_does_not_depend_on_what_follows(
            before in "[a-z日]{0,5}([ \n]{1,3}[a-z日.]{1,5}){0,5}",
            after in "([ \n]{1,3}[a-z日.]{1,5}){0,4}",
        ) {
            let ids = USUAL.ids(&before);
            let longer = USUAL.ids(&(before.clone() + &after));
            prop_assert_eq!(&longer[..ids.len()], &ids[..]);
        }
    }
}
