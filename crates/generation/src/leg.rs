//! One attempt, as its producer knows it; and what its chunks need before they are staged.

use std::sync::Arc;

use streamweld_dialect::{Added, Engine, Rejoin, Rejoined, Shown, Trail};
use streamweld_sse::{Decoder, Event, Limits};

use crate::migration::Policy;

/// Which backend an attempt is at, and what it was asked beyond what the app had asked.
#[derive(Clone, Debug)]
pub struct Leg {
    /// The backend's name.
    pub backend: Arc<str>,
    /// Which it is, whatever its name: whoever comes back is another.
    pub member: u64,
    /// Its compatibility group.
    pub group: Option<Arc<str>>,
    /// What the operator allows there.
    pub policy: Policy,
    /// What it has shown itself to be.
    pub engine: Option<Engine>,
    /// What was added to the request.
    pub added: Option<Added>,
}

/// Reads the chunks of an attempt that was asked for more than the app had asked, or that goes on with another.
#[derive(Debug)]
pub(crate) struct Reading {
    added: Option<Added>,
    rejoin: Option<Rejoin>,
    trail: Trail,
    /// What was told since the last event that was staged, for whoever goes on when this process is gone. `None`: nobody
    /// could.
    told: Option<Vec<u8>>,
}

impl Reading {
    /// Of the first attempt; none is needed where nothing was added.
    pub(crate) fn first(added: Option<Added>) -> Option<Box<Self>> {
        added.map(|added| Box::new(Self::new(Some(added), None, Trail::default())))
    }

    pub(crate) fn new(added: Option<Added>, rejoin: Option<Rejoin>, trail: Trail) -> Self {
        Self {
            added,
            rejoin,
            trail,
            told: None,
        }
    }

    /// What is told of the tokens is to stand beside the events, from its beginning.
    pub(crate) fn tell(&mut self) {
        let mut told = Vec::new();
        self.trail.begin_bytes(&mut told);
        self.told = Some(told);
    }

    /// What was told of the tokens and stands beside no event yet.
    pub(crate) fn take_told(&mut self) -> Vec<u8> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What was told of the tokens so far.
    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    /// What the reader is shown of a chunk. `None` where the seam turns out not to hold.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Option<Shown> {
        match &mut self.told {
            Some(told) => self.trail.push_told(&event.data(), told),
            None => self.trail.push(&event.data()),
        }
        let joined = match &mut self.rejoin {
            None => return Some(self.plain(event)),
            Some(rejoin) => match rejoin.event(event) {
                Rejoined::Lines(lines) => lines,
                Rejoined::Nothing => return Some(Shown::Nothing),
                Rejoined::Broken => return None,
            },
        };
        let shown = of_lines(&joined, |event| self.plain(event));
        Some(match shown {
            None | Some(Shown::Same) => Shown::Lines(joined),
            Some(shown) => shown,
        })
    }

    /// Without what was asked for beyond the app's wish.
    fn plain(&self, event: &Event<'_>) -> Shown {
        self.added.map_or(Shown::Same, |added| added.shown(event))
    }
}

/// Reads the wire lines of one event.
pub(crate) fn of_lines<T>(lines: &[u8], read: impl FnOnce(&Event<'_>) -> T) -> Option<T> {
    let mut decoder = Decoder::new(Limits {
        max_event: usize::MAX,
    });
    let block = [lines, b"\n"].concat();
    let event = decoder.decode(&mut &block[..]).ok()??;
    Some(read(&event))
}
