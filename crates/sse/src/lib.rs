//! Server-sent events: bytes to events and back.
//!
//! The [`Decoder`] takes the bytes of one event stream in whatever pieces they arrive and gives
//! out each block as soon as its blank line is there. It follows the grammar of the WHATWG HTML
//! standard to the letter; what an event *means* to this or that API is not known here. The
//! encoder writes the lines of a block in one fixed form, and takes no value that could break out
//! of its line.
//!
//! What holds everywhere in this crate:
//!
//! * The events of a stream do not depend on how its bytes were cut into reads.
//! * Lines are found in bytes, and only CR, LF and CRLF end one. UTF-8 is checked once, on a whole
//!   block, so that no character is ever seen in halves.
//! * A block that lies wholly in one read is not copied. What is kept of a torn one is bounded,
//!   the bound is checked before memory is taken, and nothing is kept of an idle stream.
//! * Nothing here does I/O, blocks, or allocates for an event that came in one piece.
//!
//! ```
//! use streamweld_sse::{Decoder, Limits};
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut texts = Vec::new();
//! for read in [&b"data: hel"[..], b"lo\n\nda", b"ta: world\r\n\r\n"] {
//!     let mut input = read;
//!     while let Some(event) = decoder.decode(&mut input)? {
//!         texts.push(event.data().into_owned());
//!     }
//! }
//! assert_eq!(texts, ["hello", "world"]);
//! # Ok::<(), streamweld_sse::DecodeError>(())
//! ```

mod decoder;
mod encode;
mod event;
mod gap;
mod scan;
mod tail;

pub use decoder::{DecodeError, Decoder, Limits};
pub use encode::{
    HEARTBEAT, OneLine, Retry, encode_lines, write_data_lines, write_event_line, write_id_line,
};
pub use event::Event;
