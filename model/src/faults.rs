//! What goes wrong, and what people do.

use crate::bounds::Bounds;
use crate::log::Name;
use crate::replica::{Life, Role, Why};
use crate::system::{Offer, System};
use crate::{taker, writer};

/// A replica dies, and what it knew with it. What it has sent may still arrive.
pub(crate) fn crash(now: &mut System, name: Name) -> Option<()> {
    let replica = now.replicas.get_mut(usize::from(name))?;
    if replica.life == Life::Dead {
        return None;
    }
    spend(&mut now.left.crashes)?;
    replica.life = Life::Dead;
    replica.role = Role::Idle;
    let requests = now.wire.iter_mut().filter(|it| it.from == name);
    requests.for_each(|it| it.awaited = false);
    Some(())
}

/// A replica stands still.
pub(crate) fn pause(now: &mut System, name: Name) -> Option<()> {
    now.up(name)?;
    spend(&mut now.left.pauses)?;
    now.replicas[usize::from(name)].life = Life::Paused;
    Some(())
}

/// It goes on.
pub(crate) fn go_on(now: &mut System, name: Name) -> Option<()> {
    let replica = now.replicas.get_mut(usize::from(name))?;
    (replica.life == Life::Paused).then(|| replica.life = Life::Up)
}

/// Another server, which has less. Connections are new, and what was under way is lost with the old ones.
pub(crate) fn fail_over(
    now: &mut System,
    keep: usize,
    with_stop: bool,
    bounds: &Bounds,
) -> Option<()> {
    if keep >= now.log.records.len() || (with_stop && now.log.stop != Some(keep)) {
        return None;
    }
    spend(&mut now.left.failovers)?;
    now.log.lose(keep, with_stop);
    while !now.wire.is_empty() {
        unanswered(now, 0, bounds);
        now.wire.remove(0);
    }
    Some(())
}

/// The same server, with the data of another. Its connections stay, and what is under way arrives.
pub(crate) fn fall_back(now: &mut System, keep: usize) -> Option<()> {
    if keep >= now.log.records.len() {
        return None;
    }
    spend(&mut now.left.fallbacks)?;
    now.log.lose(keep, false);
    Some(())
}

/// A request is lost on its way. One that nobody waits for is lost for nothing.
pub(crate) fn lose(now: &mut System, at: usize, bounds: &Bounds) -> Option<()> {
    if now.wire.get(at)?.awaited {
        spend(&mut now.left.unanswered)?;
        unanswered(now, at, bounds);
    }
    now.wire.remove(at);
    Some(())
}

/// Its sender waits no longer, and it arrives later.
pub(crate) fn delay(now: &mut System, at: usize, bounds: &Bounds) -> Option<()> {
    now.wire.get(at)?.awaited.then_some(())?;
    spend(&mut now.left.unanswered)?;
    unanswered(now, at, bounds);
    Some(())
}

/// Tells the sender of a request that there will be no answer.
pub(crate) fn unanswered(now: &mut System, at: usize, bounds: &Bounds) {
    let request = now.wire[at].clone();
    now.wire[at].awaited = false;
    if request.awaited {
        let record = request.what.record();
        let (through, connection) = (record.last(), request.connection);
        match now.role(request.from) {
            Role::Writes(_) => {
                writer::answered(now, request.from, through, connection, None, bounds);
            }
            Role::Takes(_) => taker::answered(now, request.from, record, connection, None),
            Role::Ended(ended) => ended.sent = false,
            Role::Idle | Role::Adopted(_) => {}
        }
    }
}

/// A client calls stop on a replica.
pub(crate) fn stop(now: &mut System, name: Name) -> Option<()> {
    let (owner, gone) = now.log.owner();
    let (is_silent, has_end) = (now.is_silent(owner), now.log.end().is_some());
    let records = now.log.records.len();
    let role = now.up(name)?;
    if has_end {
        return None;
    }
    if let Role::Writes(writer) = role {
        writer.stop = true;
    } else {
        now.log.stop = Some(records);
        if is_silent && owner != name {
            _ = taker::takes(now, name, Why::Stop, gone);
        }
    }
    spend(&mut now.left.stops)?;
    now.stop = true;
    Some(())
}

/// A replica that leaves reads no further, has everything committed, and offers it to another.
pub(crate) fn offer(now: &mut System, name: Name, to: Name) -> Option<()> {
    let is_alive = name != to && !now.is_silent(to);
    let Role::Writes(writer) = now.up(name)? else {
        return None;
    };
    if !is_alive
        || !writer.is_quiet()
        || writer.is_ending()
        || writer.stop
        || writer.offered.is_some()
    {
        return None;
    }
    writer.offered = Some(to);
    let (epoch, last) = (writer.epoch, writer.stands);
    spend(&mut now.left.offers)?;
    now.offers.push(Offer { to, epoch, last });
    Some(())
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}
