//! How a producer is told that something has changed.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Anybody rings, one task listens; what rings while nobody listens is heard later, once.
///
/// A `Notify` would do, but the listener here looks at it for every event: that is one load, and one lock that nobody
/// else wants.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        let listener = self
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = listener {
            waker.wake();
        }
    }

    /// Waits until it rings, or has rung since the last time.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn heard(&self) {
        poll_fn(|cx| self.poll_heard(cx)).await;
    }

    pub(crate) fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.take() {
            return Poll::Ready(());
        }
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            return Poll::Pending;
        }
        let before = listener.replace(cx.waker().clone());
        drop(listener);
        // Foreign code may run when a waker is dropped, so it is not dropped under the lock.
        drop(before);
        // Who rang before the waker was there did not see it.
        if self.take() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn take(&self) -> bool {
        // Read first: a load costs the listener nothing, and it is hardly ever true.
        self.rung.load(Ordering::SeqCst) && self.rung.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_rang_before_is_heard_once() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        bell.heard().await;
        assert!(
            poll_fn(|cx| Poll::Ready(bell.poll_heard(cx)))
                .await
                .is_pending()
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_rung_from_elsewhere_is_missed() {
        let (bell, answer) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
        let (rings, hears) = (Arc::clone(&bell), Arc::clone(&answer));
        let other = tokio::spawn(async move {
            for _ in 0..10_000 {
                rings.ring();
                hears.heard().await;
            }
        });
        let all = async {
            for _ in 0..10_000 {
                bell.heard().await;
                answer.ring();
            }
        };
        tokio::time::timeout(Duration::from_secs(30), all)
            .await
            .expect("each ring is heard");
        other.await.expect("the other side is done too");
    }
}
