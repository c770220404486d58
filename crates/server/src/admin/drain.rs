//! Emptying a backend: every generation there is asked to go on elsewhere.
//!
//! Calls about one backend that overlap share what they have asked, so that nobody is asked twice: the second wish would
//! be met behind the first, and move a generation on from the backend that it has just been moved to. What was asked
//! stays asked when its caller leaves.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Serialize;
use streamweld_generation::migration::{Order, Report};
use streamweld_generation::{Handle, Head};
use streamweld_journal::StreamId;
use streamweld_upstream::fleet::{MemberSnapshot, MemberState, UnknownBackend};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::gates::GateState;

/// How many generations of one backend move at a time. Each is a prompt that the other backends have to read.
const AT_ONCE: usize = 64;
/// How often those that are bound are looked for again. Most ends are heard of at once.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The backends that are being emptied, by their names.
#[derive(Default)]
pub(crate) struct Drains(Mutex<HashMap<String, Weak<Asking>>>);

impl Drains {
    /// What overlapping calls about a backend share.
    fn of(&self, backend: &str) -> Arc<Asking> {
        let mut drains = self.lock();
        drains.retain(|_, asking| asking.strong_count() > 0);
        if let Some(asking) = drains.get(backend).and_then(Weak::upgrade) {
            return asking;
        }
        let asking = Arc::new(Asking::default());
        drains.insert(backend.to_owned(), Arc::downgrade(&asking));
        asking
    }

    /// The next call about it begins anew.
    fn forget(&self, backend: &str) {
        self.lock().remove(backend);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Asking>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who was asked to leave one backend. It lives as long as a call about it, or an answer that is awaited.
struct Asking {
    told: Mutex<BTreeMap<StreamId, Told>>,
    moving: Semaphore,
    /// Something was told.
    news: watch::Sender<()>,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            told: Mutex::default(),
            moving: Semaphore::new(AT_ONCE),
            news: watch::Sender::new(()),
        }
    }
}

/// What became of one that was asked.
enum Told {
    /// It has not said.
    Nothing(Arc<Handle>),
    /// It goes on elsewhere, because it was asked.
    Moved,
    /// It goes on here.
    Stays {
        reason: String,
        gates: Vec<GateState>,
    },
    /// It was over, or had left, when its turn came.
    Gone,
}

/// How it stands when a call is answered.
pub(super) struct Drained {
    pub(super) moved: usize,
    pub(super) remaining: Vec<Remaining>,
    /// What is in flight there beside generations.
    pub(super) other_requests: usize,
    /// It was taken back meanwhile.
    pub(super) undrained: bool,
}

/// A generation that is still there, and why.
#[derive(Serialize)]
pub(super) struct Remaining {
    stream_id: String,
    reason: String,
    gates: Vec<GateState>,
}

/// Gives a backend no new attempts and asks every generation there to leave. Answers when nothing is left, when it is
/// undrained, or at `until`.
pub(super) async fn drain(
    app: &Arc<App>,
    backend: &str,
    until: Instant,
) -> Result<Drained, UnknownBackend> {
    let fleet = &app.backends.fleet;
    let mut changes = fleet.changes();
    fleet.drain(backend)?;
    let asking = app.drains.of(backend);
    let mut news = asking.news.subscribe();
    loop {
        // First: a request that has its place and is no generation's yet shows here.
        let member = member(app, backend);
        let in_flight = member.as_ref().map_or(0, |member| member.in_flight);
        let undrained = member.is_some_and(|member| member.state != MemberState::Draining);
        let bound = bound(app, backend);
        if !undrained {
            for handle in &bound {
                asking.ask(&app.producers, backend, handle);
            }
        }
        let is_empty = bound.is_empty() && in_flight == 0;
        if is_empty || undrained || Instant::now() >= until {
            return Ok(asking.stands(backend, &bound, in_flight, undrained));
        }
        tokio::select! {
            _ = news.changed() => {}
            () = changes.changed() => {}
            () = sleep(LOOK_EVERY) => {}
            () = sleep_until(until) => {}
        }
    }
}

/// Gives it attempts again.
pub(super) fn undrain(app: &App, backend: &str) -> Result<(), UnknownBackend> {
    app.backends.fleet.undrain(backend)?;
    app.drains.forget(backend);
    Ok(())
}

/// None when DNS has taken it away, which happens only to what is empty.
fn member(app: &App, backend: &str) -> Option<MemberSnapshot> {
    let mut members = app.backends.fleet.snapshot().into_iter();
    members.find(|member| member.name == backend)
}

/// Every generation and candidate that is at this backend.
fn bound(app: &App, backend: &str) -> Vec<Arc<Handle>> {
    let mut bound = app.shared.registry.all();
    bound.retain(|handle| &*handle.backend() == backend);
    bound
}

impl Asking {
    /// Asks one, unless it was asked. Among `tasks` it outlives the call.
    fn ask(self: &Arc<Self>, tasks: &TaskTracker, backend: &str, handle: &Arc<Handle>) {
        let id = handle.spec().id;
        {
            let mut told = self.lock();
            if told.contains_key(&id) {
                return;
            }
            told.insert(id, Told::Nothing(Arc::clone(handle)));
        }
        let (asking, handle) = (Arc::clone(self), Arc::clone(handle));
        let backend = backend.to_owned();
        // It ends with the generation at the latest, for which a shutdown waits as well.
        tasks.spawn(async move {
            // A candidate may wait for its head for long, and must not keep a turn meanwhile.
            let _turn = match handle.head() {
                Head::Pending => None,
                Head::Streaming(_) | Head::Dropped | Head::Ended => {
                    let turn = asking.moving.acquire().await;
                    Some(turn.expect("it is never closed"))
                }
            };
            let report = match *handle.backend() == *backend {
                true => handle.order(Order::Drain).await,
                false => Report::Over,
            };
            asking.lock().insert(id, Told::from(report));
            asking.news.send_replace(());
        });
    }

    /// How it stands with those that were `bound` a moment ago, while so many requests are in flight.
    fn stands(
        &self,
        backend: &str,
        bound: &[Arc<Handle>],
        in_flight: usize,
        undrained: bool,
    ) -> Drained {
        let told = self.lock();
        // Whoever has left since is none of those that remain, so that nobody is counted twice.
        let is_there = |handle: &Arc<Handle>| *handle.backend() == *backend;
        let there: BTreeMap<StreamId, _> = bound
            .iter()
            .filter(|handle| is_there(handle))
            .map(|handle| {
                let id = handle.spec().id;
                (id, remaining(id, told.get(&id)))
            })
            .collect();
        let moved = told.iter().filter(|(id, told)| match told {
            Told::Moved => true,
            // It is with the other before it says so.
            Told::Nothing(handle) => !there.contains_key(id) && !is_there(handle),
            Told::Stays { .. } | Told::Gone => false,
        });
        Drained {
            moved: moved.count(),
            other_requests: in_flight.saturating_sub(bound.len()),
            remaining: there.into_values().collect(),
            undrained,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamId, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why one is still there.
fn remaining(id: StreamId, told: Option<&Told>) -> Remaining {
    let (reason, gates) = match told {
        Some(Told::Stays { reason, gates }) => (reason.as_str(), gates.clone()),
        Some(Told::Gone) => ("it is about to end", Vec::new()),
        Some(Told::Moved) => ("it has come back since it was moved", Vec::new()),
        Some(Told::Nothing(_)) | None => {
            ("what becomes of it is not known yet; ask again", Vec::new())
        }
    };
    Remaining {
        stream_id: id.to_string(),
        reason: reason.to_owned(),
        gates,
    }
}

impl From<Report> for Told {
    fn from(report: Report) -> Self {
        match report {
            Report::Moved { .. } => Self::Moved,
            Report::Stays { judged, reason } => Self::Stays {
                reason,
                gates: GateState::refusing(&judged),
            },
            // Nobody asked for what the gates say.
            Report::Over | Report::Gates(_) => Self::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use streamweld_dialect::{Dialect, Method};
    use streamweld_generation::migration::Judged;
    use streamweld_generation::migration::gates::{Gate, Verdict};
    use streamweld_generation::{Access, CredentialHeaders, OrphanPolicy, Spec};
    use streamweld_journal::{Epoch, Window, WindowConfig};

    use super::*;

    fn at(backend: &str) -> Arc<Handle> {
        let created = SystemTime::now();
        let id = StreamId::generate(created);
        let spec = Spec {
            id,
            dialect: Dialect::OpenAiChat,
            model: None,
            access: Access::of(&CredentialHeaders::default(), |_| []),
            policy: OrphanPolicy::Continue,
            request_id: String::new(),
            created,
            retry: None,
        };
        let window = Window::new(id, Epoch::FIRST, created, WindowConfig::default());
        let handle = Handle::new(spec, window);
        handle.bind(backend);
        handle
    }

    #[test]
    fn calls_that_overlap_share_what_they_have_asked() {
        let drains = Drains::default();
        let first = drains.of("a");
        assert!(Arc::ptr_eq(&first, &drains.of("a")));
        assert!(!Arc::ptr_eq(&first, &drains.of("b")));
        drains.forget("a");
        assert!(!Arc::ptr_eq(&first, &drains.of("a")), "it was undrained");
        drop(first);
        assert_eq!(drains.of("a").lock().len(), 0);
    }

    #[tokio::test]
    async fn nobody_is_asked_twice() {
        let (asking, tasks) = (Arc::new(Asking::default()), TaskTracker::new());
        let handle = at("a");
        for _ in 0..3 {
            asking.ask(&tasks, "a", &handle);
        }
        assert_eq!(tasks.len(), 1);
        let Drained {
            moved,
            remaining,
            other_requests,
            ..
        } = asking.stands("a", &[handle], 3, false);
        assert_eq!((moved, remaining.len(), other_requests), (0, 1, 2));
        assert!(remaining[0].reason.contains("not known yet"));
    }

    #[tokio::test]
    async fn who_has_left_by_itself_is_not_asked() {
        let (asking, tasks) = (Arc::new(Asking::default()), TaskTracker::new());
        let mut news = asking.news.subscribe();
        let handle = at("a");
        asking.ask(&tasks, "a", &handle);
        // Its first backend has failed before its turn came.
        handle.bind("b");
        news.changed().await.expect("it is kept");
        let stands = asking.stands("a", &[], 0, false);
        assert_eq!((stands.moved, stands.remaining.len()), (0, 0));
        assert!(matches!(asking.lock()[&handle.spec().id], Told::Gone));
    }

    #[test]
    fn what_became_of_each_is_told() {
        let asking = Asking::default();
        let stays = Report::Stays {
            judged: Judged {
                verdicts: vec![
                    Verdict {
                        gate: Gate::Policy,
                        refusal: None,
                    },
                    Verdict {
                        gate: Gate::Seam,
                        refusal: Some("there is none".to_owned()),
                    },
                ],
                ..Judged::default()
            },
            reason: "it stays".to_owned(),
        };
        let moved = || Report::Moved {
            from: "a".to_owned(),
            to: "b".to_owned(),
            method: Some(Method::TokenIds),
        };
        let (one, other, gone) = (at("a"), at("b"), at("a"));
        for (handle, report) in [(&one, stays), (&other, moved()), (&gone, Report::Over)] {
            asking.lock().insert(handle.spec().id, report.into());
        }
        let stands = asking.stands("a", &[one, gone], 2, false);
        assert_eq!((stands.moved, stands.other_requests), (1, 0));
        let mut told: Vec<_> = stands
            .remaining
            .iter()
            .map(|one| (one.reason.as_str(), one.gates.len()))
            .collect();
        // In the order of their ids, which are drawn.
        told.sort_unstable();
        assert_eq!(told, [("it is about to end", 0), ("it stays", 1)]);
    }

    #[test]
    fn who_has_just_left_has_moved_and_is_not_there_as_well() {
        let asking = Asking::default();
        let (awaited, told) = (at("a"), at("a"));
        let bound = [Arc::clone(&awaited), Arc::clone(&told)];
        let nothing = Told::Nothing(Arc::clone(&awaited));
        asking.lock().insert(awaited.spec().id, nothing);
        // Both leave when it was looked who is there; one of them has said so.
        awaited.bind("b");
        told.bind("b");
        asking.lock().insert(told.spec().id, Told::Moved);
        let stands = asking.stands("a", &bound, 2, false);
        assert_eq!((stands.moved, stands.remaining.len()), (2, 0));
        let stands = asking.stands("a", &[], 0, false);
        assert_eq!((stands.moved, stands.remaining.len()), (2, 0));
    }
}
