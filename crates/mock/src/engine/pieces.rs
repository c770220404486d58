//! From tokens to chunks: text is shown a whole character at a time.

use super::{
    Engine,
    tokens::{Special, Tokens},
};

/// What one chunk tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// The ids of its tokens, as far as they are told.
    pub(crate) ids: Vec<u32>,
    /// How many tokens there were up to here.
    pub(crate) count: usize,
}

/// How tokens are put into chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) tokens: Tokens,
    pub(super) engine: Engine,
    /// Chunks without text are sent, for the ids in them.
    pub(super) shows_empty: bool,
    /// A character that began in the prompt takes the whole prompt with it.
    pub(super) leaks: bool,
    pub(super) per_chunk: usize,
    /// Every so many chunks one tells no ids; 0 for never.
    pub(super) holes: usize,
}

impl Manner {
    /// The chunks of `ids` behind `prompt`.
    pub(super) fn pieces(self, prompt: &[u32], ids: &[u32]) -> Vec<Piece> {
        let mut held = unfinished(&self.tokens.bytes(prompt, Special::Skip));
        let mut leak = (self.leaks && !held.is_empty()).then(|| {
            let all = self.tokens.bytes(prompt, Special::Skip);
            String::from_utf8_lossy(&all[..all.len() - held.len()]).into_owned()
        });
        let mut pieces: Vec<Piece> = Vec::new();
        let mut piece = Piece::default();
        for chunk in ids.chunks(self.per_chunk.max(1)) {
            piece.count += chunk.len();
            piece.ids.extend(chunk);
            held.extend(self.tokens.bytes(chunk, Special::Skip));
            let more = unfinished(&held);
            let whole = held.len() - more.len();
            piece.text = String::from_utf8_lossy(&held[..whole]).into_owned();
            held = more;
            if piece.text.is_empty() && !self.shows_empty {
                continue;
            }
            if !piece.text.is_empty() {
                if let Some(leak) = leak.take() {
                    piece.text.insert_str(0, &leak);
                }
            }
            if self.engine == Engine::LlamaCpp {
                // It tells the last of a character that takes several.
                piece.ids.drain(..piece.ids.len() - 1);
            }
            if self.holes > 0 && (pieces.len() + 1) % self.holes == 0 {
                piece.ids.clear();
            }
            let count = piece.count;
            pieces.push(std::mem::take(&mut piece));
            piece.count = count;
        }
        pieces
    }
}

/// The beginning of a character at the end.
pub(super) fn unfinished(bytes: &[u8]) -> Vec<u8> {
    // A character has four bytes at most, so its beginning has three.
    let at = (1..=bytes.len().min(3)).find(|back| {
        let end = &bytes[bytes.len() - back..];
        std::str::from_utf8(end)
            .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
    });
    at.map_or(Vec::new(), |back| bytes[bytes.len() - back..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VLLM: Manner = Manner {
        tokens: TOKENS,
        engine: Engine::Vllm,
        shows_empty: true,
        leaks: true,
        per_chunk: 1,
        holes: 0,
    };
    const LLAMA_CPP: Manner = Manner {
        engine: Engine::LlamaCpp,
        shows_empty: false,
        leaks: false,
        ..VLLM
    };

    const TOKENS: Tokens = Tokens::USUAL;

    #[track_caller]
    fn check(manner: Manner, prompt: &[u32], ids: &[u32], expected: &[(&str, usize, usize)]) {
        let pieces = manner.pieces(prompt, ids);
        let told: Vec<_> = pieces
            .iter()
            .map(|piece| (piece.text.as_str(), piece.ids.len(), piece.count))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_character_is_shown_when_it_is_whole() {
        let ids = TOKENS.ids("a日b");
        let each = [
            ("a", 1, 1),
            ("", 1, 2),
            ("", 1, 3),
            ("日", 1, 4),
            ("b", 1, 5),
        ];
        check(VLLM, &[], &ids, &each);
        check(
            LLAMA_CPP,
            &[],
            &ids,
            &[("a", 1, 1), ("日", 1, 4), ("b", 1, 5)],
        );
        check(LLAMA_CPP, &[], &ids[..2], &[("a", 1, 1)]);
    }

    #[test]
    fn a_prompt_that_ends_within_a_character_leaks() {
        let ids = TOKENS.ids("<|im_start|>a日b");
        let (prompt, ids) = ids.split_at(3);
        check(VLLM, prompt, ids, &[("", 1, 1), ("a日", 1, 2), ("b", 1, 3)]);
        let sound = Manner {
            leaks: false,
            ..VLLM
        };
        check(sound, prompt, ids, &[("", 1, 1), ("日", 1, 2), ("b", 1, 3)]);
    }

    #[test]
    fn chunks_can_have_several_tokens_and_tell_none() {
        let ids = TOKENS.ids("a日b");
        let two = Manner {
            per_chunk: 2,
            ..VLLM
        };
        check(two, &[], &ids, &[("a", 2, 2), ("日", 2, 4), ("b", 1, 5)]);
        let holes = Manner { holes: 2, ..two };
        check(holes, &[], &ids, &[("a", 2, 2), ("日", 0, 4), ("b", 1, 5)]);
    }
}
