//! What a writer does: `crates/generation/src/committer.rs`, and what `crates/journal-redis` knows on its behalf.

use streamweld_journal::rules::{ReadBack, read_back};
use streamweld_journal::{Kind, Refusal, Seq, Tail};

use crate::bounds::{Bounds, Rule};
use crate::log::{Name, Record};
use crate::replica::{Role, Writer, events};
use crate::system::{System, What};

/// Its backend says one more event.
pub(crate) fn produce(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let writer = writer(now, name)?;
    let ahead = writer.received().get() - writer.stands.get();
    let may = writer.offered.is_none()
        && !writer.is_ending()
        && !writer.stop
        && events(&writer.entries) < usize::from(bounds.events)
        && ahead < u64::from(bounds.ahead);
    may.then(|| writer.stage(Kind::Event))
}

/// It has seen the end of the answer, or a stop.
pub(crate) fn end(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let writer = writer(now, name)?;
    let is_whole = events(&writer.entries) == usize::from(bounds.events);
    if writer.is_ending() || !(writer.stop || is_whole && writer.offered.is_none()) {
        return None;
    }
    writer.offered = None;
    writer.stage(if writer.stop {
        Kind::Stopped
    } else {
        Kind::Done
    });
    Some(())
}

/// It sends what is staged, by the connection on which its predecessor was seen, or not at all.
pub(crate) fn send(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let connection = now.log.connection;
    let writer = writer(now, name)?;
    if writer.sent || writer.doubt.is_some() || writer.stands == writer.received() {
        return None;
    }
    let is_seen =
        writer.seen == Some(connection) || bounds.without == Some(Rule::NewConnectionIsReadBack);
    let may_be_unseen = writer.is_ending() && bounds.without == Some(Rule::EndIsSeen);
    if !is_seen && !may_be_unseen {
        writer.doubt = Some(writer.received());
        return Some(());
    }
    let record = Record {
        epoch: writer.epoch,
        writer: name,
        first: writer.stands.next(),
        entries: writer.behind(writer.stands),
        follows: None,
    };
    let what = if record.ends() {
        What::End(writer.stands, record)
    } else {
        What::Append(record)
    };
    writer.sent = true;
    writer.seen = None;
    now.send(name, what);
    Some(())
}

/// An answer to what it sent.
pub(crate) fn answered(
    now: &mut System,
    name: Name,
    through: Seq,
    connection: u8,
    answer: Option<Result<(), Refusal>>,
    bounds: &Bounds,
) {
    let Role::Writes(writer) = now.role(name) else {
        return;
    };
    writer.sent = false;
    match answer {
        Some(Ok(())) => {
            writer.stands = through;
            writer.seen = Some(connection);
        }
        None if bounds.without == Some(Rule::UnknownIsReadBack) => {
            writer.stands = through;
            writer.seen = Some(connection);
        }
        Some(Err(Refusal::Unexpected { .. })) | None => writer.doubt = Some(through),
        Some(Err(_)) => return over(now, name, bounds),
    }
    now.commit(name, bounds);
}

/// It reads back what really stands, and first takes back what it has appended behind a gap.
pub(crate) fn reads_back(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let own = writer(now, name)?;
    let (epoch, sent) = (own.epoch, own.doubt?);
    let end = now.log.ends(Some(epoch), bounds.without)?;
    let connection = now.log.connection;
    let own = writer(now, name)?;
    let digest = |seq: Seq| {
        let at = usize::try_from(seq.get()).ok()?.checked_sub(1)?;
        Some(own.entries.get(at)?.1.digest(seq))
    };
    let mut back = read_back(&end.tail, epoch, sent, Seq::FIRST, digest);
    if let (Some(Rule::ReadBackIsCompared), Tail::Last { last, .. }) = (bounds.without, end.tail) {
        back = ReadBack::Stands(last.min(sent));
    }
    own.doubt = None;
    match back {
        ReadBack::Stands(last) => {
            own.stands = last;
            own.seen = Some(connection);
            now.commit(name, bounds);
        }
        ReadBack::Vanished | ReadBack::Fenced | ReadBack::Changed | ReadBack::TooShort => {
            over(now, name, bounds);
        }
    }
    Some(())
}

/// It is told that another one has adopted the generation, or hears nothing and finds out later.
pub(crate) fn is_told(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let (owner, by) = now.log.owner();
    let writer = writer(now, name)?;
    if owner == name || by <= writer.epoch || bounds.without == Some(Rule::FencedIsOver) {
        return None;
    }
    over(now, name, bounds);
    Some(())
}

/// A stop was left for it in the journal.
pub(crate) fn hears_stop(now: &mut System, name: Name) -> Option<()> {
    let waits = now.log.stop.is_some() && now.log.owner().0 == name;
    let writer = writer(now, name)?;
    (waits && !writer.stop && !writer.is_ending()).then(|| writer.stop = true)
}

/// Nobody has taken what it offered: it reads on.
pub(crate) fn reads_on(now: &mut System, name: Name, bounds: &Bounds) -> Option<()> {
    let writer = writer(now, name)?;
    if bounds.without == Some(Rule::OfferLapses) {
        return None;
    }
    writer.offered.take().map(|_| ())
}

/// It writes nothing more, and closes its upstream.
fn over(now: &mut System, name: Name, bounds: &Bounds) {
    let (_, by) = now.log.owner();
    let stands = now.log.standing();
    let role = now.role(name);
    match role {
        Role::Writes(writer) if bounds.without == Some(Rule::FencedIsOver) && !stands.ended => {
            writer.epoch = by;
            writer.stands = stands.last.min(writer.received());
            writer.doubt = None;
        }
        _ => *role = Role::Idle,
    }
    // What is under way may arrive, but nobody waits for it.
    let requests = now.wire.iter_mut().filter(|it| it.from == name);
    requests.for_each(|it| it.awaited = false);
    if let Role::Writes(writer) = now.role(name) {
        writer.sent = false;
    }
}

fn writer(now: &mut System, name: Name) -> Option<&mut Writer> {
    match now.up(name)? {
        Role::Writes(writer) => Some(writer),
        _ => None,
    }
}
