//! From the bytes of a backend's body to staged entries.

use std::time::SystemTime;

use streamweld_dialect::{Dialect, FailureClass, Shown, Trail, recognise};
use streamweld_journal::{Kind, Staging, Window};
use streamweld_sse::{DecodeError, Decoder, Event, Limits, Retry, encode_lines};
use tokio::time::Instant;

use crate::counters::Counters;
use crate::happening::Happening;
use crate::leg::{Reading, of_lines};
use crate::lifecycle::{End, Lifecycle, OnEvent};

/// One moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) instant: Instant,
    pub(crate) time: SystemTime,
}

impl At {
    pub(crate) fn now() -> Self {
        Self {
            instant: Instant::now(),
            time: SystemTime::now(),
        }
    }

    /// This moment, from a moment before: the clock is looked at once, and time only goes on.
    pub(crate) fn since(self) -> Self {
        let instant = Instant::now();
        Self {
            instant,
            time: self.time + instant.duration_since(self.instant),
        }
    }
}

/// The decoder of one attempt, and what it has learnt beside the events.
pub(crate) struct Intake {
    decoder: Decoder,
    retry: Retry,
    /// The backend's own ids are kept only where a feed may be taken up again with them.
    keeps_id: bool,
    upstream_id: Option<String>,
    /// How its endings look: its dialect, or the one that the first event of a generic stream shows.
    shown_as: Dialect,
    /// No event is staged yet, and the first one may show how it is written.
    unrecognised: bool,
    /// The lines of an event that waits for the next.
    held: Option<Vec<u8>>,
    /// What chunks are changed by, where they are.
    reading: Option<Box<Reading>>,
    /// What it learns of tokens is kept beside the events.
    tells: bool,
    /// An event was staged.
    has_staged: bool,
    limits: Limits,
}

impl Intake {
    /// `tells`: there are other replicas, which may have to go on with it.
    pub(crate) fn new(limits: Limits, dialect: Dialect, tells: bool) -> Self {
        let reconnects = dialect.keeps_retry();
        Self {
            decoder: Decoder::new(limits),
            retry: if reconnects { Retry::Keep } else { Retry::Drop },
            keeps_id: reconnects,
            upstream_id: None,
            shown_as: dialect,
            unrecognised: dialect == Dialect::Generic,
            held: None,
            reading: None,
            tells,
            has_staged: false,
            limits,
        }
    }

    /// Somebody else has staged what was before.
    pub(crate) fn goes_on(&mut self) {
        self.has_staged = true;
    }

    /// Another body comes, which begins with a whole event: what is left of a block is forgotten.
    pub(crate) fn begin_again(&mut self) {
        self.decoder = Decoder::new(self.limits);
        // The end that it belongs to was none.
        self.held = None;
    }

    /// An event that was staged already, by whoever had this before.
    pub(crate) fn replayed(&mut self, event: &Event<'_>) {
        if std::mem::take(&mut self.unrecognised) {
            self.shown_as = recognise(event).unwrap_or(self.shown_as);
        }
    }

    /// How the chunks of the body that comes are read.
    pub(crate) fn read_by(&mut self, mut reading: Option<Box<Reading>>) {
        if let Some(reading) = reading.as_mut().filter(|_| self.tells) {
            reading.tell();
        }
        self.reading = reading;
    }

    /// What whoever had this before was told of the tokens of the answer.
    pub(crate) fn inherit(&mut self, trail: Trail) {
        self.reading = Some(Box::new(Reading::new(None, None, trail)));
    }

    /// What was told of the tokens of the answer, where that was asked for.
    pub(crate) fn trail(&self) -> Option<&Trail> {
        self.reading.as_ref().map(|reading| reading.trail())
    }

    /// Stages every event that `bytes` completes, under one lock. Gives the end if one of them brought it; what comes
    /// after it is nobody's.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        at: At,
        window: &Window,
        lifecycle: &mut Lifecycle,
        counters: &Counters,
    ) -> Option<End> {
        let mut staging: Option<Staging<'_>> = None;
        let mut staged = 0;
        let mut end = None;
        loop {
            let event = match self.decoder.decode(&mut bytes) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    let (class, message) = unusable(&error, self.limits.max_event);
                    end = lifecycle.unusable(class, message);
                    break;
                }
            };
            if self.keeps_id {
                if let Some(id) = event.id() {
                    self.upstream_id = Some(id.to_owned());
                }
            }
            let mut stage = |lines: &mut dyn FnMut(&mut Vec<u8>), told: &[u8]| {
                staged += 1;
                let staging = staging.get_or_insert_with(|| window.stage(at.time));
                staging.push(Kind::Event, |out| lines(out));
                if !told.is_empty() {
                    staging.beside(told);
                }
            };
            let on = lifecycle.event(&event, at.instant.into_std());
            let shown = match (&mut self.reading, &on) {
                (None, _) | (_, OnEvent::Skip) => Some(Shown::Same),
                (Some(reading), OnEvent::End { salvage, .. }) => {
                    let lines = salvage.as_deref().unwrap_or_default();
                    of_lines(lines, |event| reading.event(event)).unwrap_or(Some(Shown::Same))
                }
                (Some(reading), _) => reading.event(&event),
            };
            let Some(shown) = shown else {
                let message = "the seam did not hold".to_owned();
                end = lifecycle.unusable(FailureClass::UpstreamError, message);
                break;
            };
            match &on {
                OnEvent::Stage | OnEvent::StageAndEnd(_) if shown == Shown::Nothing => {}
                OnEvent::Stage | OnEvent::StageAndEnd(_) => {
                    if let Some(held) = self.held.take() {
                        stage(&mut |out| out.extend_from_slice(&held), &[]);
                    }
                    if std::mem::take(&mut self.unrecognised) {
                        self.shown_as = recognise(&event).unwrap_or(self.shown_as);
                    }
                    let told = self.reading.as_mut().map(|reading| reading.take_told());
                    let mut lines = |out: &mut Vec<u8>| match &shown {
                        Shown::Lines(lines) => out.extend_from_slice(lines),
                        Shown::Same | Shown::Nothing => encode_lines(&event, self.retry, out),
                    };
                    stage(&mut lines, &told.unwrap_or_default());
                }
                OnEvent::Hold if shown == Shown::Nothing => {}
                OnEvent::Hold => {
                    let mut lines = Vec::new();
                    match &shown {
                        Shown::Lines(shown) => lines.extend_from_slice(shown),
                        Shown::Same | Shown::Nothing => {
                            encode_lines(&event, self.retry, &mut lines);
                        }
                    }
                    if let Some(held) = self.held.replace(lines) {
                        stage(&mut |out| out.extend_from_slice(&held), &[]);
                    }
                }
                OnEvent::End {
                    salvage: Some(lines),
                    ..
                } => match &shown {
                    Shown::Same => stage(&mut |out| out.extend_from_slice(lines), &[]),
                    Shown::Lines(lines) => stage(&mut |out| out.extend_from_slice(lines), &[]),
                    Shown::Nothing => {}
                },
                OnEvent::Skip | OnEvent::End { salvage: None, .. } => {}
            }
            if let OnEvent::StageAndEnd(found) | OnEvent::End { end: found, .. } = on {
                end = Some(found);
                break;
            }
        }
        drop(staging);
        counters.events.inc_by(staged);
        if staged > 0 && !std::mem::replace(&mut self.has_staged, true) {
            counters.onlookers.tell(window.id(), &Happening::FirstEvent);
        }
        end
    }

    /// Stages what has waited for the next event: the answer is whole without one.
    pub(crate) fn release(&mut self, time: SystemTime, window: &Window, counters: &Counters) {
        if let Some(held) = self.held.take() {
            let mut staging = window.stage(time);
            staging.push(Kind::Event, |out| out.extend_from_slice(&held));
            counters.events.inc();
        }
    }

    /// What is left of a block that never got its blank line: evidence of an end, never an event.
    pub(crate) fn tail(&self) -> Option<Event<'_>> {
        self.decoder.tail_event()
    }

    /// The dialect in which readers are shown an ending.
    pub(crate) fn shown_as(&self) -> Dialect {
        self.shown_as
    }

    /// The last event ID that the backend itself sent.
    pub(crate) fn upstream_id(&self) -> Option<String> {
        self.upstream_id.clone()
    }
}

fn unusable(error: &DecodeError, max_event: usize) -> (FailureClass, String) {
    match error {
        DecodeError::TooLarge { .. } => (
            FailureClass::EventTooLarge,
            format!("more than {max_event} bytes"),
        ),
        DecodeError::InvalidUtf8 => (
            FailureClass::InvalidUtf8,
            "the event was not journaled".to_owned(),
        ),
    }
}
