//! Emptying this replica: what it runs is offered to the others (protocol.md 12.3).

use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::Done;
use super::backends::wait;
use crate::app::App;
use crate::error::Error;
use crate::leaving::leave;
use crate::streams;

/// A generation that is still here, and why.
#[derive(Serialize)]
struct Remaining {
    stream_id: String,
    reason: String,
}

/// Begins to leave, and answers when nothing runs here any more or the time is over.
pub(super) async fn drain(app: &Arc<App>, query: Option<&str>) -> Result<Done, Error> {
    #[derive(Serialize)]
    struct Answer {
        object: &'static str,
        drained: bool,
        handed_over: usize,
        remaining: Vec<Remaining>,
    }
    leave(app, Instant::now() + wait(query)?).await;
    let running = app.shared.registry.all().into_iter();
    let remaining: Vec<_> = running
        .map(|handle| {
            let id = handle.spec().id;
            Remaining {
                stream_id: id.to_string(),
                reason: app
                    .leaving
                    .reason(id)
                    .unwrap_or_else(|| "it runs".to_owned()),
            }
        })
        .collect();
    let handed_over = app.leaving.handed_over();
    let outcome = format!("handed over: {handed_over}, remaining: {}", remaining.len());
    let response = streams::json(&Answer {
        object: "streamweld.replica_drain",
        drained: remaining.is_empty(),
        handed_over,
        remaining,
    });
    Ok(Done { response, outcome })
}
