//! Asking one thing of a backend, within bounds of time and size.

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use streamweld_dialect::{BodyEnd, Question, read_refusal};
use tokio::time::{Instant, timeout_at};

use super::Subject;
use super::check::brief;
use crate::{ErrorKind, Read, Source, UpstreamError};

/// Asks one backend, until a moment.
pub(super) struct Asker<'a> {
    subject: &'a Subject<'a>,
    until: Instant,
}

/// The body of an answer of success.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) end: BodyEnd,
}

/// Why something was not said.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Untold {
    /// There was no answer at all.
    #[error("{0}")]
    Unreachable(UpstreamError),
    /// There was none in time.
    #[error("did not answer in time")]
    TooLate,
    /// It is longer than any that was asked for.
    #[error("answered with more than {LARGEST} bytes")]
    TooLarge,
    /// It broke off, or failed on the way.
    #[error("broke its answer off")]
    Cut,
    /// The credential is missing or wrong.
    #[error("answered with {0}: it wants a credential, or another one")]
    Denied(u16),
    /// There is no such thing there.
    #[error("answered with {0}: it has no {1}")]
    Absent(u16, &'static str),
    /// It cannot answer now.
    #[error("answered with {0}")]
    Busy(u16),
    /// It will not answer that.
    #[error("answered with {0}: {1}")]
    Refused(u16, String),
    /// It answered something else.
    #[error("answered what is not understood")]
    NotUnderstood,
}

impl Untold {
    /// Whether it may be said soon.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TooLate | Self::Cut | Self::Denied(_) | Self::Busy(_) => {
                true
            }
            Self::TooLarge | Self::Absent(..) | Self::Refused(..) | Self::NotUnderstood => false,
        }
    }
}

/// A backend of which nothing was found out.
#[derive(Debug)]
pub struct NotExamined {
    backend: String,
    cause: Untold,
}

impl NotExamined {
    /// Why.
    #[must_use]
    pub fn cause(&self) -> &Untold {
        &self.cause
    }
}

impl fmt::Display for NotExamined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            // It names the backend itself.
            Untold::Unreachable(error) => error.fmt(f),
            cause => write!(f, "backend {} {cause}", self.backend),
        }
    }
}

impl Error for NotExamined {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Untold::Unreachable(error) => error.source(),
            _ => None,
        }
    }
}

impl<'a> Asker<'a> {
    pub(super) fn new(subject: &'a Subject<'a>, until: Instant) -> Self {
        Self { subject, until }
    }

    pub(super) fn failed(&self, cause: Untold) -> NotExamined {
        NotExamined {
            backend: self.subject.backend.name().to_owned(),
            cause,
        }
    }

    /// What is on a page, whole.
    pub(super) async fn get(&self, path: &'static str) -> Result<Vec<u8>, Untold> {
        whole(self.ask(Method::GET, path, Bytes::new()).await?)
    }

    /// The answer to a question, whole.
    pub(super) async fn post(&self, question: Question) -> Result<Vec<u8>, Untold> {
        whole(self.stream(question.path, question.body).await?)
    }

    /// The answer to a request, also one that broke off.
    pub(super) async fn stream(&self, path: &'static str, body: String) -> Result<Answer, Untold> {
        self.ask(Method::POST, path, body.into()).await
    }

    async fn ask(&self, method: Method, path: &'static str, body: Bytes) -> Result<Answer, Untold> {
        let until = self.until.min(Instant::now() + self.subject.bounds.answer);
        let answer = timeout_at(until, self.exchange(method, path, body)).await;
        answer.unwrap_or(Err(Untold::TooLate))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &'static str,
        body: Bytes,
    ) -> Result<Answer, Untold> {
        let mut again = AGAIN;
        let response = loop {
            let request = self.request(method.clone(), path, body.clone());
            let sent = self.subject.client.send(self.subject.backend, request);
            match sent.await {
                // Some engines close a connection behind a stream without a word, and so in the moment of its next use.
                // Asking twice does no harm here.
                Err(error) if error.kind() == ErrorKind::Closed && again > 0 => again -= 1,
                sent => break sent.map_err(Untold::Unreachable)?,
            }
        };
        let status = response.status();
        let answer = read(response.into_body()).await?;
        if status.is_success() {
            Ok(answer)
        } else {
            Err(refusal(path, status, &answer.body))
        }
    }

    fn request(&self, method: Method, path: &'static str, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        if method == Method::POST {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from_static(path);
        let agent = HeaderValue::from_static("streamweld-probe");
        request.headers_mut().insert(USER_AGENT, agent);
        self.subject.credential.apply(request.headers_mut());
        request
    }
}

async fn read(mut source: Source) -> Result<Answer, Untold> {
    let mut body = Vec::new();
    loop {
        let end = match source.read().await {
            Read::Data(data) if body.len() + data.len() > LARGEST => {
                return Err(Untold::TooLarge);
            }
            Read::Data(data) => {
                body.extend_from_slice(&data);
                continue;
            }
            Read::Trailers(_) => continue,
            Read::End => BodyEnd::Clean,
            Read::Cut(..) => BodyEnd::Cut,
        };
        return Ok(Answer { body, end });
    }
}

fn whole(answer: Answer) -> Result<Vec<u8>, Untold> {
    match answer.end {
        BodyEnd::Clean => Ok(answer.body),
        BodyEnd::Cut | BodyEnd::Silence => Err(Untold::Cut),
    }
}

fn refusal(path: &'static str, status: StatusCode, body: &[u8]) -> Untold {
    let code = status.as_u16();
    match code {
        // What such an answer says may repeat the credential.
        401 | 403 => Untold::Denied(code),
        404 | 405 | 501 => Untold::Absent(code, path),
        408 | 425 | 429 => Untold::Busy(code),
        _ if status.is_server_error() => Untold::Busy(code),
        _ => {
            let said = read_refusal(body).map(|said| brief(&said));
            Untold::Refused(
                code,
                said.unwrap_or_else(|| "it does not say why".to_owned()),
            )
        }
    }
}

/// How often a question is put again that met a closing connection. Of those that are shared, a few may be closing.
const AGAIN: usize = 3;

/// A page of settings with a template has some ten KiB, and an answer of ours less.
const LARGEST: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, said: &str, may_pass: bool) {
        let status = StatusCode::from_u16(status).unwrap();
        let untold = refusal("/tokenize", status, body.as_bytes());
        assert_eq!(
            (untold.to_string().as_str(), untold.may_pass()),
            (said, may_pass)
        );
    }

    #[test]
    fn a_refusal_is_told_by_its_status_and_in_few_words() {
        let body = r#"{"error":{"message":"the key s3cret is wrong"}}"#;
        let denied = "answered with 401: it wants a credential, or another one";
        check(401, body, denied, true);
        check(404, body, "answered with 404: it has no /tokenize", false);
        check(429, body, "answered with 429", true);
        check(503, body, "answered with 503", true);
        let body = r#"{"error":{"message":"no\nprefill"}}"#;
        check(400, body, r#"answered with 400: "no\nprefill""#, false);
        check(422, "", "answered with 422: it does not say why", false);
        check(302, "x", r#"answered with 302: "x""#, false);
    }
}
