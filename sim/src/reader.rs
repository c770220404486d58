//! Who reads an answer, over as many connections and at as many replicas as it takes.

mod ask;
mod blocks;
mod history;
mod reading;

pub use ask::{Answer, Ask};
pub(crate) use history::control;
pub use history::{Cursor, End, History, Shown};
pub use reading::{Generation, Reading, Setting, audit, read, stop};
