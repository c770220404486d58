//! The readers that wait for something to become visible.
//!
//! A dense list that is handed over whole when they are woken: waking costs those who wait, not
//! those who are attached. A reader remembers its place as a [`Ticket`]; the round in it tells whether
//! the list is still the one it queued in. Places of readers that left are used again.

use std::task::Waker;

#[derive(Default)]
pub(super) struct Waiters {
    round: u64,
    places: Vec<Place>,
    /// Head of the chain of free places.
    free: Option<u32>,
    waiting: u32,
}

enum Place {
    Waiting(Waker),
    /// The next one of the chain.
    Free(Option<u32>),
}

/// A reader's place in the queue of one round.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    round: u64,
    place: u32,
}

impl Waiters {
    pub(super) fn len(&self) -> u32 {
        self.waiting
    }

    /// Queues a reader, or keeps it queued with this waker. Returns a waker that is not needed any
    /// more, to be dropped outside the lock.
    pub(super) fn register(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<Waker> {
        if let Some(ticket) = ticket.filter(|ticket| ticket.round == self.round) {
            let Place::Waiting(queued) = &mut self.places[ticket.place as usize] else {
                unreachable!("a ticket of this round has a waker")
            };
            let keep = queued.will_wake(waker);
            return (!keep).then(|| std::mem::replace(queued, waker.clone()));
        }
        let waiting = Place::Waiting(waker.clone());
        let place = match self.free {
            Some(place) => {
                let free = std::mem::replace(&mut self.places[place as usize], waiting);
                let Place::Free(next) = free else {
                    unreachable!("the chain holds free places")
                };
                self.free = next;
                place
            }
            None => {
                self.places.push(waiting);
                u32::try_from(self.places.len() - 1).expect("fewer readers than 4 billion")
            }
        };
        self.waiting += 1;
        *ticket = Some(Ticket {
            round: self.round,
            place,
        });
        None
    }

    /// A reader leaves. Its waker is returned to be dropped outside the lock.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<Waker> {
        if ticket.round != self.round {
            return None;
        }
        let left = std::mem::replace(
            &mut self.places[ticket.place as usize],
            Place::Free(self.free),
        );
        self.free = Some(ticket.place);
        self.waiting -= 1;
        match left {
            Place::Waiting(waker) => Some(waker),
            Place::Free(_) => unreachable!("a ticket of this round has a waker"),
        }
    }

    /// Everybody; the next round begins.
    pub(super) fn take(&mut self) -> Wake {
        if self.places.is_empty() {
            return Wake::default();
        }
        self.round += 1;
        self.free = None;
        self.waiting = 0;
        // The usual lone reader costs no allocation.
        if self.places.len() == 1 {
            let one = self.places.pop().and_then(Place::into_waker);
            return Wake {
                one,
                many: Vec::new(),
            };
        }
        let many = std::mem::take(&mut self.places)
            .into_iter()
            .filter_map(Place::into_waker)
            .collect();
        Wake { one: None, many }
    }
}

impl Place {
    fn into_waker(self) -> Option<Waker> {
        match self {
            Self::Waiting(waker) => Some(waker),
            Self::Free(_) => None,
        }
    }
}

/// Readers to wake. Wakes them when dropped: after the lock is released, because a waker is foreign code.
#[derive(Default)]
pub(super) struct Wake {
    one: Option<Waker>,
    many: Vec<Waker>,
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.one
            .take()
            .into_iter()
            .chain(self.many.drain(..))
            .for_each(Waker::wake);
    }
}
