//! Where a producer's bytes come from: the seam between an attempt and what drives its socket.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use streamweld_dialect::FailureClass;

use crate::leg::Leg;
use crate::migration::Backends;

/// The body of one attempt.
///
/// Dropping a source closes the backend's connection unless its body has ended; that is how an attempt
/// is cancelled.
pub trait ByteSource: Send {
    /// The next piece of the body: its bytes are given to `take`, decoded from any content coding, where they lie.
    /// [`Read::Data`] follows each call of it. A caller may poll on until `Pending` to gather all that is ready.
    fn poll_read(&mut self, cx: &mut Context<'_>, take: &mut impl FnMut(&[u8])) -> Poll<Read>;

    /// The same body with these bytes, which were read from it, in front again.
    #[must_use]
    fn behind(self, ahead: Vec<u8>) -> Self
    where
        Self: Sized;
}

/// Asks the backend for the rest of an answer that broke off, behind the last event that was staged.
///
/// `None`: it cannot be asked for. The future gives a body whose first event is the one behind that; or `None` when there
/// is no such body, and the answer has ended where it broke off. It is dropped when something else ends the answer.
pub type Again<S> = Box<dyn FnMut() -> Option<Rest<S>> + Send>;

/// What a producer may do when an attempt has failed.
pub struct Onward<S> {
    /// The rest of the very answer, from the backend that has it.
    pub again: Option<Again<S>>,
    /// Other backends.
    pub backends: Option<Arc<dyn Backends<S>>>,
    /// Keeps the request for other replicas.
    pub keep: Option<Keep>,
}

/// Keeps the request of a generation, and which attempt it is at, for whoever takes it over from this process. Called when
/// the attempt's answer has begun; it waits for nothing.
pub type Keep = Arc<dyn Fn(&Leg) + Send + Sync>;

impl<S> Default for Onward<S> {
    /// Nothing.
    fn default() -> Self {
        Self {
            again: None,
            backends: None,
            keep: None,
        }
    }
}

/// What [`Again`] waits for.
pub type Rest<S> = Pin<Box<dyn Future<Output = Option<S>> + Send>>;

/// One read of a [`ByteSource`].
#[derive(Debug)]
pub enum Read {
    /// A piece of the body was given.
    Data,
    /// The framing's own end: the last chunk, the last byte of the length, or the close that delimits
    /// the body.
    End,
    /// The body broke off: reset, missing last chunk, bad framing. The text is for the log.
    Cut(String),
    /// What came cannot be used, such as a content coding that does not decode.
    Unusable(FailureClass, String),
}
