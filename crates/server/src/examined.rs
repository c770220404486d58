//! What was found out about the backends that may take over from each other (protocol.md 8.8).
//!
//! Each is asked as soon as it may take attempts, and again when it has been away or says that it is another than before.
//! Until that is done nothing is known of it, and the gates refuse. An attempt keeps what was known of its backend: whoever goes on is compared
//! with that.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use streamweld_generation::migration::Policy;
use streamweld_upstream::examine::{Examination, Likeness, Subject, examine, identify};
use streamweld_upstream::fleet::{Engine, Member, MemberId, MemberState};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::app::App;

/// How often a backend is asked whether it is still the same, and one that did not answer all is asked again.
const AGAIN: Duration = Duration::from_secs(30);

/// The verdicts of one server.
#[derive(Default)]
pub(crate) struct Examined(Mutex<HashMap<MemberId, Record>>);

/// One backend.
#[derive(Default)]
struct Record {
    stay: Stay,
    known: Option<Known>,
}

/// Which of its stays a backend is in: how often it has been away. What was asked in one says nothing of the next, for it may
/// be another backend then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stay(u64);

struct Known {
    examination: Arc<Examination>,
    /// What of it is compared with others.
    likeness: Arc<Likeness>,
    /// When it was last seen to be the same.
    seen: Instant,
}

impl Examined {
    /// What is known of a backend as it is now.
    pub(crate) fn now(&self, id: MemberId) -> Option<Arc<Examination>> {
        let records = self.lock();
        let known = records.get(&id)?.known.as_ref()?;
        Some(Arc::clone(&known.examination))
    }

    /// What of that is compared with others.
    pub(crate) fn likeness(&self, id: MemberId) -> Option<Arc<Likeness>> {
        let records = self.lock();
        let known = records.get(&id)?.known.as_ref()?;
        Some(Arc::clone(&known.likeness))
    }

    /// Whether it has to be asked.
    fn is_due(&self, id: MemberId) -> bool {
        let records = self.lock();
        let known = records.get(&id).and_then(|record| record.known.as_ref());
        known.is_none_or(|known| known.seen.elapsed() >= AGAIN)
    }

    /// It is about to be asked.
    fn begin(&self, id: MemberId) -> Stay {
        self.lock().entry(id).or_default().stay
    }

    /// Nothing is known of it any more, and whoever asks it now has asked in vain.
    fn is_away(&self, id: MemberId) {
        let mut records = self.lock();
        let record = records.entry(id).or_default();
        record.stay.0 += 1;
        record.known = None;
    }

    /// Keeps what was found out in a stay, if that is not over.
    fn keep(&self, id: MemberId, stay: Stay, examination: Arc<Examination>) {
        let mut records = self.lock();
        let record = records.get_mut(&id).filter(|record| record.stay == stay);
        if let Some(record) = record {
            record.known = Some(Known {
                likeness: Arc::new(Likeness::of(&examination)),
                examination,
                seen: Instant::now(),
            });
        }
    }

    fn forget_but(&self, stays: impl Fn(MemberId) -> bool) {
        self.lock().retain(|id, _| stays(*id));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MemberId, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Examines them for ever.
pub(crate) async fn look_after(app: Arc<App>) -> Infallible {
    let fleet = &app.backends.fleet;
    let mut changes = fleet.changes();
    let mut running: JoinSet<MemberId> = JoinSet::new();
    let mut under_way = Vec::new();
    loop {
        let members = fleet.members();
        // DNS gives new ones for ever; whoever is gone is not asked after.
        app.examined
            .forget_but(|id| members.iter().any(|(member, _)| member.id() == id));
        for (member, state) in members {
            let id = member.id();
            if !concerns(&app, &member) {
                continue;
            }
            match state {
                MemberState::Down | MemberState::Gone => app.examined.is_away(id),
                // One that is not probed stays so, and one whose attempts fail may be another when it is back.
                MemberState::Quarantined => app.examined.is_away(id),
                MemberState::Draining => {}
                MemberState::Starting | MemberState::Up => {
                    if !under_way.contains(&id) && app.examined.is_due(id) {
                        under_way.push(id);
                        let app = Arc::clone(&app);
                        running.spawn(async move {
                            ask(&app, &member).await;
                            id
                        });
                    }
                }
            }
        }
        tokio::select! {
            () = changes.changed() => {}
            () = sleep(AGAIN) => {}
            Some(ended) = running.join_next(), if !running.is_empty() => match ended {
                Ok(id) => under_way.retain(|other| *other != id),
                Err(error) => tracing::error!(%error, "an examination has panicked and is not repeated"),
            },
        }
    }
}

/// Whether anything depends on what it is.
pub(crate) fn concerns(app: &App, member: &Member) -> bool {
    // Of the others no answer can be continued, whatever they show, and some cost money.
    let may_go_on = matches!(
        member.engine(),
        Engine::Vllm | Engine::Sglang | Engine::LlamaCpp | Engine::Unknown
    );
    let migration = &app.settings().migration;
    may_go_on
        && migration.policy(member.group()) != Policy::Off
        && !migration.is_vouched(member.group())
}

async fn ask(app: &App, member: &Member) {
    let stay = app.examined.begin(member.id());
    let subject = Subject::of(&app.client, member);
    let backend = member.name();
    let identity = match identify(&subject).await {
        Ok(identity) => identity,
        Err(error) => {
            tracing::debug!(backend, %error, "the backend does not say what it is");
            // Not asked again at once: whatever is wrong takes its time.
            return sleep(AGAIN / 10).await;
        }
    };
    let same = app
        .examined
        .now(member.id())
        .filter(|known| known.settled() && known.identity.digest() == identity.digest());
    let examination = match same {
        Some(known) => known,
        None => {
            let examination = Arc::new(examine(&subject, identity).await);
            tracing::info!(
                backend,
                engine = examination.identity.engine.map_or("unknown", |engine| engine.as_str()),
                settled = examination.settled(),
                chat = ?examination.chat.methods,
                completions = ?examination.completions.methods,
                messages = ?examination.messages.methods,
                "backend examined"
            );
            examination
        }
    };
    app.examined.keep(member.id(), stay, examination);
}
