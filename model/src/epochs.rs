//! Epochs that nobody ever had, where only their order matters.
//!
//! A new writer's epoch is a random one above that of the writer it replaces. So it may lie anywhere between those that
//! are remembered somewhere, and is none of them. After each step those that are left get the numbers from 1 on, in their
//! order: moments that differ in nothing else are one.

use streamweld_journal::Epoch;

use crate::log::{Record, Written};
use crate::replica::{Role, Why};
use crate::system::{System, What};

/// Where a new one may lie, told from how many it is above that are above the replaced one.
pub(crate) const PLACES: [u8; 6] = [0, 1, 2, 3, 4, 5];

/// An epoch in place of `replaced`, above so many of those that are remembered and above that. `None`: there are not so many.
pub(crate) fn fresh(now: &mut System, replaced: Epoch, place: u8) -> Option<Epoch> {
    let above: Vec<Epoch> = known(now).into_iter().filter(|it| *it > replaced).collect();
    assert!(above.len() < PLACES.len(), "each has a place");
    if usize::from(place) > above.len() {
        return None;
    }
    // Room above each; the first one stays that.
    each(now, &mut |epoch| *epoch = number(epoch.get() * 2 - 1));
    let below = match place {
        0 => replaced,
        place => above[usize::from(place) - 1],
    };
    Some(number(below.get() * 2))
}

/// Numbers all that are remembered from 1 on.
pub(crate) fn renumber(now: &mut System) {
    let known = known(now);
    let is_so = (1..).zip(&known).all(|(rank, epoch)| epoch.get() == rank);
    if !is_so {
        each(now, &mut |epoch| {
            let rank = known.binary_search(epoch).expect("all are known");
            *epoch = number(rank as u64 + 1);
        });
    }
}

fn known(now: &mut System) -> Vec<Epoch> {
    let mut known = Vec::new();
    each(now, &mut |epoch| known.push(*epoch));
    known.sort_unstable();
    known.dedup();
    known
}

fn number(epoch: u64) -> Epoch {
    Epoch::new(epoch).expect("there are few")
}

fn each(now: &mut System, visit: &mut impl FnMut(&mut Epoch)) {
    now.log
        .records
        .iter_mut()
        .for_each(|it| in_record(it, visit));
    for request in &mut now.wire {
        match &mut request.what {
            What::Append(record) | What::End(_, record) | What::Adopt(record) => {
                in_record(record, visit);
            }
        }
    }
    now.offers.iter_mut().for_each(|it| visit(&mut it.epoch));
    for replica in &mut now.replicas {
        match &mut replica.role {
            Role::Idle => {}
            Role::Writes(writer) => {
                visit(&mut writer.epoch);
                in_entries(&mut writer.entries, visit);
            }
            Role::Takes(taker) => {
                visit(&mut taker.gone);
                taker.by.iter_mut().for_each(&mut *visit);
                in_why(&mut taker.why, visit);
            }
            Role::Adopted(adopted) => {
                visit(&mut adopted.epoch);
                in_why(&mut adopted.why, visit);
            }
            Role::Ended(ended) => {
                visit(&mut ended.epoch);
                in_entries(&mut ended.entries, visit);
            }
        }
    }
    now.reader.epochs(visit);
    now.shown.iter_mut().for_each(|it| visit(&mut it.1));
}

fn in_record(record: &mut Record, visit: &mut impl FnMut(&mut Epoch)) {
    visit(&mut record.epoch);
    record.follows.iter_mut().for_each(visit);
}

fn in_entries(entries: &mut [Written], visit: &mut impl FnMut(&mut Epoch)) {
    entries.iter_mut().for_each(|it| visit(&mut it.0));
}

fn in_why(why: &mut Why, visit: &mut impl FnMut(&mut Epoch)) {
    if let Why::HandOver(base) = why {
        in_entries(base, visit);
    }
}
