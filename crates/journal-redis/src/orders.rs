//! Orders from one replica to the one that writes a generation.
//!
//! An order is written first and published then, on the one channel that its writer listens to. A stop stays in the
//! meta hash; whoever follows stays in the set of readers. So a writer that was out of touch looks at both, for all
//! of its generations, each time its subscription is renewed, and nothing that was ordered is lost.
//!
//! The same channel tells a writer that its generation was taken from it; which it finds as well when it looks. And what
//! replicas say to each other when one of them hands a generation over, which is written nowhere.
//!
//! One task of the journal listens. Readers that come and go are also what tells the writer whether to publish.

mod message;

use std::sync::{Arc, Weak};
use std::time::Duration;

use streamweld_journal::{Epoch, Notice, Order, Ordered, Replica, StreamId, Unreachable, Word};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::feed::Heard;
use crate::journal::Inner;
use crate::link::Failure;
use crate::nodes::Listener;
use crate::script::{self, Said};
use crate::slot::Slot;

use self::message::Message;

/// Where orders come from: those that were given, and the wish to look for some.
pub(crate) struct Orders {
    given: mpsc::Sender<(StreamId, Notice)>,
    taken: tokio::sync::Mutex<mpsc::Receiver<(StreamId, Notice)>>,
    look: mpsc::Sender<StreamId>,
}

/// Generations that are to be looked at.
pub(crate) type Looks = mpsc::Receiver<StreamId>;

impl Orders {
    pub(crate) fn new() -> (Self, Looks) {
        let (given, taken) = mpsc::channel(QUEUE);
        let (look, looks) = mpsc::channel(QUEUE);
        let taken = tokio::sync::Mutex::new(taken);
        let orders = Self { given, taken, look };
        (orders, looks)
    }

    /// Asks the listening task to look what waits for a generation. What it has no room for it finds at its next
    /// renewal, or with the next word of a follower.
    pub(crate) fn look(&self, id: StreamId) {
        _ = self.look.try_send(id);
    }

    pub(crate) async fn next(&self) -> (StreamId, Notice) {
        match self.taken.lock().await.recv().await {
            Some(order) => order,
            // The sender is beside the receiver, so this is never.
            None => std::future::pending().await,
        }
    }
}

/// Listens until the journal is gone.
pub(crate) async fn listen(
    inner: Weak<Inner>,
    mut subscription: Listener,
    mut looks: Looks,
    mut changes: watch::Receiver<u64>,
) {
    let mut lapses = interval(Duration::from_secs(1));
    lapses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut ends, mut connections) = (JoinSet::new(), 0);
    loop {
        let event = tokio::select! {
            heard = subscription.next() => match heard {
                Some(heard) => Event::Heard(heard),
                None => return,
            },
            Some(id) = looks.recv() => Event::Look(id),
            Ok(()) = changes.changed() => Event::Change,
            _ = lapses.tick() => Event::Tick,
        };
        let Some(inner) = inner.upgrade() else {
            return;
        };
        match event {
            Event::Heard(Heard::Message(message)) => match message::parse(&message) {
                Some((id, Message::Order(order))) => inner.ordered(id, order),
                Some((id, Message::Taken(by))) => inner.taken(id, by),
                Some((id, Message::Said { from, word })) => {
                    inner.notify(id, Notice::Said { from, word });
                }
                None => tracing::debug!("an order that nobody here understands"),
            },
            Event::Heard(Heard::Renewed) => inner.look_at_all().await,
            Event::Look(id) => inner.look_at(id).await,
            Event::Change => {
                inner.tell_owed();
                let now = *changes.borrow();
                if std::mem::replace(&mut connections, now) != now {
                    inner.table().doubt_ends();
                }
            }
            Event::Tick => {
                inner.lapse();
                inner.tell_owed();
                while ends.try_join_next().is_some() {}
                if ends.is_empty() && !inner.table().doubted_ends().is_empty() {
                    ends.spawn(Arc::clone(&inner).look_after_ends());
                }
            }
        }
    }
}

enum Event {
    Heard(Heard),
    Look(StreamId),
    /// A connection was made or lost, or a slot has moved.
    Change,
    Tick,
}

impl Inner {
    /// Gives an order to whoever writes the generation.
    pub(crate) async fn order(&self, id: StreamId, order: Order) -> Result<Ordered, Unreachable> {
        let admin = match order {
            Order::Stop { admin } => admin,
            Order::Readers { replica, any: true } => {
                return Ok(match self.register(id, replica).await? {
                    Registered::Yes => Ordered::Passed,
                    Registered::Ended | Registered::Vanished => Ordered::NoWriter,
                });
            }
            Order::Readers {
                replica,
                any: false,
            } => {
                self.unregister(id, replica).await;
                return Ok(Ordered::Passed);
            }
        };
        let keys = self.config.prefix.keys(id);
        let admin = if admin { "1" } else { "0" };
        let said = script::STOP
            .run(
                self.nodes.appends(id),
                &[&keys.log, &keys.meta],
                &[admin.as_bytes()],
            )
            .await
            .map_err(|_| Unreachable)?;
        if said.word() != "ok" {
            return Ok(Ordered::NoWriter);
        }
        let Some(writer) = writer(&said) else {
            return Ok(Ordered::Passed);
        };
        // Whoever stops it may fence it: that needs no proof that its writer is dead.
        if self.is_silent(writer).await {
            return Ok(Ordered::NoWriter);
        }
        // It is written, and who asks again writes the same.
        let told = self.tell(writer, format!("stop {id} {admin}")).await;
        told.map(|()| Ordered::Passed).map_err(|_| Unreachable)
    }

    /// Lets the writer know that `replica` follows.
    pub(crate) async fn register(
        &self,
        id: StreamId,
        replica: Replica,
    ) -> Result<Registered, Unreachable> {
        let keys = self.config.prefix.keys(id);
        let lease = crate::write::millis(crate::readers::LEASE);
        let name = format!("{:032x}", replica.0);
        let said = script::FOLLOW
            .run(
                self.nodes.reads(id),
                &[&keys.log, &keys.meta, &keys.readers],
                &[name.as_bytes(), lease.as_bytes()],
            )
            .await
            .map_err(|_| Unreachable)?;
        match said.word() {
            "ok" => {
                if let Some(writer) = writer(&said) {
                    // Should it not hear this, it hears the next.
                    _ = self.tell(writer, format!("readers {id} {name} 1")).await;
                }
                Ok(Registered::Yes)
            }
            "ended" => Ok(Registered::Ended),
            "vanished" => Ok(Registered::Vanished),
            _ => Err(Unreachable),
        }
    }

    /// The other way round; if Redis is away, the registration lapses.
    pub(crate) async fn unregister(&self, id: StreamId, replica: Replica) {
        let keys = self.config.prefix.keys(id);
        let name = format!("{:032x}", replica.0);
        let said = script::LEAVE
            .run(
                self.nodes.reads(id),
                &[&keys.meta, &keys.readers],
                &[name.as_bytes()],
            )
            .await;
        if let Some(writer) = said.ok().as_ref().and_then(writer) {
            _ = self.tell(writer, format!("readers {id} {name} 0")).await;
        }
    }

    /// Publishes a word to a replica. Scripts do not, because in a cluster its channel lies elsewhere than the
    /// generation.
    async fn tell(&self, replica: Replica, word: String) -> Result<(), Failure> {
        let channel = self.config.prefix.orders(replica);
        let mut command = redis::cmd(self.nodes.publish());
        command.arg(&channel).arg(word);
        let route = self.nodes.reads(Slot::of(&channel));
        route.call(&command, 0).await.map(|_| ())
    }

    /// Says something to a replica; whether it listens is not known.
    pub(crate) async fn say(
        &self,
        to: Replica,
        id: StreamId,
        word: &Word,
    ) -> Result<(), Unreachable> {
        let said = message::said(self.replica(), id, word);
        self.tell(to, said).await.map_err(|_| Unreachable)
    }

    /// Lets the writer before know that this process has adopted a generation, and waits for nothing: it may be gone,
    /// and if it is not, it is refused at its next append.
    pub(crate) fn tell_taken(&self, id: StreamId, by: Epoch, from: Replica) {
        let channel = self.config.prefix.orders(from);
        let route = self.nodes.appends(Slot::of(&channel));
        let Some(connection) = route.connection() else {
            return;
        };
        let mut command = redis::cmd(self.nodes.publish());
        command.arg(&channel).arg(format!("taken {id} {by}"));
        let call = route.call_later(connection, command, 0);
        self.publishes.begin(async move { _ = call.await });
    }

    /// An order for this process.
    fn ordered(&self, id: StreamId, order: Order) {
        let is_news = {
            let mut table = self.table();
            let Some(live) = table.live.get_mut(&id) else {
                drop(table);
                // Whoever sends this has read in the log that this process writes it.
                return self.orders.look(id);
            };
            match order {
                Order::Stop { .. } => true,
                Order::Readers { replica, any: true } => live.readers.came(replica),
                Order::Readers {
                    replica,
                    any: false,
                } => live.readers.left(replica),
            }
        };
        if !is_news {
            return;
        }
        if matches!(order, Order::Readers { any: true, .. }) {
            self.tell_readers(id);
        }
        self.give(id, order);
    }

    /// Another replica has adopted, under this epoch, what this process may still take for its own.
    fn taken(&self, id: StreamId, by: Epoch) {
        {
            let mut table = self.table();
            if table.live.get(&id).is_none_or(|live| live.epoch >= by) {
                return;
            }
            table.fenced(id);
        }
        self.is_fenced();
        self.notify(id, Notice::Taken);
    }

    /// Never waits: nobody may take orders here.
    fn give(&self, id: StreamId, order: Order) {
        self.notify(id, Notice::Order(order));
    }

    pub(crate) fn notify(&self, id: StreamId, notice: Notice) {
        if self.orders.given.try_send((id, notice)).is_err() {
            tracing::warn!(stream_id = %id, "a notice is not taken by anybody");
        }
    }

    async fn look_at_all(&self) {
        let ids: Vec<StreamId> = self.table().live.keys().copied().collect();
        for id in ids {
            self.look_at(id).await;
        }
    }

    async fn look_at(&self, id: StreamId) {
        let keys = self.config.prefix.keys(id);
        let said = script::PENDING
            .run(self.nodes.reads(id), &[&keys.meta, &keys.readers], &[])
            .await;
        let Ok(said) = said else {
            // The listener is renewed again when Redis is back, or a follower speaks up.
            return;
        };
        let part = |place: usize| said.with.get(place).and_then(Option::as_deref);
        let text = |place: usize| std::str::from_utf8(part(place)?).ok();
        let epoch = text(3).and_then(|epoch| Epoch::new(epoch.parse().ok()?));
        if let (Some(writer), Some(epoch)) = (text(2), epoch) {
            if writer != self.owner() {
                return self.taken(id, epoch);
            }
        }
        let is_live = self.table().live.contains_key(&id);
        if !is_live {
            _ = self.reclaim(id).await;
            return;
        }
        if let Some(admin) = part(0) {
            let admin = admin == b"1";
            self.ordered(id, Order::Stop { admin });
        }
        let readers = String::from_utf8_lossy(part(1).unwrap_or_default());
        for replica in readers.split(' ').filter_map(parse_replica) {
            let any = true;
            self.ordered(id, Order::Readers { replica, any });
        }
    }

    fn lapse(&self) {
        let left = self.table().left();
        for (id, replica) in left {
            let any = false;
            self.give(id, Order::Readers { replica, any });
        }
    }
}

/// Whom a script has named as the writer.
fn writer(said: &Said) -> Option<Replica> {
    let name = said.with.first()?.as_deref()?;
    parse_replica(std::str::from_utf8(name).ok()?)
}

/// How the registration of a follower went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    Yes,
    /// The log has its end.
    Ended,
    /// There is no such log any more.
    Vanished,
}

pub(crate) fn parse_replica(word: &str) -> Option<Replica> {
    let number = u128::from_str_radix(word, 16).ok()?;
    (word.len() == 32).then_some(Replica(number))
}

/// Orders that wait to be taken: a stop of every generation of a large replica.
const QUEUE: usize = 4096;
