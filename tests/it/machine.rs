//! What the machine does to a replica: its log is not read, its memory is short, it hardly gets a core, its clock jumps. Real
//! processes; the numbers are those of the list of faults (docs/faults.md). A replica without descriptors is in
//! `redis_faults::descriptors`, one that stands still in `owner_lost` and `successors::races`.

pub(crate) mod clock;
mod log;
mod memory;
mod starved;

use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{CHAT, numbered};

/// What an uninterrupted reader of an answer to [`CHAT`] is given.
fn whole(script: &Script, id: &str) -> Vec<u8> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    numbered(id, &script.expected(&ask))
}
