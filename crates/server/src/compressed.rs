//! A reader's response in a content coding (protocol.md 4.8).
//!
//! What its reader is handed at once becomes one flushed piece, so that it can be read as soon as it is there: events,
//! heartbeats and forms alike. A clean end has the end that the coding demands. A response that is broken off has not:
//! it is as torn for whoever decodes it as it is for HTTP.

mod encoder;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, VARY};
use http_body::Frame;

use crate::body::{Abort, Body, Chunk};
use crate::coding::ContentCoding;
use crate::sessions::SessionBody;
use crate::stream_body::StreamBody;

use self::encoder::Encoder;

/// The body of such a response.
pub(crate) struct Compressed {
    body: Reader,
    request_id: Arc<str>,
    state: State,
}

/// Whose body it is.
enum Reader {
    Stream(Pin<Box<StreamBody>>),
    Session(Box<SessionBody>),
}

impl Reader {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        match self {
            Self::Stream(body) => body.as_mut().poll_frame(cx),
            Self::Session(body) => body.poll_frame(cx),
        }
    }

    fn break_off(&self) {
        match self {
            Self::Stream(body) => body.break_off(),
            Self::Session(body) => body.break_off(),
        }
    }
}

/// Waiting -> Open -> Over, or broken off at any time.
enum State {
    /// Nothing was written yet, and nothing is held for it.
    Waiting(ContentCoding),
    Open(Encoder),
    Over,
}

/// Gives the response this coding, if it is a reader's. Every reader's response says that there was a choice.
pub(crate) fn compress(
    response: &mut Response<Body>,
    coding: Option<ContentCoding>,
    request_id: &Arc<str>,
) {
    let (Body::Stream(_) | Body::Session(_)) = response.body() else {
        return;
    };
    let varies = HeaderValue::from(ACCEPT_ENCODING);
    response.headers_mut().append(VARY, varies);
    let Some(coding) = coding else {
        return;
    };
    response
        .headers_mut()
        .insert(CONTENT_ENCODING, coding.into());
    let body = response.body_mut();
    *body = match std::mem::replace(body, Body::Empty) {
        Body::Stream(body) => compressed(Reader::Stream(body), request_id, coding),
        Body::Session(body) => compressed(Reader::Session(body), request_id, coding),
        other => other,
    };
}

fn compressed(body: Reader, request_id: &Arc<str>, coding: ContentCoding) -> Body {
    Body::Compressed(Box::new(Compressed {
        body,
        request_id: Arc::clone(request_id),
        state: State::Waiting(coding),
    }))
}

impl Compressed {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        if let State::Over = self.state {
            return Poll::Ready(None);
        }
        let chunk = match ready!(self.body.poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(chunk) => Some(chunk),
                // A reader has no trailers.
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            },
            Some(Err(abort)) => {
                self.state = State::Over;
                return Poll::Ready(Some(Err(abort)));
            }
            None => None,
        };
        let coded = match &chunk {
            Some(chunk) => self.write(chunk.chunk()),
            None => self.finish(),
        };
        Poll::Ready(Some(match coded {
            Ok(bytes) => Ok(Frame::data(match chunk {
                // What waits for the piece to leave waits for this one.
                Some(chunk) => chunk.with(bytes),
                None => Chunk::from(bytes),
            })),
            Err(error) => {
                let request_id = &*self.request_id;
                tracing::error!(request_id, %error, "a response cannot be compressed any more");
                self.state = State::Over;
                self.body.break_off();
                Err(Abort("it could not be compressed"))
            }
        }))
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<Bytes> {
        if let State::Waiting(coding) = self.state {
            self.state = State::Open(Encoder::new(coding)?);
        }
        match &mut self.state {
            State::Open(encoder) => encoder.write(bytes),
            State::Waiting(_) | State::Over => Ok(Bytes::new()),
        }
    }

    /// The end of the coding, also of nothing at all.
    fn finish(&mut self) -> std::io::Result<Bytes> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting(coding) => Encoder::new(coding)?.finish(),
            State::Open(encoder) => encoder.finish(),
            State::Over => Ok(Bytes::new()),
        }
    }
}
