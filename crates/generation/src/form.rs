//! The form of an error, in its place behind what readers have been given.

use streamweld_dialect::{Behind, Dialect, Ending, error_ending};
use streamweld_journal::{Seq, Window};
use streamweld_sse::{Decoder, Limits};

use crate::payload::call_of;

/// The error form of `dialect` behind the last entry of `window`, committed or not.
#[must_use]
pub fn error_form(window: &Window, dialect: Dialect, code: &str, message: &str) -> Ending {
    let last = window.received();
    let block = window
        .staged(Seq::new(last.get().saturating_sub(1)))
        .runs
        .concat();
    let mut decoder = Decoder::new(Limits {
        max_event: usize::MAX,
    });
    let mut input = block.as_slice();
    // Without a last event, or when that is none of the dialect, the form stands at the beginning.
    let last = decoder.decode(&mut input).unwrap_or_default();
    let call = (dialect == Dialect::Mcp).then(|| call_of(window)).flatten();
    let behind = Behind {
        last: last.as_ref(),
        call: call.as_deref(),
    };
    error_ending(dialect, code, message, behind)
}
