//! A call that stands still until a test lets it go.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What a held call waits at. Both sides can wait for the other, on any runtime.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    released: bool,
    wakers: Vec<Waker>,
}

impl Gate {
    pub(super) async fn pass(&self) {
        self.change(|state| state.reached = true);
        self.wait(|state| state.released).await;
    }

    async fn wait(&self, ready: impl Fn(&State) -> bool) {
        poll_fn(|cx: &mut Context<'_>| {
            let mut state = self.state();
            if ready(&state) {
                return Poll::Ready(());
            }
            if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The test's end of a held call. Dropping it lets the call go as well, so that a failed test ends.
#[derive(Debug)]
#[must_use = "dropped, it holds nothing"]
pub struct Held(Arc<Gate>);

impl Held {
    pub(super) fn new(gate: Arc<Gate>) -> Self {
        Self(gate)
    }

    /// Waits until the call is here.
    pub async fn reached(&self) {
        self.0.wait(|state| state.reached).await;
    }

    /// Lets the call go.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.change(|state| state.released = true);
    }
}
