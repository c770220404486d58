//! The transcript of a generation, derived from its entries when somebody asks. Never on the hot path.

use streamweld_dialect::{Dialect, Transcript};
use streamweld_journal::{Kind, Seq, Window};
use streamweld_sse::{Decoder, Limits};

/// How many entries are read from the window at once, so that its lock is held briefly.
const PAGE: usize = 256;

/// Reads what is committed and retained. Where the ring has dropped the beginning, the transcript begins later and
/// its counts are estimates.
#[must_use]
pub fn transcript(window: &Window, dialect: Dialect) -> Transcript {
    let mut transcript = Transcript::new(dialect);
    let mut after = Seq::new(window.earliest().get().saturating_sub(1));
    loop {
        let page = window.entries(after, PAGE);
        let Some(last) = page.last() else {
            return transcript;
        };
        after = last.seq;
        for entry in page.iter().filter(|entry| entry.kind == Kind::Event) {
            let mut decoder = Decoder::new(Limits {
                max_event: usize::MAX,
            });
            for mut piece in [&entry.lines[..], b"\n"] {
                if let Ok(Some(event)) = decoder.decode(&mut piece) {
                    transcript.push(&event);
                }
            }
        }
    }
}
