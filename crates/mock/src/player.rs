//! Plays a score in writes: how much goes into one write, and the pace between writes.

use std::time::Duration;

use crate::{
    Ask, Script, Writes,
    score::{Close, Cue, Score},
};

/// What whoever plays has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// Write [`Player::bytes`], then call [`Player::written`].
    Write,
    /// Wait.
    Pause(Duration),
    /// Wait at a gate.
    Gate(String),
    /// Be silent until the client leaves.
    Stall,
    /// Break the chunk framing, then close.
    BadChunk,
    /// Close.
    End(Close),
}

/// See the module.
pub(crate) struct Player {
    score: Score,
    writes: Writes,
    pace: Duration,
    held: Vec<u8>,
    /// How many events `held` has, torn ones included.
    held_events: usize,
    /// What comes once `held` is written.
    next: Option<Cue>,
    events: usize,
    pace_due: bool,
}

impl Player {
    pub(crate) fn new(script: &Script, ask: &Ask) -> Self {
        Self {
            score: Score::new(script, ask),
            writes: script.writes,
            pace: script.pace,
            held: Vec::new(),
            held_events: 0,
            next: None,
            events: 0,
            pace_due: false,
        }
    }

    /// Decides the next move.
    pub(crate) fn next(&mut self) -> Move {
        loop {
            if self.is_full() || (self.next.is_some() && !self.held.is_empty()) {
                return self.write();
            }
            match self
                .next
                .take()
                .unwrap_or_else(|| self.score.next(&mut self.held))
            {
                Cue::Event => {
                    self.events += 1;
                    self.held_events += 1;
                }
                Cue::Extra | Cue::Fault => self.held_events += 1,
                cue if !self.held.is_empty() => self.next = Some(cue),
                Cue::Pause(span) => return Move::Pause(span),
                Cue::Gate(name) => return Move::Gate(name),
                Cue::Stall => return Move::Stall,
                Cue::BadChunk => return Move::BadChunk,
                Cue::End(close) => return Move::End(close),
            }
        }
    }

    /// The bytes of the write that [`Move::Write`] asks for.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.held[..self.size()]
    }

    /// Forgets the bytes that were written.
    pub(crate) fn written(&mut self) {
        let size = self.size();
        self.held.drain(..size);
        self.held_events = 0;
        self.pace_due = true;
    }

    /// How many good events were begun so far.
    pub(crate) fn events(&self) -> usize {
        self.events
    }

    fn write(&mut self) -> Move {
        if std::mem::take(&mut self.pace_due) && !self.pace.is_zero() {
            return Move::Pause(self.pace);
        }
        Move::Write
    }

    fn size(&self) -> usize {
        match self.writes {
            Writes::Bytes(bytes) => bytes.max(1).min(self.held.len()),
            Writes::WholeEvent | Writes::Batch(_) | Writes::AllAtOnce => self.held.len(),
        }
    }

    fn is_full(&self) -> bool {
        match self.writes {
            Writes::WholeEvent => self.held_events >= 1,
            Writes::Batch(events) => self.held_events >= events.max(1),
            Writes::Bytes(bytes) => self.held.len() >= bytes.max(1),
            Writes::AllAtOnce => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    /// The moves of a script, writes told by their sizes in events.
    fn play(script: Script) -> Vec<String> {
        let mut player = Player::new(&script, &Ask::stream(Dialect::Generic));
        let mut moves = Vec::new();
        loop {
            match player.next() {
                Move::Write => {
                    let text = String::from_utf8_lossy(player.bytes()).into_owned();
                    moves.push(text.matches("\n\n").count().to_string());
                    player.written();
                }
                Move::End(Close::Clean) => return moves,
                other => moves.push(format!("{other:?}")),
            }
        }
    }

    #[test]
    fn events_are_grouped_into_writes() {
        assert_eq!(play(Script::tokens(3)), ["1", "1", "1"]);
        assert_eq!(play(Script::tokens(3).writes(Writes::Batch(2))), ["2", "1"]);
        assert_eq!(play(Script::tokens(3).writes(Writes::AllAtOnce)), ["3"]);
    }

    #[test]
    fn a_mark_ends_a_write() {
        let script = Script::tokens(3)
            .writes(Writes::AllAtOnce)
            .gate_after(1, "g");
        assert_eq!(play(script), ["1", "Gate(\"g\")", "2"]);
    }

    #[test]
    fn pace_is_between_writes_only() {
        let pace = Duration::from_millis(5);
        assert_eq!(play(Script::tokens(2).pace(pace)), ["1", "Pause(5ms)", "1"]);
    }

    #[test]
    fn bytes_tear_events() {
        let ask = Ask::stream(Dialect::OpenAiChat);
        let script = Script::tokens(3).writes(Writes::Bytes(7));
        let mut player = Player::new(&script, &ask);
        let mut wire = Vec::new();
        while player.next() == Move::Write {
            assert!(player.bytes().len() <= 7);
            wire.extend_from_slice(player.bytes());
            player.written();
        }
        assert_eq!(wire, script.wire(&ask));
    }
}
