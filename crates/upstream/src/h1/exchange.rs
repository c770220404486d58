//! Sending a request and reading the head of its response, both at once: a backend may answer
//! before it has the whole request, and may then not want the rest of it.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use http::{Method, Request, Response, StatusCode};

use super::body::Body;
use super::buffer;
use super::connection::Connection;
use super::receiving::{Received, Receiving};
use super::sending::{SendError, Sending};
use crate::ErrorKind;
use crate::connection::{Answer, Failure};
use crate::error::Sent;
use crate::head::{self, Asked, BadHead};
use crate::request_body::RequestBody;
use crate::transport::Transport;
use crate::upgrade::Upgraded;

impl Connection {
    /// Sends `request`, whose target is in origin-form, and reads the head of its response.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(crate) async fn exchange(
        mut self,
        request: Request<RequestBody>,
        asked: &Asked,
    ) -> Result<Response<Answer>, Failure> {
        if request.method() == Method::CONNECT {
            // A tunnel behind a 2xx is nothing that is read here.
            let error = NotSent.into();
            return Err(Failure::Sent(ErrorKind::Send, Sent::Nothing, error));
        }
        let (parts, body) = request.into_parts();
        let mut sending = Sending::new(&parts, body);
        let mut receiving = Receiving::new(asked, self.max_head);
        let received = poll_fn(|cx| {
            sending.drive(cx, &mut self.io)?;
            if sending.has_begun() {
                poll_head(&mut receiving, cx, &mut self.io)
            } else {
                Poll::Pending
            }
        });
        let received = match received.await {
            Ok(received) => received,
            Err(stop) => {
                return Err(match (stop, sending.into_body()) {
                    (Stop::Write(SendError::Io(_)), Some(body)) => {
                        Failure::Unsent(Box::new(Request::from_parts(parts, body)))
                    }
                    (stop, _) => stop.into(),
                });
            }
        };
        let Received {
            head,
            framing,
            rest,
        } = received;
        let answer = if head.status == StatusCode::SWITCHING_PROTOCOLS {
            if !sending.is_whole() {
                return Err(Stop::Head(BadHead::EarlyUpgrade).into());
            }
            Answer::Upgraded(Box::new(Upgraded::new(self.io, rest.into())))
        } else {
            let keep = head::keeps_alive(&head) && !head::names_option(&parts.headers, "close");
            Answer::Http1(Body::new(self, framing, rest, sending, keep))
        };
        Ok(Response::from_parts(head, answer))
    }
}

fn poll_head(
    receiving: &mut Receiving<'_>,
    cx: &mut Context<'_>,
    io: &mut Transport,
) -> Poll<Result<Received, Stop>> {
    loop {
        let read = buffer::poll_read(io, cx, |read| {
            if read.is_empty() {
                Err(Stop::Read(io::ErrorKind::UnexpectedEof.into()))
            } else {
                receiving.take(read).map_err(Stop::Head)
            }
        });
        if let Some(received) = ready!(read).map_err(Stop::Read)?? {
            return Poll::Ready(Ok(received));
        }
    }
}

/// What ends an exchange without a response.
enum Stop {
    Write(SendError),
    Read(io::Error),
    Head(BadHead),
}

impl From<SendError> for Stop {
    fn from(error: SendError) -> Self {
        Self::Write(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        let (kind, error) = match stop {
            Stop::Write(SendError::Body(error)) => (ErrorKind::RequestBody, error),
            Stop::Write(SendError::Io(error)) | Stop::Read(error) => {
                (ErrorKind::Closed, error.into())
            }
            Stop::Head(error) => (ErrorKind::BadResponse, error.into()),
        };
        Self::Sent(kind, Sent::Maybe, error)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("CONNECT is not for a backend")]
struct NotSent;
