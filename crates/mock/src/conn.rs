//! One HTTP/1 connection: request by request, until somebody ends it.

mod answer;
mod raw;
mod stream;

use std::sync::Arc;

use tokio::time::Instant;
use tracing::debug;

use crate::{
    Ending, Outcome, Recorder, Request,
    body::{Body, BodyError},
    head::{BadRequest, RequestHead, ResponseHead},
    io::{Gone, Io, Wire},
    mock::Shared,
    routes,
};

/// What becomes of the connection after an answer.
#[derive(Debug)]
pub(crate) enum After {
    /// It serves the next request.
    Next,
    /// It closes in peace.
    Close,
    /// It is cut.
    Cut(crate::Cut),
}

/// Notes how an answer ended, also when the connection's task is dropped in its midst.
#[derive(Debug)]
pub(crate) struct Progress {
    recorder: Recorder,
    index: usize,
    pub(crate) ending: Ending,
}

impl Progress {
    pub(crate) fn new(recorder: Recorder, index: usize) -> Self {
        let ending = Ending {
            outcome: Outcome::Dropped,
            events: 0,
            bytes: 0,
        };
        Self {
            recorder,
            index,
            ending,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.recorder.close(self.index, self.ending);
    }
}

/// Serves a connection. It ends when the future does or is dropped.
pub(crate) async fn serve(stream: impl Wire, shared: Arc<Shared>, number: usize) {
    let mut io = Io::new(stream, Arc::clone(&shared.reset_on_drop));
    loop {
        let (request, keep_alive) = match read(&mut io, &shared, number).await {
            Ok(read) => read,
            Err(BodyError::Gone(_)) => return,
            Err(BodyError::Bad(BadRequest)) => {
                debug!(number, "bad request");
                let mut head = ResponseHead::new(11, 400);
                head.line("content-length", "0").line("connection", "close");
                if io.write(&head.finish()).await.is_ok() {
                    io.close().await;
                }
                return;
            }
        };
        let index = shared.recorder.record(request.clone());
        let request = Request { index, ..request };
        let mut progress = Progress::new(shared.recorder.clone(), index);
        let answer = routes::choose(&shared, &request);
        let after = answer::give(&mut io, &shared, &request, answer, &mut progress).await;
        progress.ending.outcome = match &after {
            Ok(After::Next | After::Close) => Outcome::Finished,
            Ok(After::Cut(_)) => Outcome::Cut,
            Err(gone) => Outcome::from(*gone),
        };
        drop(progress);
        match after {
            Ok(After::Next) if keep_alive => {}
            Ok(After::Next | After::Close) => return io.close().await,
            Ok(After::Cut(cut)) => return io.cut(cut),
            Err(Gone::Closed | Gone::Reset) => return,
        }
    }
}

async fn read(io: &mut Io, shared: &Shared, number: usize) -> Result<(Request, bool), BodyError> {
    let head = loop {
        match RequestHead::take(&mut io.input)? {
            Some(head) => break head,
            None => io.fill().await?,
        }
    };
    let framing = head.body()?;
    let path = head
        .target
        .split_once('?')
        .map_or(head.target.as_str(), |(path, _)| path);
    let early = shared.script_at(path).is_some_and(|script| script.early);
    let mut body = Body::new(shared.config.keep_body);
    if !early {
        if head.version == 11 && head.lists("expect", "100-continue") {
            io.write(&ResponseHead::new(11, 100).finish()).await?;
        }
        body = body.read(io, framing).await?;
    }
    let keep_alive = head.keep_alive() && !early;
    let (body, body_len, body_sha256) = body.finish();
    let request = Request {
        index: 0,
        connection: number,
        at: Instant::now(),
        method: head.method,
        target: head.target,
        version: head.version,
        headers: head.headers,
        body,
        body_len,
        body_sha256,
        ending: None,
    };
    Ok((request, keep_alive))
}
