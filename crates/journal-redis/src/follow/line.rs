//! A follower's line to the owner: none while Redis is there.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use streamweld_journal::{Call, Replica};
use tokio::time::{Instant, sleep_until};

use crate::relay::{Answer, Telling, Told};

/// ```text
/// Idle ──wanted──> Due ──> Asking ──answer──> Open
///                   ▲        │ nobody           │ cut
///                   └────────┴──────────────────┘
/// ```
/// From anywhere it is Idle again as soon as it is not wanted.
pub(super) struct Line {
    state: State,
    /// How long it waits before it asks again, if that comes to nothing.
    wait: Duration,
}

enum State {
    Idle,
    Due(Instant),
    Asking(Call<'static, Option<(Replica, Answer)>>),
    Open(Box<dyn Telling>),
}

/// What happens on it.
pub(super) enum News {
    /// Somebody is to be asked now.
    Due,
    /// This replica has answered.
    Open(Replica),
    Told(Told),
    /// There is no line (any more).
    Cut,
}

impl Line {
    pub(super) fn new(telling: Option<Box<dyn Telling>>) -> Self {
        Self {
            state: telling.map_or(State::Idle, State::Open),
            wait: SHORTEST,
        }
    }

    /// Whether it is to be there.
    pub(super) fn want(&mut self, is_wanted: bool) {
        match (&self.state, is_wanted) {
            (State::Idle, true) => {
                self.state = State::Due(Instant::now());
                self.wait = SHORTEST;
            }
            (_, false) => self.state = State::Idle,
            (State::Due(_) | State::Asking(_) | State::Open(_), true) => {}
        }
    }

    pub(super) fn ask(&mut self, call: Call<'static, Option<(Replica, Answer)>>) {
        self.state = State::Asking(call);
    }

    /// What came on it cannot be used, or nothing more comes.
    pub(super) fn cut(&mut self) {
        self.state = State::Due(Instant::now() + self.wait);
        self.wait = (self.wait * 2).min(LONGEST);
    }

    pub(super) fn is_wanted(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The next that happens; nothing ever, where it is not wanted.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> News {
        if let State::Due(at) = self.state {
            sleep_until(at).await;
            return News::Due;
        }
        poll_fn(|cx| {
            let news = match &mut self.state {
                State::Idle | State::Due(_) => return Poll::Pending,
                State::Asking(call) => match ready!(Pin::new(call).poll(cx)) {
                    Some((replica, answer)) => {
                        self.state = State::Open(answer.telling);
                        return Poll::Ready(News::Open(replica));
                    }
                    None => News::Cut,
                },
                State::Open(telling) => match ready!(telling.poll_next(cx)) {
                    Some(told) => {
                        self.wait = SHORTEST;
                        return Poll::Ready(News::Told(told));
                    }
                    None => News::Cut,
                },
            };
            self.cut();
            Poll::Ready(news)
        })
        .await
    }
}

/// How soon the owner is asked again after a line was cut, doubled for each time in a row.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
