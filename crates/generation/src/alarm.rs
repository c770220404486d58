//! A timer for those who are polled far more often than it rings.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep, sleep_until};

/// A [`Sleep`] that is asked for every event and rings nearly never.
///
/// Polling a sleep registers the waker anew each time, which costs more than most of what is done for an event. A timer
/// that already knows the task is only asked whether it has rung.
#[derive(Debug)]
pub struct Alarm {
    sleep: Pin<Box<Sleep>>,
    deadline: Instant,
    /// Whom it will wake.
    wakes: Option<Waker>,
}

impl Alarm {
    /// Rings at `deadline`.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(deadline)),
            deadline,
            wakes: None,
        }
    }

    /// When it rings.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it has rung.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.sleep.is_elapsed()
    }

    /// Rings at `deadline` instead.
    pub fn reset(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
        self.deadline = deadline;
        self.wakes = None;
    }

    /// Ready once it has rung, and again whenever it is polled after that. When pending, the task is woken as it rings.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.wakes(cx) && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        let rung = self.sleep.as_mut().poll(cx);
        self.wakes = rung.is_pending().then(|| cx.waker().clone());
        rung
    }

    /// [`poll`](Self::poll) for a caller that has looked at the clock since its task was woken. It rings at its deadline
    /// and never before, so until then the timer, which lies somewhere else in memory, need not even be asked.
    pub fn poll_at(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        if now < self.deadline && self.wakes(cx) {
            return Poll::Pending;
        }
        self.poll(cx)
    }

    fn wakes(&self, cx: &Context<'_>) -> bool {
        self.wakes
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rings_at_its_time_however_often_it_is_polled() {
        let begun = Instant::now();
        let mut alarm = Alarm::new(begun + Duration::from_secs(5));
        for _ in 0..3 {
            let waker = Waker::noop();
            assert!(alarm.poll(&mut Context::from_waker(waker)).is_pending());
        }
        // The task that waits last is the one that is woken.
        poll_fn(|cx| {
            let _ = alarm.poll(cx);
            alarm.poll(cx)
        })
        .await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        poll_fn(|cx| alarm.poll(cx)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn rings_later_after_a_reset_and_again() {
        let begun = Instant::now();
        let mut alarm = Alarm::new(begun + Duration::from_secs(1));
        assert!(poll_once(&mut alarm).await.is_pending());
        alarm.reset(begun + Duration::from_secs(3));
        poll_fn(|cx| alarm.poll(cx)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
        alarm.reset(begun + Duration::from_secs(4));
        assert!(poll_once(&mut alarm).await.is_pending());
        poll_fn(|cx| alarm.poll(cx)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn rings_for_a_caller_that_tells_the_time() {
        let begun = Instant::now();
        let mut alarm = Alarm::new(begun + Duration::from_secs(5));
        poll_fn(|cx| alarm.poll_at(cx, Instant::now())).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
    }

    async fn poll_once(alarm: &mut Alarm) -> Poll<()> {
        poll_fn(|cx| Poll::Ready(alarm.poll(cx))).await
    }
}
