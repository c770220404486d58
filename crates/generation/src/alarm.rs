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
    /// Whom it will wake.
    wakes: Option<Waker>,
}

impl Alarm {
    /// Rings at `deadline`.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(deadline)),
            wakes: None,
        }
    }

    /// When it rings.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.sleep.deadline()
    }

    /// Whether it has rung.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.sleep.is_elapsed()
    }

    /// Rings at `deadline` instead.
    pub fn reset(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
        self.wakes = None;
    }

    /// Ready once it has rung, and again whenever it is polled after that. When pending, the task is woken as it rings.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let waits = self
            .wakes
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if waits && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        let rung = self.sleep.as_mut().poll(cx);
        self.wakes = rung.is_pending().then(|| cx.waker().clone());
        rung
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

    async fn poll_once(alarm: &mut Alarm) -> Poll<()> {
        poll_fn(|cx| Poll::Ready(alarm.poll(cx))).await
    }
}
