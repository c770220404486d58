//! Giving one answer on an HTTP/1 connection.

use http::Method;
use tokio::time::sleep;

use super::{After, Progress, raw, stream};
use crate::{
    Request, Script,
    frame::Frame,
    head::ResponseHead,
    io::{Gone, Io},
    mock::Shared,
    routes::Answer,
};

/// Gives the answer, and says what becomes of the connection.
pub(super) async fn give(
    io: &mut Io,
    shared: &Shared,
    request: &Request,
    answer: Answer,
    progress: &mut Progress,
) -> Result<After, Gone> {
    match answer {
        Answer::Plain { script, body, json } => {
            before_head(io, shared, &script).await?;
            let mut head = ResponseHead::new(11, script.status);
            let natural = if json {
                "application/json"
            } else {
                "text/plain; charset=utf-8"
            };
            // These two have no body by definition, and must not announce one.
            let bodiless = matches!(script.status, 204 | 304);
            if !bodiless {
                let content_type = script.content_type.as_deref().unwrap_or(natural);
                head.line("content-type", content_type);
                head.line("content-length", &body.len().to_string());
            }
            lines(&mut head, &script);
            let mut bytes = head.finish();
            if request.method != Method::HEAD && !bodiless {
                bytes.extend_from_slice(&body);
                progress.ending.bytes = body.len() as u64;
            }
            bytes.extend_from_slice(script.after_end.as_deref().unwrap_or_default().as_bytes());
            io.write(&bytes).await?;
            Ok(if script.close {
                After::Close
            } else {
                After::Next
            })
        }
        Answer::Stream { script, ask } => {
            before_head(io, shared, &script).await?;
            stream::play(io, shared, request, &script, &ask, progress).await
        }
        Answer::Raw(raw) => raw::steps(io, shared, raw, progress).await,
        Answer::Upgrade => raw::echo(io, request, progress).await,
    }
}

async fn before_head(io: &mut Io, shared: &Shared, script: &Script) -> Result<(), Gone> {
    if !script.head_delay.is_zero() {
        io.wait(sleep(script.head_delay)).await?;
    }
    if let Some(gate) = &script.head_gate {
        io.wait(shared.gates.pass(gate)).await?;
    }
    for status in &script.interim {
        let mut head = ResponseHead::new(11, *status);
        if *status == 103 {
            head.line("link", "</style.css>; rel=preload");
        }
        io.write(&head.finish()).await?;
    }
    Ok(())
}

/// The script's own header lines.
pub(super) fn lines(head: &mut ResponseHead, script: &Script) {
    for (name, value) in &script.headers {
        head.line(name, value);
    }
    if script.close {
        head.line("connection", "close");
    }
}

/// Writes what is framed.
pub(super) async fn flush(io: &mut Io, frame: &mut Frame) -> Result<(), Gone> {
    io.write(frame.bytes()).await?;
    frame.written();
    Ok(())
}
