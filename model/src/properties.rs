//! The guarantees, as what has to hold at every moment.

use stateright::Property;
use streamweld_journal::{Epoch, Kind};

use crate::log::{Entry, Written};
use crate::protocol::Protocol;
use crate::replica::{Life, Role, events};
use crate::system::System;

/// No two entries were ever shown under one cursor, to whomever.
pub const ONE_ENTRY_A_CURSOR: &str = "a cursor names one entry";
/// In the log, and in what a client was shown, each entry was made to follow the one before it.
pub const ONE_ANSWER: &str = "an answer goes on where it stood";
/// The log of a generation that has its end has no gap.
pub const NO_GAP: &str = "a log that has its end has no gap";
/// Nothing stands behind a terminal, and no reader is shown anything behind one.
pub const END_IS_FINAL: &str = "a terminal is the last entry";
/// `done` stands behind every event of the answer only.
pub const DONE_IS_WHOLE: &str = "done is whole";
/// No two replicas write under one epoch.
pub const ONE_WRITER: &str = "an epoch has one writer";
/// A generation that a stop was answered for has the end that was told.
pub const STOP_STAYS: &str = "a stop that was answered stays";
/// Where nothing happens any more, the generation has its end, and so has its reader, or a definite answer.
pub const NOBODY_WAITS: &str = "nobody waits for ever";

/// All of them.
pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_ENTRY_A_CURSOR, |_, now: &System| !now.clash),
        Property::always(ONE_ANSWER, |model: &Protocol, now: &System| {
            follows(&now.log.entries(model.bounds.without)) && follows(&now.reader.entries)
        }),
        Property::always(NO_GAP, |model: &Protocol, now: &System| {
            now.log.end().is_none()
                || now
                    .log
                    .entries(model.bounds.without)
                    .last()
                    .is_some_and(is_end)
        }),
        Property::always(END_IS_FINAL, |model: &Protocol, now: &System| {
            let ends = |it: &[Written]| {
                it.iter()
                    .position(is_end)
                    .is_none_or(|at| at + 1 == it.len())
            };
            let at = now.log.records.iter().position(|it| it.ends());
            at.is_none_or(|at| at + 1 == now.log.records.len())
                && ends(&now.log.entries(model.bounds.without))
                && ends(&now.reader.entries)
        }),
        Property::always(DONE_IS_WHOLE, |model: &Protocol, now: &System| {
            let is_whole = |it: &[Written]| events(it) == usize::from(model.bounds.events);
            let is_done = |it: &[Written]| it.last().is_some_and(|it| it.1.kind() == Kind::Done);
            let check = |it: &[Written]| !is_done(it) || is_whole(it);
            check(&now.log.entries(model.bounds.without)) && check(&now.reader.entries)
        }),
        Property::always(ONE_WRITER, |_, now: &System| {
            let mut epochs: Vec<_> = now
                .replicas
                .iter()
                .filter_map(|it| epoch(&it.role))
                .collect();
            epochs.sort_unstable();
            epochs.windows(2).all(|pair| pair[0] != pair[1])
        }),
        Property::always(STOP_STAYS, |_, now: &System| {
            match (now.acknowledged, now.log.end()) {
                (Some(told), Some(end)) => told == end,
                _ => true,
            }
        }),
        Property::always(NOBODY_WAITS, |model: &Protocol, now: &System| {
            let is_told = !model.bounds.reader || now.reader.has_ended() || !now.reader.follows;
            let is_over = now.log.end().is_some() && is_told;
            let anybody = now.replicas.iter().any(|it| it.life == Life::Up);
            is_over || !anybody || !model.is_quiet(now)
        }),
    ]
}

fn is_end(it: &Written) -> bool {
    it.1.kind().is_terminal()
}

fn epoch(role: &Role) -> Option<Epoch> {
    match role {
        Role::Writes(writer) => Some(writer.epoch),
        Role::Adopted(adopted) => Some(adopted.epoch),
        Role::Idle | Role::Takes(_) | Role::Ended(_) => None,
    }
}

/// Each was made to go on from those before it.
fn follows(entries: &[Written]) -> bool {
    let made = |at: usize| Entry::new(entries[at].1.kind(), entries[at].1.by, &entries[..at]);
    (0..entries.len()).all(|at| entries[at].1 == made(at))
}
