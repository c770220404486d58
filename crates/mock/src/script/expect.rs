//! What a script will put on the wire, told without a socket.

use bytes::Bytes;

use super::{LineEnd, Script};
use crate::{
    Ask,
    engine::Plan,
    score::{Cue, Score},
};

impl Script {
    /// The events a correct reader sees before the stream's first fault, each in plain form (LF, no
    /// id, no comments, no byte order mark) with its blank line.
    ///
    /// An error event, an aborted finish, a torn event and invalid UTF-8 are not among them, nor
    /// anything after them. A request that an engine refuses has none. For the answer as it would have been, ask the same script with
    /// [`End::Done`](crate::End::Done).
    pub fn expected(&self, ask: &Ask) -> Vec<Bytes> {
        if self.refuses(ask) {
            return Vec::new();
        }
        let plain = Self {
            line_end: LineEnd::Lf,
            bom: false,
            comment_every: 0,
            upstream_ids: None,
            retry: None,
            no_space: false,
            ..self.clone()
        };
        let mut score = Score::new(&plain, ask);
        let mut events = Vec::new();
        let mut event = Vec::new();
        loop {
            event.clear();
            match score.next(&mut event) {
                Cue::Event => events.push(Bytes::copy_from_slice(&event)),
                Cue::Pause(_) | Cue::Gate(_) | Cue::Extra => {}
                Cue::Fault | Cue::Stall | Cue::BadChunk | Cue::End(_) => return events,
            }
        }
    }

    /// The exact body bytes, before any content coding, up to the script's stall, cut or end.
    pub fn wire(&self, ask: &Ask) -> Vec<u8> {
        if self.refuses(ask) {
            return Vec::new();
        }
        let mut score = Score::new(self, ask);
        let mut wire = Vec::new();
        loop {
            match score.next(&mut wire) {
                Cue::Event | Cue::Extra | Cue::Fault | Cue::Pause(_) | Cue::Gate(_) => {}
                Cue::Stall | Cue::BadChunk | Cue::End(_) => return wire,
            }
        }
    }

    /// Whether the engine answers with an error and no stream.
    fn refuses(&self, ask: &Ask) -> bool {
        Plan::of(self, ask).is_some_and(|plan| plan.refused.is_some())
    }
}
