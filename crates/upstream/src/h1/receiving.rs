//! A response head out of reads. Pure.
//!
//! It keeps what is not yet a whole head, drops interim responses, and gives back what came behind
//! the head.

use http::response::Parts;

use super::response::{self, EndOfHead};
use crate::head::{self, Asked, BadHead, Framing};

/// A response head, and what came behind it.
pub(crate) struct Received {
    pub(crate) head: Parts,
    pub(crate) framing: Framing,
    pub(crate) rest: Vec<u8>,
}

/// Collects a response head from reads.
pub(crate) struct Receiving<'a> {
    asked: &'a Asked,
    max_head: usize,
    end: EndOfHead,
    /// Earlier reads, when they did not end the head.
    kept: Vec<u8>,
    interim: usize,
}

impl<'a> Receiving<'a> {
    pub(crate) fn new(asked: &'a Asked, max_head: usize) -> Self {
        Self {
            asked,
            max_head,
            end: EndOfHead::default(),
            kept: Vec::new(),
            interim: 0,
        }
    }

    /// Takes all of one read. Nothing may be given behind the head.
    pub(crate) fn take(&mut self, read: &[u8]) -> Result<Option<Received>, BadHead> {
        if self.kept.is_empty() {
            return self.take_all(read);
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.extend_from_slice(read);
        self.take_all(&kept)
    }

    /// Takes all that there is from the start of a head.
    fn take_all(&mut self, mut bytes: &[u8]) -> Result<Option<Received>, BadHead> {
        while let Some(length) = self.end.find(bytes, self.max_head)? {
            let (head, rest) = bytes.split_at(length);
            let mut head = response::parse(head)?;
            let framing = head::frame(&mut head, self.asked)?;
            if !head::is_interim(head.status) {
                let rest = rest.to_vec();
                return Ok(Some(Received {
                    head,
                    framing,
                    rest,
                }));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(BadHead::TooManyInterim);
            }
            self.end = EndOfHead::default();
            bytes = rest;
        }
        self.kept = bytes.to_vec();
        Ok(None)
    }
}

/// More than any backend has to say beforehand; an endless row of them would keep a request busy
/// for good.
const MAX_INTERIM: usize = 32;
