//! Going on with what other replicas have begun (protocol.md 8.9).
//!
//! ```text
//! a replica is gone ──> who can serve it adopts first, who cannot a little later ──> the gates ──> goes on, or ends it
//! a replica leaves ──> offers one ──> the gates, and another backend's seam ──> adopts it
//! ```

mod age;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_dialect::Dialect;
use streamweld_generation::migration::Policy;
use streamweld_generation::{
    EndAs, Estate, Handle, Keep, Label, Leg, Onward, OrphanPolicy, Producer, Spec, Taken,
    TakenOver, adopt, take_over,
};
use streamweld_journal::{
    Epoch, Found, Ownerless as Log, Replica, Seq, StreamId, Tail, Window, WindowConfig, Word,
};
use streamweld_upstream::fleet::MemberId;
use tokio::time::sleep;

use self::age::age;
use crate::app::App;
use crate::attempts::{Attempts, Others};
use crate::kept::{Kept, KeptFacts};
use crate::request_body::RequestBody;
use crate::source::AttemptSource;
use crate::traced::Generation;

impl App {
    /// Keeps the request of a generation for other replicas, at each of its attempts. `None`: there are none.
    pub(crate) fn keeps(self: &Arc<Self>, attempts: &Arc<Attempts>) -> Option<Keep> {
        self.shared.journal.replica()?;
        let (app, attempts) = (Arc::clone(self), Arc::clone(attempts));
        Some(Arc::new(move |leg: &Leg| {
            if leg.policy == Policy::Off {
                return;
            }
            let Some(stored) = app.stored(&attempts, leg) else {
                return;
            };
            let (app, id) = (Arc::clone(&app), attempts.handle().spec().id);
            // Nobody waits for it: without it another replica can end the answer, and not go on with it.
            app.producers.clone().spawn(async move {
                let kept = app.shared.journal.keep_request(id, stored).await;
                if kept.is_err() {
                    tracing::debug!(stream_id = %id, "its request is not kept for other replicas");
                }
            });
        }))
    }

    fn stored(&self, attempts: &Attempts, leg: &Leg) -> Option<bytes::Bytes> {
        let (handle, settings) = (attempts.handle(), self.settings());
        let former = attempts.former(MemberId::of(leg.member))?;
        let facts = KeptFacts::of(
            handle,
            attempts.request(),
            (leg, &former),
            attempts.callers(),
            (&self.credentials, settings.journal.keep_credentials),
        );
        let kept = Kept {
            facts,
            body: attempts.body()?,
        };
        kept.store(handle.spec().id, &settings.journal)
    }
}

/// How much later than others a replica goes on with what it has no backend for.
const LATER: Duration = Duration::from_secs(1);

/// Goes on with a generation whose owner is gone, or ends it.
pub(crate) async fn succeed_lost(app: &Arc<App>, id: StreamId, log: &Log) -> TakenOver {
    let keep_on = || !app.is_shutting_down();
    let Some(kept) = kept(app, id).await.filter(|_| keep_on()) else {
        return end(app, id, log, &EndAs::OwnerLost).await;
    };
    if !serves(app, &kept.facts) {
        // Of several who are told, let those be first who have such a backend.
        sleep(LATER).await;
    }
    let epoch = log.epoch.fresh();
    let epochs = (log.epoch, epoch);
    let last = match adopt(&*app.shared.journal, id, epochs, None, keep_on).await {
        Ok(last) => last,
        Err(outcome) => return outcome,
    };
    tracing::info!(stream_id = %id, entries = last.get(), "a generation is taken over from a replica that is gone");
    let Some(heir) = Heir::new(app, id, &log.label, kept, (epoch, last)).await else {
        let label = log.label.clone();
        return end(app, id, &Log { epoch, label }, &EndAs::OwnerLost).await;
    };
    let Heir {
        producer,
        estate,
        onward,
        traced,
    } = heir;
    app.producers.spawn(async move {
        producer.succeed_lost(estate, onward).await;
        drop(traced);
    });
    TakenOver::Ended
}

/// Ends a generation that nobody writes, where nobody goes on with it.
pub(crate) async fn end(app: &Arc<App>, id: StreamId, log: &Log, how: &EndAs) -> TakenOver {
    let keep_on = || !app.is_shutting_down();
    let traced = app.traces.inherit(id, &log.label, None);
    let outcome = take_over(&app.shared, id, log, how, keep_on).await;
    drop(traced);
    outcome
}

/// Looks into what another replica offers.
pub(crate) fn offered(app: &Arc<App>, id: StreamId, from: Replica, epoch: Epoch, last: Seq) {
    let app = Arc::clone(app);
    app.producers.clone().spawn(async move {
        let word = consider(&app, id, from, epoch, last).await;
        if let Some(why) = word {
            let word = Word::Declines { epoch, why };
            // Whoever hears nothing reads on as well.
            let _ = app.shared.journal.say(from, id, word).await;
        }
    });
}

/// Goes on with it. Otherwise says why not, in words that may be passed on; none where nobody has to be told.
async fn consider(
    app: &Arc<App>,
    id: StreamId,
    from: Replica,
    epoch: Epoch,
    last: Seq,
) -> Option<String> {
    let no = |why: &str| Some(why.to_owned());
    if app.is_shutting_down() {
        return no("shutting_down");
    }
    if app.shared.registry.find(id).is_some() {
        return no("owned_here");
    }
    let journal = &app.shared.journal;
    if journal
        .say(from, id, Word::Considers { epoch })
        .await
        .is_err()
    {
        return None;
    }
    let Some(kept) = kept(app, id).await else {
        return no("request_not_kept");
    };
    if !serves(app, &kept.facts) {
        return no("compatibility");
    }
    let stands = journal.tail(id).await;
    let is_as_offered = matches!(stands, Ok(Tail::Last { epoch: by, last: at, terminal: false, .. })
        if by == epoch && at == last);
    if !is_as_offered {
        return no("moved_on");
    }
    let now = SystemTime::now();
    let Ok(Found::Here { window, .. }) = journal.find_after(id, last, now).await else {
        return no("moved_on");
    };
    let label = window.label();
    let Some(heir) = Heir::new(app, id, &label, kept, (epoch.fresh(), last)).await else {
        return no("journal_unavailable");
    };
    let Heir {
        producer,
        estate,
        onward,
        traced: _traced,
    } = heir;
    match producer.succeed_living(epoch, estate, onward).await {
        Taken::Yes => None,
        Taken::NotOurs => no("moved_on"),
        Taken::Declined(judged) => {
            let gates: Vec<&str> = judged.refusing().map(|gate| gate.as_str()).collect();
            no(match gates.is_empty() {
                true => "backend_available",
                false => return Some(gates.join(",")),
            })
        }
    }
}

/// A producer of what another replica has begun, and what it needs.
struct Heir {
    producer: Producer,
    estate: Estate,
    onward: Onward<AttemptSource>,
    /// How it is followed in traces, for as long as somebody holds this.
    traced: Option<Arc<Generation>>,
}

impl Heir {
    /// Behind `last`, under `epoch`. `None`: what has to be known is not there.
    async fn new(
        app: &Arc<App>,
        id: StreamId,
        label: &bytes::Bytes,
        kept: Kept,
        (epoch, last): (Epoch, Seq),
    ) -> Option<Self> {
        let journal = &app.shared.journal;
        let told: Label = serde_json::from_slice(label).ok()?;
        let dialect: Dialect = told.open.dialect.parse().ok()?;
        let policy: OrphanPolicy = told.open.orphan_policy.parse().ok()?;
        let Kept { facts, body } = kept;
        let request = facts.request()?;
        let created = facts.created();
        let window = Window::new(
            id,
            epoch,
            created,
            WindowConfig {
                max_bytes: app.settings().journal.per_generation,
            },
        );
        window.begin_after(last);
        window.set_label(label.clone());
        window.set_earlier(journal.earlier(id)?);
        let beside = journal.beside(id, last).await.ok()?;
        let spec = Spec {
            id,
            dialect,
            model: facts.model.clone(),
            access: facts.access(),
            policy,
            request_id: told.open.request_id,
            created,
            retry: None,
        };
        let age = age(journal, id, created, last).await;
        let handle = Handle::inherited(spec, window, age);
        let target = request.uri().path_and_query();
        let seen = RequestBody::kept(body.clone(), target, journal);
        seen.seen_whole(Arc::clone(&handle));
        let former = facts.former();
        let group: Option<Arc<str>> = facts.group.as_deref().map(Arc::from);
        let leg = Leg {
            backend: Arc::from(facts.backend.as_str()),
            member: former.id.get(),
            policy: app.settings().migration.policy(group.as_deref()),
            group,
            engine: facts.engine,
            added: None,
        };
        let attempts = Attempts::inherited(
            Arc::clone(app),
            Arc::clone(&handle),
            request,
            facts.callers(),
            RequestBody::keep(body, journal),
            former,
        );
        let onward = Onward {
            again: None,
            backends: Some(Arc::new(Others(Arc::clone(&attempts)))),
            keep: app.keeps(&attempts),
        };
        Some(Self {
            producer: Producer::heir(app.shared(), handle),
            estate: Estate {
                leg,
                attempts: facts.attempts,
                told: beside,
            },
            onward,
            traced: attempts.generation(),
        })
    }
}

/// What was kept of its request, where that can be read.
async fn kept(app: &App, id: StreamId) -> Option<Kept> {
    let stored = app.shared.journal.kept_request(id).await.ok()??;
    let kept = Kept::load(id, &stored, &app.settings().journal.request_keys);
    if kept.is_none() {
        tracing::warn!(stream_id = %id, "what was kept of its request cannot be opened here, so this replica cannot go on with it: every replica needs the same --request-key-file, and while keys are replaced the old one behind the new");
    }
    kept
}

/// Whether there is a backend here that could go on.
fn serves(app: &App, facts: &KeptFacts) -> bool {
    let group = facts.group.as_deref();
    let members = app.backends.fleet.members();
    group.is_some() && members.iter().any(|(member, _)| member.group() == group)
}
