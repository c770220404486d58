//! How a producer ends its generation: the terminal is staged, committed, and counted.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_dialect::{Dialect, Ending, stopped_ending};
use streamweld_journal::{Closed, Kind, Outcome, Refusal, StreamId, TerminalParts, Window};
use tokio::time::{sleep, timeout};

use super::Producer;
use crate::committer::Progress;
use crate::counters::{Counters, EndLabels};
use crate::form::error_form;
use crate::happening::Happening;
use crate::lifecycle::End;
use crate::log::Log;
use crate::payload::{TerminalPayload, control_lines};
use crate::steady::steady_now;
use crate::transcript::transcript;

/// How long the readers of a log that was given up may take to read its true end.
const LINGER: Duration = Duration::from_secs(30);

impl Producer {
    /// Commits the terminal, and waits for the journal within the bounds of healing.
    pub(super) async fn finish(&mut self, end: End, log: &mut Log<'_>) {
        let handle = Arc::clone(&self.handle);
        let (window, dialect) = (handle.window(), handle.spec().dialect);
        let shown_as = self.intake.shown_as();
        // What was staged before the end comes first, so that the transcript of a stop is what readers have seen.
        if end.kind() == Kind::Stopped {
            let patience = self.shared.limits.heal.patience;
            match timeout(patience, poll_fn(|cx| log.poll_settled(cx))).await {
                Ok(Some(Progress::Lost)) => return self.lost(),
                Ok(Some(Progress::GivenUp)) => *log = Log::given_up(),
                Ok(_) | Err(_) => {}
            }
        }
        let now = SystemTime::now();
        if end.kind() == Kind::Done {
            let counters = &self.shared.counters;
            self.intake.release(now, window, counters);
        }
        let mut payload = end.payload(window.id(), window.received().next(), now);
        payload.upstream_last_event_id = self.intake.upstream_id();
        payload.attempts = handle.attempts();
        let asked = handle.asked();
        if asked.len() > 1 {
            payload.backends = asked.iter().map(ToString::to_string).collect();
        }
        let stopped =
            (end.kind() == Kind::Stopped).then(|| stopped_ending(&transcript(window, dialect)));
        stage_end(window, shown_as, &end, &payload, now, stopped);
        if end.kind() == Kind::Error {
            self.handle.mark_failed();
        }
        log.ending(window.received());
        // A journal that is away is waited for within the bounds of healing; readers see the end meanwhile.
        match poll_fn(|cx| log.poll(cx)).await {
            Progress::GivenUp => *log = Log::given_up(),
            // Whoever has it now ends it, and counts that.
            Progress::Lost => {
                self.tell(&Happening::Left);
                return self.handle.mark_failed();
            }
            Progress::Finished | Progress::Opened | Progress::Refused => {}
        }
        count_end(&self.shared.counters, window.id(), &end);
        if matches!(log, Log::GivenUp { .. }) {
            self.close_incomplete().await;
        }
        tracing::info!(
            stream_id = %window.id(),
            request_id = %handle.spec().request_id,
            trace_id = handle.trace_id(),
            outcome = end.kind().as_str(),
            code = end.code(),
            backend = %handle.backend(),
            attempts = handle.attempts(),
            entries = window.received().get(),
            "generation ended"
        );
    }

    /// The log could not be healed. Those who are attached have been shown the true end; for everybody later the log
    /// ends with an error, as soon as the journal takes one, so that nobody is shown a part as the whole.
    async fn close_incomplete(&mut self) {
        let handle = Arc::clone(&self.handle);
        let window = handle.window();
        let left = async {
            while handle.readers() > 0 && !handle.shutdown_asked() {
                handle.changed().heard().await;
            }
        };
        // A reader that has taken nothing for this long will not.
        let _ = timeout(LINGER, left).await;
        self.handle.mark_failed();
        window.abandon();
        window.expose(false);
        let now = SystemTime::now();
        let payload = End::Incomplete.payload(window.id(), window.received().next(), now);
        stage_end(
            window,
            handle.spec().dialect,
            &End::Incomplete,
            &payload,
            now,
            None,
        );
        // However long it takes: until then the log looks as if it went on.
        while !handle.shutdown_asked() {
            match self
                .shared
                .journal
                .finish(window, window.committed(), steady_now())
                .await
            {
                Outcome::Yes => return window.commit(window.received()),
                Outcome::No(Refusal::Full | Refusal::Unready) | Outcome::Unknown => {
                    sleep(LINGER / 100).await;
                }
                // It has an end from elsewhere, or gets one.
                Outcome::No(Refusal::Fenced { .. } | Refusal::Ended) => {
                    return window.close(Closed::Incomplete);
                }
                Outcome::No(_) => break,
            }
        }
        // There is no log to end: what is left of it must not be found as if it went on.
        self.clean(true).await;
        window.close(Closed::Incomplete);
    }

    /// The log is somebody else's now: how it ends is neither told nor counted here, and no repeat may join what is left.
    pub(super) fn lost(&mut self) {
        self.lifecycle.internal();
        self.tell(&Happening::Left);
        self.handle.mark_failed();
    }
}

pub(crate) fn count_end(counters: &Counters, stream: StreamId, end: &End) {
    let labels = EndLabels {
        outcome: end.kind().as_str(),
        code: end.code().unwrap_or_default(),
    };
    counters.ended.get_or_create(&labels).inc();
    counters.onlookers.tell(stream, &Happening::Ended(end));
}

/// Stages the terminal of `end`, with the form that readers of the plain answer are shown.
pub(crate) fn stage_end(
    window: &Window,
    dialect: Dialect,
    end: &End,
    payload: &TerminalPayload,
    now: SystemTime,
    ending: Option<Ending>,
) {
    let ending = ending.or_else(|| {
        let code = end.code()?;
        let message = end.message().unwrap_or_default();
        Some(error_form(window, dialect, code, &message))
    });
    let (ending, id_at) = ending.map_or((Vec::new(), None), |ending| (ending.bytes, ending.id_at));
    window.stage_terminal(
        now,
        TerminalParts {
            kind: end.kind(),
            code: end.code().map(str::to_owned),
            lines: control_lines(end.kind(), payload),
            ending,
            id_at,
        },
    );
}
