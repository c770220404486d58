//! What other replicas ask of the generations that this one writes (protocol.md 8.5).

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::lifecycle::By;
use streamweld_generation::{EndAs, Registry};
use streamweld_journal::{Notice, Order, StreamId, Word};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::app::App;
use crate::heirs;

/// Carries orders out for ever.
pub(crate) async fn obey(app: Arc<App>) -> Infallible {
    again_and_again(move || {
        let app = Arc::clone(&app);
        async move {
            loop {
                let (id, notice) = app.shared.journal.next_notice().await;
                match notice {
                    Notice::Order(order) => carry_out(&app.shared.registry, id, order),
                    Notice::Taken => taken(&app.shared.registry, id),
                    Notice::Ownerless(log) => app.ownerless.end(&app, id, log, EndAs::OwnerLost),
                    Notice::Said { from, word } => match word {
                        Word::Offer { epoch, last } => heirs::offered(&app, id, from, epoch, last),
                        word @ (Word::Considers { .. } | Word::Declines { .. }) => {
                            if let Some(handle) = app.shared.registry.find(id) {
                                handle.hear(from, word);
                            }
                        }
                    },
                    Notice::EndLost(log) => app.ownerless.end(&app, id, log, EndAs::Incomplete),
                }
            }
        }
    })
    .await
}

/// What is not here has ended, or was never here: then there is nothing to do.
fn carry_out(registry: &Registry, id: StreamId, order: Order) {
    tracing::debug!(stream_id = %id, ?order, "an order of another replica");
    let Some(handle) = registry.find(id) else {
        return;
    };
    match order {
        Order::Stop { admin: true } => handle.stop(By::Admin),
        Order::Stop { admin: false } => handle.stop(By::Client),
        Order::Readers { replica, any: true } => handle.came_elsewhere(replica),
        Order::Readers {
            replica,
            any: false,
        } => handle.left_elsewhere(replica),
    }
}

/// Another replica has it: whoever produces it here leaves it.
fn taken(registry: &Registry, id: StreamId) {
    if let Some(handle) = registry.find(id) {
        handle.taken_over();
    }
}

/// Runs `task` as one of its own, which ends with this future, and begins it anew if it panics: without it nobody
/// elsewhere could stop anything here.
async fn again_and_again<F>(task: impl Fn() -> F) -> Infallible
where
    F: Future<Output = Infallible> + Send + 'static,
{
    loop {
        let mut tasks = JoinSet::new();
        tasks.spawn(task());
        match tasks.join_next().await {
            Some(Ok(never)) => match never {},
            Some(Err(error)) => {
                tracing::error!(%error, "orders of other replicas are not heard for a moment");
            }
            None => {}
        }
        sleep(AFTER_A_PANIC).await;
    }
}

/// So that a fault that stays does not fill the log.
const AFTER_A_PANIC: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;

    use streamweld_generation::Handle;
    use streamweld_journal::Replica;
    use tokio::time::timeout;

    use super::*;
    use crate::testing::candidate;

    fn handle(registry: &Registry) -> Arc<Handle> {
        let handle = candidate();
        registry.insert(Arc::clone(&handle));
        handle
    }

    #[test]
    fn a_replica_that_has_readers_counts_once_however_often_it_says_so() {
        let registry = Registry::default();
        let handle = handle(&registry);
        let id = handle.spec().id;
        let say = |replica, any| {
            let replica = Replica(replica);
            carry_out(&registry, id, Order::Readers { replica, any });
            (handle.readers(), handle.replicas())
        };
        assert_eq!(say(1, false), (0, 0));
        assert_eq!(say(1, true), (1, 1));
        assert_eq!(say(1, true), (1, 1));
        assert_eq!(say(2, true), (2, 2));
        assert_eq!(say(1, false), (1, 1));
        assert_eq!(say(1, false), (1, 1));
        assert_eq!(say(2, false), (0, 0));
    }

    #[test]
    fn what_is_not_here_is_nobodys() {
        let registry = Registry::default();
        let id = StreamId::generate(SystemTime::now());
        carry_out(&registry, id, Order::Stop { admin: false });
        let any = true;
        let replica = Replica(1);
        carry_out(&registry, id, Order::Readers { replica, any });
        assert!(registry.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_it_for_a_moment_only() {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let task = again_and_again(move || {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            async move {
                assert!(turn == 2, "turn {turn}");
                std::future::pending().await
            }
        });
        assert!(timeout(Duration::from_secs(60), task).await.is_err());
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }
}
