//! A producer that goes on with what another replica has begun.
//!
//! ```text
//! its owner is gone:  adopt ──> replay ──whole──> done
//!                                 └──> the gates, with what was left ──> another backend goes on, or the refusal is the end
//! its owner leaves:   replay ──> the gates ──> another backend's seam holds ──> adopt from exactly what was offered ──> go on
//! ```
//!
//! What was committed decides, and nothing else: it is read again from the beginning, as its owner had read it. So an
//! answer whose last event stands already has its end, and is asked of nobody.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use streamweld_dialect::{BodyEnd, Trail};
use streamweld_journal::{EntryBytes, Epoch, Kind, Seq};
use tokio::time::{Instant, sleep, timeout};

use super::moving::Found;
use super::{Producer, Shared};
use crate::committer::Committer;
use crate::handle::{Durability, Handle, Head};
use crate::happening::Happening;
use crate::intake::Intake;
use crate::leg::{Leg, of_lines};
use crate::lifecycle::{End, Lifecycle, OnEvent, Signal};
use crate::log::Log;
use crate::migration::{Judged, Outcome as Search, Trigger};
use crate::payload::MigrationPayload;
use crate::reader::Presence;
use crate::source::{ByteSource, Onward};
use crate::takeover::adopt;
use crate::transcript::walk;

/// What another replica has left of a generation.
#[derive(Debug)]
pub struct Estate {
    /// The attempt that it was at.
    pub leg: Leg,
    /// How many attempts there were.
    pub attempts: u32,
    /// What was told of the tokens, see [`Trail::rebuild`].
    pub told: Vec<Bytes>,
}

/// What became of an offer.
#[derive(Debug)]
pub enum Taken {
    /// It goes on here, and has its end now.
    Yes,
    /// These gates refuse, or nobody could be asked.
    Declined(Judged),
    /// Its owner goes on with it, or somebody else has it, or it has its end.
    NotOurs,
}

/// How long reading again what stands may take.
const REPLAY: Duration = Duration::from_secs(30);
/// How long the readers of an owner that is gone may take to come here, before there are none.
const READERS: Duration = Duration::from_secs(2);

impl Producer {
    /// For a generation that another replica has begun. Its window begins behind all that stands, under a fresh epoch. It
    /// is not found before it is adopted.
    #[must_use]
    pub fn heir(shared: Shared, handle: Arc<Handle>) -> Self {
        let spec = handle.spec();
        let begun = handle.begun().into_std();
        let lifecycle = Lifecycle::new(spec.dialect, spec.policy, shared.limits.times, begun);
        let mut intake = Intake::new(shared.limits.event, spec.dialect, true);
        intake.goes_on();
        Self {
            shared,
            handle,
            lifecycle,
            intake,
            leg: None,
            keep: None,
            moves: 0,
            durable: true,
            // Nothing of it is this producer's to clean up.
            over: true,
        }
    }

    /// Goes on with a generation whose owner is gone, and that was adopted from exactly where its window begins.
    pub async fn succeed_lost<S: ByteSource + 'static>(
        mut self,
        estate: Estate,
        onward: Onward<S>,
    ) {
        self.stand();
        let shared = self.shared.clone();
        let handle = Arc::clone(&self.handle);
        let mut log = self.log(&shared, &handle);
        let end = match self.replay(estate).await {
            Replayed::Ended(end) => Some(end),
            Replayed::Lost => Some(End::OwnerLost),
            Replayed::Open => match self.succeed(Trigger::OwnerLost, onward.backends.as_ref()) {
                None => Some(End::OwnerLost),
                Some(moving) => {
                    self.keep = onward.keep.clone();
                    let mut source = None;
                    let pump = self.pump(&mut source, onward, &mut log, Some(moving));
                    Box::pin(pump).await
                }
            },
        };
        self.conclude(end, &mut log).await;
    }

    /// Goes on with a generation that its owner, who writes it under the epoch `offered`, would like to leave, where the
    /// gates allow it. Comes back when it has its end.
    pub async fn succeed_living<S: ByteSource + 'static>(
        mut self,
        offered: Epoch,
        estate: Estate,
        onward: Onward<S>,
    ) -> Taken {
        let Replayed::Open = self.replay(estate).await else {
            return Taken::NotOurs;
        };
        let Some(mut moving) = self.succeed(Trigger::HandOver, onward.backends.as_ref()) else {
            return Taken::Declined(Judged::default());
        };
        let moved = match (&mut moving.found).await {
            Found::Outcome(Search::Moved(moved)) => moved,
            Found::Outcome(Search::Refused(judged)) => return Taken::Declined(judged),
            Found::Outcome(Search::Nobody) | Found::Judged(_) | Found::Kept(_) => {
                return Taken::Declined(Judged::default());
            }
        };
        let window = Arc::clone(self.handle.window());
        let handle = Arc::clone(&self.handle);
        let adopted = adopt(
            &*self.shared.journal,
            window.id(),
            (offered, window.epoch()),
            Some(window.committed()),
            || !handle.shutdown_asked(),
        );
        if adopted.await.is_err() {
            return Taken::NotOurs;
        }
        self.stand();
        self.keep = onward.keep.clone();
        let shared = self.shared.clone();
        let mut log = self.log(&shared, &handle);
        let found = Found::Outcome(Search::Moved(moved));
        let (mut source, _) = self.moved(moving, found);
        log.staged(window.received());
        let end = Box::pin(self.pump(&mut source, onward, &mut log, None)).await;
        drop(source);
        self.conclude(end, &mut log).await;
        Taken::Yes
    }

    /// It can be found from now on, and is this producer's.
    fn stand(&mut self) {
        self.over = false;
        self.shared.registry.insert(Arc::clone(&self.handle));
        self.tell(&Happening::Created {
            handle: &self.handle,
            durability: Durability::Durable,
            inherited: true,
        });
        self.handle.set_head(Head::Streaming(Durability::Durable));
        self.shared.journal.look(self.handle.spec().id);
        // Readers have to come here first.
        let presence = Presence::new(Arc::clone(&self.handle));
        tokio::spawn(async move {
            sleep(READERS).await;
            drop(presence);
        });
    }

    fn log<'a>(&self, shared: &'a Shared, handle: &'a Arc<Handle>) -> Log<'a> {
        let bounds = &shared.limits.heal;
        let mut committer =
            Committer::new(&*shared.journal, handle.window(), bounds, &shared.counters);
        committer.inherit();
        Log::Journal(committer)
    }

    async fn conclude(&mut self, end: Option<End>, log: &mut Log<'_>) {
        match end {
            Some(end) => Box::pin(self.finish(end, log)).await,
            None => self.lost(),
        }
        self.leave(Head::Ended);
    }

    /// Reads again what stands.
    async fn replay(&mut self, estate: Estate) -> Replayed {
        let Estate {
            leg,
            attempts,
            told,
        } = estate;
        let handle = Arc::clone(&self.handle);
        handle.resume_at(attempts, &leg.backend);
        self.leg = Some(leg);
        let now = Instant::now().into_std();
        let begun = self.lifecycle.on(Signal::Head { durable: true }, now);
        if let Some(end) = begun {
            return Replayed::Ended(end);
        }
        let (mut end, mut next) = (None, Seq::FIRST);
        let read = walk(handle.window(), |entries| {
            for entry in entries {
                // What has a gap is not the answer.
                if entry.seq == next {
                    next = entry.seq.next();
                    end = end.take().or_else(|| self.again(entry, now));
                }
            }
        });
        let is_late = timeout(REPLAY, read).await.is_err();
        // Behind those that the log tells of.
        handle.knew(&handle.backend());
        if is_late || next != handle.window().committed().next() {
            return Replayed::Lost;
        }
        let pieces: Vec<u8> = told.concat();
        if let Some(trail) = Trail::rebuild(&pieces).filter(|_| !pieces.is_empty()) {
            self.intake.inherit(trail);
        }
        let end = end.or_else(|| self.lifecycle.body_ended(BodyEnd::Cut, None));
        match end {
            Some(End::Failed(_)) | None => Replayed::Open,
            Some(end) => Replayed::Ended(end),
        }
    }

    /// Takes one entry as its owner had taken it.
    fn again(&mut self, entry: &EntryBytes, now: std::time::Instant) -> Option<End> {
        match entry.kind {
            Kind::Event => {
                let on = of_lines(&entry.lines, |event| {
                    self.intake.replayed(event);
                    self.lifecycle.event(event, now)
                });
                match on {
                    Some(OnEvent::StageAndEnd(end)) => Some(end),
                    _ => None,
                }
            }
            Kind::Migration => {
                self.moves += 1;
                self.handle.note_move();
                let moved = of_lines(&entry.lines, |event| {
                    serde_json::from_str::<MigrationPayload>(&event.data()).ok()
                });
                if let Some(moved) = moved.flatten() {
                    self.handle.knew(&moved.from);
                }
                // What the attempt before had begun is gone with it.
                self.lifecycle.resume(now);
                None
            }
            _ => None,
        }
    }
}

/// What stands is …
enum Replayed {
    /// … a whole answer, or one that is over for another reason.
    Ended(End),
    /// … a part of an answer.
    Open,
    /// … not all there, or could not be read.
    Lost,
}
