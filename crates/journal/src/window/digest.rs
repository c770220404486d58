//! Whether the entry that stands elsewhere is the one that was staged here.

use std::fmt;

/// A short digest over the bytes of one entry. It tells apart what two honest writers wrote under one
/// sequence; it is no protection against somebody who wants a collision.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(u64);

impl Digest {
    /// FNV-1a over the bytes: the same on every replica and in every version.
    pub fn of(bytes: &[u8]) -> Self {
        let start = 0xcbf2_9ce4_8422_2325;
        Self(bytes.iter().fold(start, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// The digest as a number, for backends that store it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for Digest {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
