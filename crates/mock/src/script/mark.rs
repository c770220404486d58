//! Things that happen in the middle of a stream, after which it goes on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::span;

/// Something that happens after so many events. Marks at one place happen in the order of the list.
///
/// In JSON: `{"after": 3, "do": "stall"}`, `{"after": 3, "do": {"gate": "name"}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// After how many whole events of the dialect.
    pub after: usize,
    /// What happens.
    #[serde(rename = "do")]
    pub deed: Deed,
}

/// What a [`Mark`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Waits until the gate of this name is released (see [`Gates`](crate::Gates)).
    Gate(String),
    /// Waits.
    Pause(#[serde(with = "span")] Duration),
    /// Is silent until the client leaves.
    Stall,
    /// Writes this text as it is: an event of another kind, a comment, half an event, a field.
    Block(String),
    /// One more text event of the dialect, with so many bytes of text.
    Huge(usize),
    /// One more text event of the dialect, whose text is not valid UTF-8.
    BadUtf8,
    /// A chunk size that is no number (with chunked framing), then FIN.
    BadChunk,
}
