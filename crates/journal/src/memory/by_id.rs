//! Maps keyed by stream id.
//!
//! Every append looks its log up, and an id carries 80 random bits of our own making, so it is its own hash: a
//! keyed hash would cost more than the rest of the append. Callers choose the ids that they look up, but none that is
//! inserted, so they cannot make entries collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::id::StreamId;

/// A map from ids.
pub(super) type ById<V> = HashMap<StreamId, V, BuildHasherDefault<IdHasher>>;

/// Takes the random part of an id as its hash.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u128(&mut self, id: u128) {
        // The low half is all random; the high half is mostly time.
        self.0 = (id & u128::from(u64::MAX)) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only ids are hashed here, and they come as one number; anything else is folded in plainly.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
