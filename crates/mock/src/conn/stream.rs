//! Playing an event stream on an HTTP/1 connection.

use std::{future::pending, pin::pin, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    After, Progress,
    answer::{flush, lines},
};
use crate::{
    Ask, Cut, Deed, Encoding, End, Framing, Request, Script, Writes, engine,
    frame::Frame,
    head::ResponseHead,
    io::{Gone, Io},
    mock::Shared,
    player::{Move, Player},
    score::Close,
};

/// Writes head and body, to whatever end the script has for them.
pub(super) async fn play(
    io: &mut Io,
    shared: &Shared,
    request: &Request,
    script: &Script,
    ask: &Ask,
    progress: &mut Progress,
) -> Result<After, Gone> {
    let framing = framing(script, request.version);
    let chunked = framing == Framing::Chunked;
    let mut frame = Frame::new(chunked, script.encoding);
    frame.raw(&stream_head(script, ask, framing));
    if script.writes != Writes::AllAtOnce {
        flush(io, &mut frame).await?;
    }
    let ping = engine::ping(script, ask);
    let mut player = Player::new(script, ask);
    loop {
        match player.next() {
            Move::Write => {
                frame.body(player.bytes());
                let size = player.bytes().len() as u64;
                player.written();
                flush(io, &mut frame).await?;
                progress.ending.events = player.events();
                progress.ending.bytes += size;
            }
            Move::Pause(span) => {
                flush(io, &mut frame).await?;
                wait(io, &mut frame, ping, sleep(span)).await?;
            }
            Move::Gate(name) => {
                flush(io, &mut frame).await?;
                wait(io, &mut frame, ping, shared.gates.pass(&name)).await?;
            }
            Move::Stall => {
                flush(io, &mut frame).await?;
                wait(io, &mut frame, ping, pending()).await?;
            }
            Move::BadChunk => {
                frame.raw(if chunked { b"zz\r\n" } else { b"" });
                flush(io, &mut frame).await?;
                return Ok(After::Cut(Cut::Fin));
            }
            Move::End(Close::Cut(cut)) => {
                flush(io, &mut frame).await?;
                return Ok(After::Cut(cut));
            }
            Move::End(Close::Clean) => {
                frame.end(&script.trailers);
                frame.raw(script.after_end.as_deref().unwrap_or_default().as_bytes());
                flush(io, &mut frame).await?;
                let delimited = matches!(framing, Framing::Close | Framing::Http10);
                return Ok(if script.close || delimited {
                    After::Close
                } else {
                    After::Next
                });
            }
        }
    }
}

/// Waits, with a comment after each so much silence where the engine writes them.
async fn wait(
    io: &mut Io,
    frame: &mut Frame,
    ping: Option<Duration>,
    ours: impl Future<Output = ()>,
) -> Result<(), Gone> {
    let Some(ping) = ping else {
        return io.wait(ours).await;
    };
    let mut ours = pin!(ours);
    while io.wait(timeout(ping, ours.as_mut())).await?.is_err() {
        frame.body(b":\n\n");
        flush(io, frame).await?;
    }
    Ok(())
}

fn framing(script: &Script, version: u8) -> Framing {
    match script.framing {
        Framing::Chunked if version == 10 => Framing::Http10,
        // The coded length is not known beforehand.
        Framing::Length if script.encoding != Encoding::Identity => Framing::Close,
        framing => framing,
    }
}

fn stream_head(script: &Script, ask: &Ask, framing: Framing) -> Vec<u8> {
    let version = if framing == Framing::Http10 { 10 } else { 11 };
    let mut head = ResponseHead::new(version, script.status);
    let content_type = script
        .content_type
        .as_deref()
        .unwrap_or("text/event-stream; charset=utf-8");
    head.line("content-type", content_type)
        .line("cache-control", "no-cache");
    match script.encoding {
        Encoding::Identity => {}
        Encoding::Gzip => {
            head.line("content-encoding", "gzip");
        }
    }
    match framing {
        Framing::Chunked => {
            head.line("transfer-encoding", "chunked");
        }
        Framing::Length => {
            head.line("content-length", &announced(script, ask).to_string());
        }
        Framing::Close if !script.close => {
            head.line("connection", "close");
        }
        Framing::Close | Framing::Http10 => {}
    }
    lines(&mut head, script);
    head.finish()
}

/// The length that the head promises: of the body as it would be without a cut.
fn announced(script: &Script, ask: &Ask) -> usize {
    let mut whole = script.clone();
    whole
        .marks
        .retain(|mark| !matches!(mark.deed, Deed::Stall | Deed::BadChunk));
    if matches!(whole.end, End::RstAfter(_) | End::FinAfter(_)) {
        whole.end = End::Done;
    }
    whole.wire(ask).len()
}
