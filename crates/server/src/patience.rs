//! How long a client may keep its request waiting in mid-body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// What is left of it for one body. Only time in which somebody wants to read and there is nothing counts: a backend that
/// takes a body slowly is not its client's fault.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Between two pieces.
    idle: Duration,
    /// For all of it.
    left: Duration,
    answered: Answered,
    wait: Option<Wait>,
}

#[derive(Debug)]
struct Wait {
    since: Instant,
    until: Pin<Box<Sleep>>,
}

/// Whether the answer has begun. From then on a body may take its time: the backend has chosen to answer it as it comes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered(Arc<AtomicBool>);

impl Answered {
    pub(crate) fn begins(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Patience {
    pub(crate) fn new(idle: Duration, all: Duration) -> Self {
        Self {
            idle,
            left: all,
            answered: Answered::default(),
            wait: None,
        }
    }

    pub(crate) fn answered(&self) -> Answered {
        self.answered.clone()
    }

    /// There is nothing to read. Ready once that has been so for too long.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.answered.has_begun() {
            self.wait = None;
            return Poll::Pending;
        }
        let within = self.idle.min(self.left);
        let wait = self.wait.get_or_insert_with(|| {
            let since = Instant::now();
            let until = Box::pin(sleep_until(since + within));
            Wait { since, until }
        });
        ready!(wait.until.as_mut().poll(cx));
        match self.answered.has_begun() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    /// A piece has come.
    pub(crate) fn goes_on(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.left = self.left.saturating_sub(wait.since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{advance, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn over_within(patience: &mut Patience, time: Duration) -> bool {
        let over = poll_fn(|cx| patience.poll_over(cx));
        timeout(time, over).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_borne_for_a_while() {
        let mut patience = Patience::new(10 * SECOND, 60 * SECOND);
        assert!(!over_within(&mut patience, 9 * SECOND).await);
        assert!(over_within(&mut patience, 2 * SECOND).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_trickles_in_is_borne_for_a_while_as_well() {
        let mut patience = Patience::new(10 * SECOND, 60 * SECOND);
        for _ in 0..6 {
            assert!(!over_within(&mut patience, 9 * SECOND).await);
            patience.goes_on();
            // Nobody reads meanwhile, which is not the client's fault.
            advance(1000 * SECOND).await;
        }
        assert!(!over_within(&mut patience, 5 * SECOND).await);
        assert!(over_within(&mut patience, 2 * SECOND).await);
    }

    #[tokio::test(start_paused = true)]
    async fn behind_the_beginning_of_an_answer_nothing_is_too_long() {
        let mut patience = Patience::new(10 * SECOND, 60 * SECOND);
        assert!(!over_within(&mut patience, 9 * SECOND).await);
        patience.answered().begins();
        assert!(!over_within(&mut patience, 1000 * SECOND).await);
    }
}
