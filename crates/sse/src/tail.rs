//! The bytes of a torn block, kept until the rest of it comes.
//!
//! Its capacity never passes its limit, and it holds no memory for nothing: a stream is idle for
//! most of its life, and there are many.

use std::fmt;

use crate::decoder::DecodeError;

/// A buffer with a limit.
pub(crate) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    /// The bytes were handed out as an event and go with the next call.
    spent: bool,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            spent: false,
        }
    }

    /// Whether `more` bytes of the same block are still within the limit.
    pub(crate) fn check(&self, more: usize) -> Result<(), DecodeError> {
        if more > self.limit - self.bytes.len() {
            return Err(DecodeError::TooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Appends `more`, or nothing if that would pass the limit.
    pub(crate) fn push(&mut self, more: &[u8]) -> Result<(), DecodeError> {
        self.check(more.len())?;
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            // Doubling keeps a block that comes byte by byte linear. `Vec` would double past the
            // limit, so the size is chosen here.
            let wanted = needed
                .max(self.bytes.capacity().saturating_mul(2))
                .min(self.limit);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Gives the bytes out for the last time.
    pub(crate) fn spend(&mut self) -> &[u8] {
        self.spent = true;
        &self.bytes
    }

    /// Frees what was spent.
    pub(crate) fn forget_spent(&mut self) {
        if self.spent {
            self.clear();
        }
    }

    /// Frees everything.
    pub(crate) fn clear(&mut self) {
        self.spent = false;
        self.bytes = Vec::new();
    }

    /// What is kept and not spent.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.spent { &[] } else { &self.bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn reserved(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Says how much, not what: the bytes are somebody's answer and have no place in a log.
impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail")
            .field("len", &self.bytes.len())
            .field("limit", &self.limit)
            .field("spent", &self.spent)
            .finish()
    }
}
