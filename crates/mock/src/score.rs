//! The score of one streamed answer: its events in order, with the faults in their places.
//!
//! It knows nothing of sockets, chunks or clocks: each call appends at most one event to the
//! caller's buffer and says what it was. Events are rendered as they are asked for, so a stream of
//! any length costs no memory.

use std::{iter::Peekable, ops::Range, time::Duration, vec::IntoIter};

use crate::{
    Ask, Cut, Deed, Dialect, End, Mark, Point, Script,
    dialects::{Part, Voice},
    dress::Dress,
    text::Text,
};

/// What the score does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cue {
    /// One whole event was appended.
    Event,
    /// Bytes were appended that are no event of the answer (a comment, a foreign block).
    Extra,
    /// Bytes were appended that are a fault: what follows is no part of a good answer.
    Fault,
    /// Wait.
    Pause(Duration),
    /// Wait at a gate.
    Gate(String),
    /// Be silent until the client leaves.
    Stall,
    /// Break the chunk framing, then close.
    BadChunk,
    /// The answer is over.
    End(Close),
}

/// How the body is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    /// As a whole body.
    Clean,
    /// In the middle.
    Cut(Cut),
}

/// See the module.
pub(crate) struct Score {
    voice: Box<dyn Voice>,
    text: Text,
    dress: Dress,
    opening: IntoIter<Vec<u8>>,
    tokens: Range<usize>,
    choices: usize,
    choice: usize,
    closing: IntoIter<Vec<u8>>,
    marks: Peekable<IntoIter<Mark>>,
    turn: Option<Turn>,
    close: Close,
    /// How many bytes are missing from the last event.
    torn: usize,
    /// Set when the events left are no part of a good answer.
    faulty: bool,
    stall_at_end: bool,
    first_token_delay: Duration,
    step_gate: Option<String>,
    stepped: bool,
    events: usize,
}

/// Where the answer leaves its course, and what comes instead.
struct Turn {
    at: Point,
    then: Vec<Vec<u8>>,
    close: Close,
}

impl Score {
    pub(crate) fn new(script: &Script, ask: &Ask) -> Self {
        let Part {
            voice,
            text,
            choices,
            finish,
        } = Part::new(script, ask);
        let opening = voice.opening();
        let events = opening.len() + text.range().len() * choices;
        let mut marks = script.marks.clone();
        marks.sort_by_key(|mark| mark.after);
        Self {
            opening: opening.into_iter(),
            tokens: text.range(),
            choices,
            choice: 0,
            closing: closing(voice.as_ref(), &script.end, &finish, events).into_iter(),
            marks: marks.into_iter().peekable(),
            turn: turn(voice.as_ref(), &script.end),
            close: Close::Clean,
            torn: match script.end {
                End::TornLast(bytes) => bytes,
                _ => 0,
            },
            faulty: false,
            stall_at_end: script.end == End::SilenceAfterFinish,
            first_token_delay: script.first_token_delay,
            step_gate: script.step_gate.clone(),
            stepped: false,
            events: 0,
            dress: Dress::new(script),
            voice,
            text,
        }
    }

    /// Appends what comes next and says what it was. [`Cue::End`] repeats for ever.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Cue {
        if let Some(mark) = self.marks.next_if(|mark| mark.after <= self.events) {
            return self.deed(mark.deed, out);
        }
        if let Some(turn) = self.turn.take_if(|turn| turn.at.events <= self.events) {
            let start = out.len();
            if turn.at.bytes > 0 {
                self.event(out);
                out.truncate(out.len().min(start + turn.at.bytes));
            }
            self.opening = Vec::new().into_iter();
            self.tokens = 0..0;
            self.closing = turn.then.into_iter();
            self.close = turn.close;
            self.faulty = true;
            if out.len() > start {
                return Cue::Fault;
            }
        }
        if self.is_over() {
            let stall = std::mem::take(&mut self.stall_at_end);
            return if stall {
                Cue::Stall
            } else {
                Cue::End(self.close)
            };
        }
        let at_first_token = self.opening.len() == 0 && !self.tokens.is_empty();
        if at_first_token && !self.first_token_delay.is_zero() {
            return Cue::Pause(std::mem::take(&mut self.first_token_delay));
        }
        if let Some(gate) = &self.step_gate {
            self.stepped = !self.stepped;
            if self.stepped {
                return Cue::Gate(gate.clone());
            }
        }
        let start = out.len();
        self.event(out);
        self.events += 1;
        if self.torn > 0 && self.is_over() {
            out.truncate(out.len().saturating_sub(self.torn).max(start));
            return Cue::Fault;
        }
        if self.faulty { Cue::Fault } else { Cue::Event }
    }

    fn is_over(&self) -> bool {
        self.opening.len() == 0 && self.tokens.is_empty() && self.closing.len() == 0
    }

    /// Renders and dresses the next event, if there is one.
    fn event(&mut self, out: &mut Vec<u8>) {
        if self.is_over() {
            return;
        }
        let start = out.len();
        if let Some(event) = self.opening.next() {
            out.extend_from_slice(&event);
        } else if !self.tokens.is_empty() {
            let (text, token) = (&self.text, self.tokens.start);
            self.voice.text(
                self.choice,
                token,
                &|out| text.push_escaped(token, out),
                out,
            );
            self.choice += 1;
            if self.choice == self.choices {
                self.choice = 0;
                self.tokens.start += 1;
            }
        } else if let Some(event) = self.closing.next() {
            out.extend_from_slice(&event);
        }
        self.dress.dress(start, out);
    }

    fn deed(&mut self, deed: Deed, out: &mut Vec<u8>) -> Cue {
        let start = out.len();
        let token = self.tokens.start;
        match deed {
            Deed::Gate(name) => Cue::Gate(name),
            Deed::Pause(span) => Cue::Pause(span),
            Deed::Stall => Cue::Stall,
            Deed::BadChunk => Cue::BadChunk,
            Deed::Block(block) => {
                out.extend_from_slice(block.as_bytes());
                if block.lines().any(|line| line.starts_with("data")) {
                    Cue::Event
                } else {
                    Cue::Extra
                }
            }
            Deed::Huge(bytes) => {
                self.voice
                    .text(0, token, &|out| out.resize(out.len() + bytes, b'x'), out);
                self.dress.dress(start, out);
                Cue::Event
            }
            Deed::BadUtf8 => {
                self.voice
                    .text(0, token, &|out| out.extend_from_slice(b"bad \xff\xfe"), out);
                self.dress.dress(start, out);
                Cue::Fault
            }
        }
    }
}

/// What an end that comes before the last event does.
fn turn(voice: &dyn Voice, end: &End) -> Option<Turn> {
    let (at, then, close) = match end {
        End::RstAfter(at) => (*at, Vec::new(), Close::Cut(Cut::Rst)),
        End::FinAfter(at) => (*at, Vec::new(), Close::Cut(Cut::Fin)),
        End::CleanAfter(at) => (*at, Vec::new(), Close::Clean),
        End::ErrorAfter(error) => {
            let sentinel = voice.sentinel().filter(|_| error.sentinel);
            let events = [voice.error(error)].into_iter().chain(sentinel);
            (error.events.into(), events.collect(), Close::Clean)
        }
        End::AbortAfter(abort) => {
            let sentinel = voice.sentinel().filter(|_| abort.sentinel);
            let events = voice
                .finish("abort", abort.events)
                .into_iter()
                .chain(sentinel);
            (abort.events.into(), events.collect(), Close::Clean)
        }
        End::Done
        | End::NoSentinel
        | End::NoFinish
        | End::SentinelOnly
        | End::SilenceAfterFinish
        | End::TornLast(_) => return None,
    };
    Some(Turn { at, then, close })
}

/// The events after the text, behind so many others.
fn closing(voice: &dyn Voice, end: &End, finish: &str, before: usize) -> Vec<Vec<u8>> {
    let (finished, sentinel) = match end {
        End::NoFinish => (false, false),
        End::SentinelOnly => (false, true),
        End::NoSentinel | End::SilenceAfterFinish => (true, false),
        _ => (true, true),
    };
    let mut events = voice.calls(before);
    if finished {
        events.extend(voice.finish(finish, before + events.len()));
        events.extend(voice.usage());
    }
    if sentinel {
        events.extend(voice.sentinel());
    }
    events
}

impl Dialect {
    /// How many events of this dialect come before the first text event of `script`.
    pub fn events_before_text(self, script: &Script) -> usize {
        let part = Part::new(script, &Ask::stream(self));
        part.voice.opening().len()
    }
}
