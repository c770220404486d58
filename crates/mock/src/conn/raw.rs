//! Answers that are no HTTP answers: exact bytes, and the echo protocol.

use tokio::time::sleep;

use super::{After, Progress, answer::flush};
use crate::{
    Cut, Encoding, Raw, RawStep, Request,
    frame::Frame,
    head::ResponseHead,
    io::{Gone, Io},
    mock::Shared,
};

/// Takes the steps of a raw answer.
pub(super) async fn steps(
    io: &mut Io,
    shared: &Shared,
    raw: Raw,
    progress: &mut Progress,
) -> Result<After, Gone> {
    let mut frame = Frame::new(true, Encoding::Identity);
    for step in raw.steps {
        match step {
            RawStep::Write(text) => frame.raw(text.as_bytes()),
            RawStep::Bytes(bytes) => frame.raw(&bytes),
            RawStep::Chunk(text) => frame.body(text.as_bytes()),
            RawStep::LastChunk => frame.end(&[]),
            RawStep::Repeat { text, times } => {
                for _ in 0..times {
                    io.write(text.as_bytes()).await?;
                    progress.ending.bytes += text.len() as u64;
                }
            }
            RawStep::Pause(span) => io.wait(sleep(span)).await?,
            RawStep::Gate(name) => io.wait(shared.gates.pass(&name)).await?,
            RawStep::Stall => return Err(io.silence().await),
            RawStep::Rst => return Ok(After::Cut(Cut::Rst)),
            RawStep::Fin => return Ok(After::Cut(Cut::Fin)),
        }
        progress.ending.bytes += frame.bytes().len() as u64;
        flush(io, &mut frame).await?;
    }
    Ok(After::Next)
}

/// Switches to the echo protocol: every byte comes back, until the client closes its half.
pub(super) async fn echo(
    io: &mut Io,
    request: &Request,
    progress: &mut Progress,
) -> Result<After, Gone> {
    let mut head = ResponseHead::new(11, 101);
    head.line("connection", "upgrade");
    head.line("upgrade", request.header("upgrade").unwrap_or("echo"));
    io.write(&head.finish()).await?;
    loop {
        if io.input.is_empty() {
            match io.fill().await {
                Ok(()) => {}
                Err(Gone::Closed) => return Ok(After::Close),
                Err(Gone::Reset) => return Err(Gone::Reset),
            }
        }
        let input = io.input.split();
        progress.ending.bytes += input.len() as u64;
        io.write_on(&input).await?;
    }
}
