//! What is worth a line in the log, and not a line each time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Says yes the first time, and then when it was not asked for a while.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    pub(crate) fn is_news(&self) -> bool {
        let now = Instant::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.replace(now);
        last.is_none_or(|last| now.duration_since(last) > A_WHILE)
    }
}

const A_WHILE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_told_once() {
        let seldom = Seldom::default();
        assert!(seldom.is_news());
        for _ in 0..9 {
            tokio::time::advance(A_WHILE / 2).await;
            assert!(!seldom.is_news());
        }
        tokio::time::advance(A_WHILE * 2).await;
        assert!(seldom.is_news());
    }
}
