//! What the log is told of the connections to one server: each trouble once, whichever of them it is seen on.
//!
//! A server that refuses us is asked again and again, and may let us in each time for a moment. So a trouble is over
//! only when every connection that had some has lasted for a while, and a refusal when it was not heard for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::failure::{Code, ConnectError};

/// One for each server.
#[derive(Default)]
pub(crate) struct Voice(Mutex<State>);

#[derive(Default)]
struct State {
    /// That there is a connection was told.
    is_greeted: bool,
    /// What was told of the trouble that there is.
    told: Vec<ConnectError>,
    /// Who has it.
    troubled: Vec<&'static str>,
    /// The words that something was refused with, and when each was heard last.
    refusals: Vec<(Code, Instant)>,
}

impl Voice {
    /// There is no connection, or none any more, and why.
    pub(super) fn trouble(&self, link: &'static str, error: &ConnectError) {
        let mut state = self.lock();
        if !state.troubled.contains(&link) {
            state.troubled.push(link);
        }
        let is_news = !state.told.contains(error) && state.told.len() < WORDS;
        if is_news {
            state.told.push(error.clone());
        }
        drop(state);
        if is_news {
            tracing::warn!(link, %error, "no connection to Redis");
        } else {
            tracing::debug!(link, %error, "no connection to Redis yet");
        }
    }

    /// A connection was made. It has yet to show what it is worth when there was trouble before.
    pub(super) fn connected(&self, link: &'static str) {
        let mut state = self.lock();
        let is_first = !state.is_greeted && state.told.is_empty();
        state.is_greeted |= is_first;
        drop(state);
        if is_first {
            tracing::info!("connected to Redis");
        } else {
            tracing::debug!(link, "connected to Redis");
        }
    }

    /// A connection has lasted for [`STEADY`].
    pub(super) fn steady(&self, link: &'static str) {
        let mut state = self.lock();
        state.troubled.retain(|troubled| *troubled != link);
        let is_over = state.troubled.is_empty() && !state.told.is_empty();
        if is_over {
            state.told.clear();
            state.is_greeted = true;
        }
        drop(state);
        if is_over {
            tracing::info!("connected to Redis, and it stays so");
        }
    }

    /// The server said no to a command.
    pub(super) fn refuses(&self, link: &'static str, code: &Code) {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some((_, heard)) = state.refusals.iter_mut().find(|(it, _)| it == code) {
            *heard = now;
            return;
        }
        let is_news = state.refusals.len() < WORDS;
        if is_news {
            state.refusals.push((code.clone(), now));
        }
        drop(state);
        if !is_news {
            tracing::debug!(link, %code, "Redis refuses a command");
        } else if code.is("OOM") {
            tracing::warn!(link, %code, "Redis has no memory left for what is written: it has reached its maxmemory");
        } else {
            tracing::warn!(link, %code, "Redis refuses a command");
        }
    }

    /// Looks for refusals that are over.
    pub(super) fn look(&self) {
        let mut over = Vec::new();
        self.lock().refusals.retain(|(code, heard)| {
            let is_over = heard.elapsed() > QUIET;
            if is_over {
                over.push(code.clone());
            }
            !is_over
        });
        for code in over {
            tracing::info!(%code, "Redis has not refused a command so for a while");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is whole before anything that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For how long a connection has to last: each is written on at once, and three calls without an answer take less.
pub(super) const STEADY: Duration = Duration::from_secs(4);
/// After how long a refusal that was not heard again is over.
const QUIET: Duration = Duration::from_secs(30);
/// Different words that are remembered; a healthy server has none.
const WORDS: usize = 8;
