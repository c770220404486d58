//! The way to the owner of a generation that does not lead through Redis, for while that is away.
//!
//! How replicas reach each other is somebody else's business: a [`Relay`] is given to the journal. Here is whom to ask,
//! and what is asked. Each replica that has one says in Redis where it is reached, and knows of all others what it read
//! there last. What is given by the owner is what its own readers see at that moment: entries that stand, and after them,
//! while it is degraded, such as may not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use redis::Value;
use streamweld_journal::{Access, Call, Epoch, Replica, Seq, StreamId};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::find::Meta;
use crate::journal::Inner;
use crate::orders::parse_replica;
use crate::write::millis;

/// How this replica asks others, and where they ask it.
pub trait Relay: Send + Sync + 'static {
    /// Where others reach this replica, as `host:port`.
    fn address(&self) -> &str;

    /// Asks the replica at `address`. The answer comes, or does not, within a few seconds.
    fn ask(&self, address: &str, ask: Ask) -> Call<'static, Result<Answer, NoAnswer>>;
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The generation.
    pub id: StreamId,
    /// What comes after this entry.
    pub after: Seq,
    /// Only if this is its writer, because what comes before is known from that. `None`: nothing is known of it, and the
    /// answer has to say what it is [about](Answer::about).
    pub writer: Option<Epoch>,
}

/// The owner tells of a generation, from here on until it is dropped.
pub struct Answer {
    /// What it is, where that was asked for.
    pub about: Option<About>,
    /// What comes.
    pub telling: Box<dyn Telling>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

/// What the log of a generation says of it beside its entries.
#[derive(Clone, PartialEq, Eq)]
pub struct About {
    /// What a caller must match.
    pub access: Access,
    /// When it began.
    pub created: SystemTime,
    /// What its window keeps beside the entries.
    pub label: Bytes,
    /// Its writer.
    pub epoch: Epoch,
}

impl fmt::Debug for About {
    /// Leaves the digest out: it is made from a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("About").finish_non_exhaustive()
    }
}

/// What the owner tells, one after the other.
pub trait Telling: Send {
    /// The next. `None`: nothing more comes, whyever.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>>;
}

/// Some entries, as a [record](crate::record).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// They are committed. Otherwise they are shown without ids.
    pub stands: bool,
    /// Everything through this entry is.
    pub committed: Seq,
    /// The record. A mark is the first of each answer.
    pub record: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It does not write that, or not under this epoch.
    #[error("the replica does not write this generation")]
    NotHere,
    /// It is out of reach, or does not answer in time.
    #[error("the replica is out of reach")]
    Unreachable,
}

/// Where the other replicas are reached, as far as is known.
#[derive(Default)]
pub(crate) struct Peers(Mutex<BTreeMap<Replica, String>>);

impl Peers {
    fn replace(&self, peers: BTreeMap<Replica, String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    fn all(&self) -> BTreeMap<Replica, String> {
        let peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.clone()
    }
}

/// Tells a follower when Redis may have gone away or come back.
pub(crate) struct Touch {
    looks: watch::Receiver<bool>,
    changes: watch::Receiver<u64>,
}

impl Touch {
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn changed(&mut self) {
        // The senders are in the journal. Without it whoever waits has ended.
        tokio::select! {
            _ = self.looks.changed() => {}
            _ = self.changes.changed() => {}
        }
    }
}

impl Inner {
    /// `None` without a relay: then nobody needs to know.
    pub(crate) fn touch(&self) -> Option<Touch> {
        self.config.relay.as_ref()?;
        Some(Touch {
            looks: self.away.subscribe(),
            changes: self.nodes.changes(),
        })
    }

    /// Redis does not do what this replica asks of it, or whoever has this generation is not connected.
    pub(crate) fn is_away(&self, id: StreamId) -> bool {
        let [appends, reads] = [self.nodes.appends(id), self.nodes.reads(id)];
        *self.away.borrow() || appends.connection().is_none() || reads.connection().is_none()
    }

    /// Redis has answered a look, or has not.
    pub(crate) fn looked(&self, is_away: bool) {
        self.away
            .send_if_modified(|was| std::mem::replace(was, is_away) != is_away);
    }

    /// Says where this replica is reached, and reads where the others are.
    pub(crate) async fn exchange_addresses(&self) {
        let Some(relay) = &self.config.relay else {
            return;
        };
        let relays = self.config.prefix.relays();
        let mut commands = redis::pipe();
        let address = relay.address();
        commands
            .cmd("HSET")
            .arg(&relays)
            .arg(self.owner())
            .arg(address);
        let expiry = millis(self.config.live);
        commands.cmd("PEXPIRE").arg(&relays).arg(expiry);
        commands.cmd("HGETALL").arg(&relays);
        let Ok(answer) = self.household().call_all(&commands, 0).await else {
            return;
        };
        if let Some(Ok(all)) = answer.value.into_iter().nth(2) {
            let mut peers = addresses(all);
            peers.remove(&self.replica());
            self.peers.replace(peers);
        }
    }

    /// A replica is not reached any more.
    pub(crate) async fn forget_address(&self, name: &str) {
        if self.config.relay.is_none() {
            return;
        }
        let mut command = redis::cmd("HDEL");
        command.arg(self.config.prefix.relays()).arg(name);
        // Else it is asked in vain.
        _ = self.household().call(&command, 0).await;
    }

    /// Asks for a generation: the replica that is thought to own it, and where that does not answer all others at once.
    pub(crate) fn ask_relays(
        &self,
        owner: Option<Replica>,
        ask: Ask,
    ) -> Call<'static, Option<(Replica, Answer)>> {
        let Some(relay) = self.config.relay.clone() else {
            return Call::answered(None);
        };
        let mut peers = self.peers.all();
        let owner = owner.and_then(|owner| peers.remove_entry(&owner));
        Call::under_way(async move {
            if let Some((owner, address)) = owner {
                if let Ok(answer) = relay.ask(&address, ask).await {
                    return Some((owner, answer));
                }
            }
            let mut asked = JoinSet::new();
            for (replica, address) in peers.into_iter().take(MOST) {
                let relay = relay.clone();
                asked.spawn(async move { (replica, relay.ask(&address, ask).await) });
            }
            while let Some(answered) = asked.join_next().await {
                if let Ok((replica, Ok(answer))) = answered {
                    return Some((replica, answer));
                }
            }
            None
        })
    }

    /// Looks a generation up at whoever writes it. Its window begins as early as the owner's: what lies before could not
    /// be read from Redis.
    pub(crate) async fn find_by_relay(&self, id: StreamId) -> Option<(Meta, Box<dyn Telling>)> {
        let ask = Ask {
            id,
            after: Seq::ZERO,
            writer: None,
        };
        let told = self.ask_relays(None, ask).await;
        let told = told.and_then(|(owner, answer)| {
            let meta = Meta::told(answer.about?, owner);
            Some((meta, answer.telling))
        });
        if told.is_none() && self.config.relay.is_some() {
            // Whoever asks is held and asks again, and anybody can ask for anything.
            sleep(AGAIN).await;
        }
        told
    }
}

/// What HGETALL answers. What is not understood is of a later version.
fn addresses(all: Value) -> BTreeMap<Replica, String> {
    let all: Vec<(String, String)> = redis::from_redis_value(all).unwrap_or_default();
    let read = |(name, address): (String, String)| Some((parse_replica(&name)?, address));
    all.into_iter().filter_map(read).collect()
}

/// How many replicas are asked at once.
const MOST: usize = 64;
/// How soon replicas may be asked again for something that none of them has.
const AGAIN: Duration = Duration::from_millis(500);
