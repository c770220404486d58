//! A text event rendered once, to be filled in for each token.
//!
//! The event is serialised with markers in the places that change and cut at them, so a fill costs
//! a few copies whatever the dialect. The text marker is a noncharacter; number markers are looked
//! for only behind it, where nothing of the client's stands.

use crate::text::{FIRST_ID, push_number};

/// Stands for the text.
pub(super) const TEXT: &str = "\u{10ffff}";
/// Stands for the token's id.
pub(super) const TOKEN_ID: u32 = 4_294_967_291;
/// Stands for the count of tokens so far.
pub(super) const COMPLETION: usize = 4_294_967_292;
/// Stands for the count of all tokens so far, prompt included.
pub(super) const TOTAL: usize = 4_294_967_293;

#[derive(Debug)]
enum Slot {
    Text,
    TokenId,
    Completion,
    Total,
}

/// An event with holes.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<(Vec<u8>, Slot)>,
    tail: Vec<u8>,
    prompt_tokens: usize,
    skipped: usize,
}

impl Template {
    /// Cuts a rendered event at its markers.
    pub(super) fn new(event: &[u8], prompt_tokens: usize, skipped: usize) -> Self {
        let event = String::from_utf8_lossy(event);
        // The last one: a model name may contain anything, and stands before.
        let (head, mut rest) = event
            .rsplit_once(TEXT)
            .expect("the event has a text marker");
        let mut parts = vec![(head.as_bytes().to_vec(), Slot::Text)];
        let mut holes: Vec<(usize, String, Slot)> = [
            (TOKEN_ID.to_string(), Slot::TokenId),
            (COMPLETION.to_string(), Slot::Completion),
            (TOTAL.to_string(), Slot::Total),
        ]
        .into_iter()
        .filter_map(|(marker, slot)| Some((rest.find(&marker)?, marker, slot)))
        .collect();
        holes.sort_by_key(|(at, ..)| *at);
        for (_, marker, slot) in holes {
            if let Some((before, after)) = rest.split_once(&marker) {
                parts.push((before.as_bytes().to_vec(), slot));
                rest = after;
            }
        }
        Self {
            parts,
            tail: rest.as_bytes().to_vec(),
            prompt_tokens,
            skipped,
        }
    }

    /// Appends the event of one token.
    pub(super) fn fill(&self, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        let completion = (token + 1).saturating_sub(self.skipped);
        for (part, slot) in &self.parts {
            out.extend_from_slice(part);
            match slot {
                Slot::Text => text(out),
                Slot::TokenId => push_number(u64::from(FIRST_ID) + token as u64, out),
                Slot::Completion => push_number(completion as u64, out),
                Slot::Total => push_number((self.prompt_tokens + completion) as u64, out),
            }
        }
        out.extend_from_slice(&self.tail);
    }
}
