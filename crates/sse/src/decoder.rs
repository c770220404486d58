//! The incremental decoder: reads in, events out.
//!
//! One block goes through three hands. [`Gap`] skips what may stand before it, [`Scan`] finds its
//! end, and [`Tail`] keeps its bytes if the read ends first. A block without any field therefore
//! never exists: the gap swallows comments and blank lines one by one, and an upstream that sends
//! nothing but heartbeats costs no memory.
//!
//! A block ends with the first byte of its blank line. Where that line is CRLF, the LF is left to
//! the gap, which skips it like any blank line; so an event that ends in a lone CR is given out at
//! once, and the same bytes make the same events however they were cut.
//!
//! Cost per byte is constant: a torn block is continued where the scan stopped, never searched
//! again, and its UTF-8 is checked once, when it is whole.

use crate::{
    event::Event,
    gap::{Bom, Gap},
    scan::Scan,
    tail::Tail,
};

/// What a [`Decoder`] is willing to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest block in bytes, from its first field to the first byte of the blank line that ends
    /// it. Comments before the first field are not counted, those between fields are.
    ///
    /// Default 16 MiB: images in base64 and events that repeat a whole answer are real. Raising
    /// it costs nothing until an upstream sends such an event, then that much memory per stream.
    pub max_event: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_event: 16 * 1024 * 1024,
        }
    }
}

/// Why a stream cannot be decoded any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A block grew above [`Limits::max_event`].
    #[error("event is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit that was in force.
        limit: usize,
    },
    /// A complete block was not UTF-8. The standard would put U+FFFD in; here damage is an error.
    #[error("event is not valid UTF-8")]
    InvalidUtf8,
}

/// An incremental decoder for one event stream.
///
/// It holds the unfinished last block, if there is one, and a few words besides. Use a new one for
/// each stream: a byte order mark is only understood at the very start.
#[derive(Debug)]
pub struct Decoder {
    bom: Bom,
    gap: Gap,
    scan: Scan,
    tail: Tail,
    failed: Option<DecodeError>,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            bom: Bom::default(),
            gap: Gap::default(),
            scan: Scan::default(),
            tail: Tail::new(limits.max_event),
            failed: None,
        }
    }

    /// Takes bytes from the front of `input` and returns the next complete block that has at
    /// least one field, or `None` when all of `input` is taken.
    ///
    /// Call it until it returns `None`, then again with the next read. The event borrows from the
    /// input or, if it was torn between reads, from the decoder; that memory is given back by the
    /// next call. Empty reads are harmless.
    ///
    /// # Errors
    ///
    /// When a block is too large or not UTF-8. Every event before it has been returned by then,
    /// nothing after it ever will be: each later call gives the same error, and the input is left
    /// as it is.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'a>>, DecodeError> {
        self.tail.forget_spent();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let block = match self.next_block(input) {
            Ok(Some(Block::InInput(block))) => block,
            Ok(Some(Block::InTail)) => self.tail.spend(),
            Ok(None) => return Ok(None),
            Err(error) => {
                self.failed = Some(error);
                self.tail.clear();
                return Err(error);
            }
        };
        match simdutf8::basic::from_utf8(block) {
            Ok(text) => Ok(Some(Event::new(text, self.scan.line_ends()))),
            Err(_) => {
                self.failed = Some(DecodeError::InvalidUtf8);
                Err(DecodeError::InvalidUtf8)
            }
        }
    }

    /// The unfinished last block: what the stream would lose if it ended here. Empty when there is
    /// none, when only comments and line ends came since the last event, and after an error.
    ///
    /// The standard discards it at the end of a stream, and it must never be passed on as an
    /// event. It is evidence of how the stream ended, no more.
    pub fn tail(&self) -> &[u8] {
        self.tail.bytes()
    }

    /// The [tail](Self::tail) read as if its blank line had come; `None` if it is empty or not
    /// UTF-8. Its last line may be torn anywhere, also inside a field's name.
    pub fn tail_event(&self) -> Option<Event<'_>> {
        let tail = self.tail();
        let text = simdutf8::basic::from_utf8(tail).ok()?;
        (!text.is_empty()).then(|| Event::new(text, self.scan.line_ends()))
    }

    /// Bytes of memory now reserved for a torn block. Never above [`Limits::max_event`], and zero
    /// whenever [`decode`](Self::decode) has returned `None` and the [tail](Self::tail) is empty.
    pub fn buffered(&self) -> usize {
        self.tail.reserved()
    }

    /// Finds the next block with a field, without its blank line. Keeps what is unfinished.
    fn next_block<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Block<'i>>, DecodeError> {
        let held = self.bom.strip(input);
        if !held.is_empty() {
            self.tail.push(held)?;
        }
        if self.tail.is_empty() {
            self.gap.skip(input);
        }
        if input.is_empty() {
            return Ok(None);
        }
        // The first byte of the input belongs to a block now, one that begins or one that goes on.
        let torn = self.tail.len();
        let Some(blank) = self.scan.find_blank(torn, input) else {
            self.tail.push(input)?;
            *input = &[];
            return Ok(None);
        };
        self.tail.check(blank + 1)?;
        let block = &input[..blank];
        *input = &input[blank + 1..];
        if torn == 0 {
            return Ok(Some(Block::InInput(block)));
        }
        self.tail.push(block)?;
        Ok(Some(Block::InTail))
    }
}

/// Where the bytes of a complete block are.
enum Block<'i> {
    InInput(&'i [u8]),
    InTail,
}
