//! What a replica does that adopts a generation: `crates/generation/src/takeover.rs`, and the hand-over.

use streamweld_journal::rules::adoptable;
use streamweld_journal::{Adoption, Epoch, Kind, Refusal, Seq, Tail};

use crate::bounds::{Bounds, Rule};
use crate::log::{Entry, Name, Record};
use crate::replica::{Adopted, Ended, Role, Taker, Why, Writer, events};
use crate::system::{System, What};

/// Its owner has been silent for a whole lease. Or it is the owner itself and does not write: it was fenced by an adoption that
/// was lost since. `Inner::reclaim` in `crates/journal-redis/src/presence.rs`.
pub(crate) fn judges(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let (owner, gone) = now.log.owner();
    let is_idle = matches!(now.up(name)?, Role::Idle);
    let may = match owner == name {
        true => is_idle && bounds.without != Some(Rule::NamedWriterIsAsked),
        false => bounds.without != Some(Rule::SilentIsJudged) && now.is_silent(owner),
    };
    (may && now.log.end().is_none()).then_some(())?;
    takes(now, name, Why::OwnerLost, gone)
}

/// It finds on its list what it does not write: an end that it wrote is lost. It looks when its connection is another one.
pub(crate) fn misses_end(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let (owner, gone) = now.log.owner();
    let has_ended = matches!(now.up(name)?, Role::Ended(_));
    let may = bounds.without != Some(Rule::EndIsLookedAfter)
        && has_ended
        && now.log.connection > 0
        && owner == name
        && now.log.end().is_none();
    may.then_some(())?;
    takes(now, name, Why::EndLost, gone)
}

/// It writes an end again that it remembers.
pub(crate) fn ends_again(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    matches!(now.up(name)?, Role::Ended(_)).then_some(())?;
    let end = now.log.ends(None, bounds.without)?;
    let Role::Ended(own) = now.up(name)? else {
        return None;
    };
    let Tail::Last {
        epoch,
        last,
        terminal: false,
        ..
    } = end.tail
    else {
        return None;
    };
    let received = own.entries.len() as u64;
    let may = bounds.without != Some(Rule::EndIsLookedAfter)
        && !own.sent
        && epoch == own.epoch
        && last.get() < received;
    may.then_some(())?;
    own.sent = true;
    let entries = own.entries.iter().skip(last.get() as usize);
    let record = Record {
        epoch,
        writer: name,
        first: last.next(),
        entries: entries.map(|it| it.1).collect(),
        follows: None,
    };
    now.send(name, What::End(last, record));
    Some(())
}

/// It has room, reads what it was offered, asks its backend, and has the seam verified. Or refuses, which is as if it had not
/// heard.
pub(crate) fn accepts(now: &mut System, at: usize, bounds: &Bounds) -> Option<()> {
    let offer = *now.offers.get(at)?;
    let end = now.log.tail(bounds.without);
    let Tail::Last {
        epoch,
        last,
        terminal: false,
        ..
    } = end.tail
    else {
        return None;
    };
    if (epoch, last) != (offer.epoch, offer.last) || end.leaves_gap {
        return None;
    }
    let base = now.log.entries(bounds.without);
    takes(now, offer.to, Why::HandOver(base), offer.epoch)?;
    now.offers.remove(at);
    Some(())
}

/// It begins to adopt.
pub(crate) fn takes(now: &mut System, name: Name, why: Why, gone: Epoch) -> Option<()> {
    let role = now.up(name)?;
    matches!(role, Role::Idle | Role::Ended(Ended { sent: false, .. })).then_some(())?;
    *role = Role::Takes(Taker {
        why,
        gone,
        by: None,
        sent: false,
    });
    Some(())
}

/// It looks how the log ends, and asks to adopt it from there, under an epoch that it chooses once.
pub(crate) fn asks(now: &mut System, name: Name, place: u8, bounds: &Bounds) -> Option<()> {
    let Role::Takes(taker) = now.up(name)? else {
        return None;
    };
    if taker.sent {
        return None;
    }
    match taker.by {
        None => {
            let gone = taker.gone;
            let by = now.epoch_above(gone, place, bounds)?;
            let Role::Takes(taker) = now.role(name) else {
                return None;
            };
            taker.by = Some(by);
        }
        Some(_) if place > 0 => return None,
        Some(_) => {}
    }
    let end = now.log.ends(None, bounds.without)?;
    let Role::Takes(taker) = now.up(name)? else {
        return None;
    };
    let seam = match &taker.why {
        Why::HandOver(base) if bounds.without != Some(Rule::SeamIsTheLast) => {
            Some(Seq::new(base.len() as u64))
        }
        _ => None,
    };
    let adoption = adoptable(&end.tail, taker.gone, taker.by?, seam);
    taker.sent = adoption.is_some();
    match adoption {
        Some(adoption) => now.send(name, What::Adopt(Record::mark(name, adoption))),
        None => *now.role(name) = Role::Idle,
    }
    Some(())
}

/// An answer to an adoption.
pub(crate) fn answered(
    now: &mut System,
    name: Name,
    mark: &Record,
    connection: u8,
    answer: Option<Result<(), Refusal>>,
) {
    let Role::Takes(taker) = now.role(name) else {
        return;
    };
    taker.sent = false;
    match answer {
        // It may stand, or come to. It asks for the same again.
        None => {}
        Some(Err(_)) => *now.role(name) = Role::Idle,
        Some(Ok(())) => {
            let adopted = Adopted {
                why: taker.why.clone(),
                epoch: mark.epoch,
                last: mark.last(),
                connection,
            };
            *now.role(name) = Role::Adopted(adopted);
        }
    }
}

/// It reads everything that stands, asks the gates, and goes on or ends it. What was handed over is verified already.
pub(crate) fn begins(now: &mut System, name: Name, goes_on: bool, bounds: &Bounds) -> Option<()> {
    let end = now.log.tail(bounds.without);
    let entries = now.log.entries(bounds.without);
    let Role::Adopted(adopted) = now.up(name)? else {
        return None;
    };
    let adopted = adopted.clone();
    let is_handed = matches!(adopted.why, Why::HandOver(_));
    let Tail::Last {
        epoch,
        last,
        terminal,
        ..
    } = end.tail
    else {
        return None;
    };
    let is_ours =
        (epoch, last, terminal, end.leaves_gap) == (adopted.epoch, adopted.last, false, false);
    let entries = match &adopted.why {
        _ if is_ours => entries,
        // It has read everything before, and finds out with its first append.
        Why::HandOver(base) if base.len() as u64 == adopted.last.get() => base.clone(),
        _ => {
            // It has lost it already.
            *now.role(name) = Role::Idle;
            return (!goes_on).then_some(());
        }
    };
    let is_whole = events(&entries) == usize::from(bounds.events);
    let first = match adopted.why {
        Why::HandOver(_) if is_whole => Kind::Done,
        Why::HandOver(_) => Kind::Migration,
        Why::Stop => Kind::Stopped,
        Why::EndLost => Kind::Error,
        Why::OwnerLost if is_whole => Kind::Done,
        Why::OwnerLost if bounds.without == Some(Rule::DoneIsWhole) => Kind::Done,
        Why::OwnerLost if goes_on => Kind::Migration,
        Why::OwnerLost => Kind::Error,
    };
    // One step, where there is no choice.
    let has_choice = !is_handed
        && matches!(first, Kind::Migration | Kind::Error)
        && adopted.why == Why::OwnerLost;
    if !has_choice && goes_on {
        return None;
    }
    let mut writer = Writer {
        epoch: adopted.epoch,
        line: now.next_line(),
        entries,
        stands: adopted.last,
        seen: Some(adopted.connection),
        sent: false,
        doubt: None,
        offered: None,
        stop: false,
    };
    if let Why::HandOver(base) = &adopted.why {
        // It was made to go on from there.
        let entry = Entry::new(first, writer.line, base);
        writer.entries.push((writer.epoch, entry));
    } else {
        writer.stage(first);
    }
    *now.role(name) = Role::Writes(writer);
    Some(())
}

/// The script of an adoption. One that stands already changes nothing.
pub(crate) fn adopts(
    now: &mut System,
    mark: &Record,
    bounds: &Bounds,
) -> Option<Result<(), Refusal>> {
    let adoption = Adoption::new(mark.follows?, mark.last(), mark.epoch);
    let verdict = now.log.may_adopt(adoption, bounds.without);
    if verdict.is_ok() && now.log.standing().epoch != mark.epoch {
        now.log.records.push(mark.clone());
    }
    Some(verdict)
}
