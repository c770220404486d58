//! Who is alive, and what becomes of the generations of those who are not.
//!
//! Each replica gives signs of life, and has the generations that it writes on a list; every replica looks at the
//! signs of the others. One is judged dead only after it was silent throughout a whole lease of the judge's own
//! unbroken contact with the same server: a Redis that stood still for half a minute has let every sign lapse, and
//! whoever is alive gives one first when it goes on, with the same command that looks. Whoever cannot give one, because
//! the server takes no writes, does not judge. A judgement does nothing by itself: the log's own rules decide who ends
//! it, and an owner that was only out of touch is refused at its next append.
//!
//! Several replicas judge alike and are told alike. What has its end, or is gone, is taken off the list by any of them.
//! All keys of this have one hash tag, so one connection sees them all.

mod judge;
mod listed;

use std::collections::HashSet;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use streamweld_journal::{Epoch, Notice, Ownerless, Replica, StreamId, Unreachable};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::journal::Inner;
use crate::link::Failure;
use crate::nodes::Route;
use crate::orders::parse_replica;
use crate::script;
use crate::slot::Slot;
use crate::write::millis;

use self::judge::Judge;
pub(crate) use self::listed::Listed;

/// Looks in each lease, each of them a sign of life as well.
const LOOKS: u32 = 6;
/// For how many of them a sign of life lasts: two may fail. With a whole lease of silence behind it, and a look at
/// either end, whoever is gone is judged before two leases are over, and what it left can be ended within them.
const LASTS: u32 = 3;
/// Ids in one command.
const PAGE: usize = 1000;

/// What a process says of itself.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// The others can know of it.
    announced: bool,
    /// It has said that it is gone.
    departed: bool,
}

/// Keeps this process alive in Redis, and looks at the others, until the journal is gone. A new connection is looked
/// over at once, unless the server has refused the last look.
pub(crate) async fn keep(inner: Weak<Inner>, lease: Duration, mut changes: watch::Receiver<u64>) {
    let mut looks = interval(lease / LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut judge, mut told) = (Judge::new(lease), HashSet::new());
    // Another connection may lead to older data, with logs in them that had their end.
    let mut is_reviewed = false;
    // A server that takes no writes makes its connections short, and others want to ask there too.
    let mut is_in_vain = false;
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                is_reviewed = false;
                if is_in_vain {
                    continue;
                }
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        let looked = inner.look().await;
        is_in_vain = matches!(looked, Err(Failure::Refused(_)));
        inner.looked(looked.is_err());
        let Ok((connection, silent)) = looked else {
            judge.lost_contact();
            continue;
        };
        if !is_reviewed || inner.table().listed.any_taken() {
            is_reviewed = inner.review().await;
        }
        let dead = judge.saw(Instant::now(), connection, &silent);
        inner.exchange_addresses().await;
        told.retain(|replica| dead.contains(replica));
        for replica in dead {
            if told.insert(replica) {
                tracing::warn!(replica = %name(replica), "a replica is gone; what it left goes on elsewhere, or ends");
            }
            inner.bury(replica).await;
        }
    }
}

impl Inner {
    fn presence_slot(&self) -> Slot {
        Slot::of(&self.config.prefix.replicas())
    }

    /// The way to the server that has all of this.
    pub(crate) fn household(&self) -> Route<'_> {
        self.nodes.appends(self.presence_slot())
    }

    /// A sign of life, and a look at the others. Gives the connection it went over, and who is silent.
    async fn look(&self) -> Result<(u64, Vec<Replica>), Failure> {
        // Held for as long as it takes, so that a look cannot come behind a departure.
        let mut presence = self.presence.lock().await;
        if presence.departed {
            return Err(Failure::NotSent);
        }
        let (me, prefix) = (self.owner(), &self.config.prefix);
        let (lasts, expiry) = (self.config.lease / LOOKS * LASTS, self.config.live);
        let said = script::LOOK
            .run(
                self.household(),
                &[&prefix.replicas(), &prefix.owned(self.replica())],
                &[
                    me.as_bytes(),
                    millis(lasts).as_bytes(),
                    millis(expiry).as_bytes(),
                ],
            )
            .await?;
        presence.announced = true;
        if said.word() == "lapsed" {
            self.table().listed.doubt();
        }
        self.bring_up_to_date(said.connection).await;
        let silent = said.with.iter().flatten();
        let silent = silent.filter_map(|name| parse_replica(std::str::from_utf8(name).ok()?));
        Ok((said.connection, silent.collect()))
    }

    /// Makes the list in Redis what this process writes.
    async fn bring_up_to_date(&self, connection: u64) {
        let changes = {
            let table = self.table();
            let (live, is_live) = (table.live.keys().copied(), |id| {
                table.live.contains_key(&id)
            });
            table.listed.changes(live, is_live, self.config.live)
        };
        let owned = self.config.prefix.owned(self.replica());
        let mut commands = redis::pipe();
        for (command, ids) in [("SADD", &changes.add), ("SREM", &changes.remove)] {
            for page in ids.chunks(PAGE) {
                let command = commands.cmd(command).arg(&owned);
                for id in page {
                    command.arg(id.text().as_bytes());
                }
            }
        }
        if commands.is_empty() {
            return self.table().listed.made(&changes);
        }
        let expiry = millis(self.config.live);
        commands.cmd("PEXPIRE").arg(&owned).arg(expiry);
        let answers = self.household().call_on(connection, &commands, 0).await;
        if answers.is_ok_and(|answers| answers.iter().all(Result::is_ok)) {
            self.table().listed.made(&changes);
        }
    }

    /// Looks for logs on the list of this process that it does not write, that have no end, and whose writer it is all the
    /// same: Redis has lost that end, or that another process had adopted it. Says whether there are none.
    async fn review(&self) -> bool {
        let owned = self.config.prefix.owned(self.replica());
        let mut command = redis::cmd("SMEMBERS");
        command.arg(&owned);
        let Ok(answer) = self
            .nodes
            .reads(self.presence_slot())
            .call(&command, 0)
            .await
        else {
            return false;
        };
        let strange = {
            let table = self.table();
            let mut ids: HashSet<StreamId> = ids(answer.value).into_iter().collect();
            ids.extend(table.listed.all_taken());
            ids.retain(|id| !table.is_concerned_with(*id));
            ids
        };
        let (mut over, mut is_done) = (Vec::new(), true);
        for id in strange {
            match self.reclaim(id).await {
                Some(Reclaimed::Told) => is_done = false,
                Some(Reclaimed::Over) => over.push(id),
                None => return false,
            }
        }
        for page in over.chunks(PAGE) {
            let mut command = redis::cmd("SREM");
            command.arg(&owned);
            for id in page {
                command.arg(id.text().as_bytes());
            }
            // What stays is found the next time.
            if self.household().call(&command, 0).await.is_ok() {
                let mut table = self.table();
                page.iter().for_each(|id| table.listed.seen_taken(*id));
            }
        }
        is_done
    }

    /// Has a log that names this process as its writer, and that it does not write, adopted by it, for nobody else will:
    /// to be gone on with, if another process had adopted it and that is lost, else to be ended. `None`: Redis does not
    /// answer.
    pub(crate) async fn reclaim(&self, id: StreamId) -> Option<Reclaimed> {
        let log = match self.left(id, self.replica()).await? {
            Left::Ownerless(log) => log,
            Left::Over => return Some(Reclaimed::Over),
        };
        let notice = {
            let table = self.table();
            // It may have been adopted here meanwhile, or is about to be.
            match table.is_concerned_with(id) {
                true => None,
                false if table.listed.was_taken(id) => Some(Notice::Ownerless(log)),
                false => Some(Notice::EndLost(log)),
            }
        };
        if let Some(notice) = notice {
            self.notify(id, notice);
        }
        Some(Reclaimed::Told)
    }

    /// Lists a generation as one of this process, before its log is opened or adopted. Says whether it is.
    pub(crate) async fn list(&self, id: StreamId) -> bool {
        self.table().listed.begin(id);
        let prefix = &self.config.prefix;
        let expiry = millis(self.config.live);
        let mut commands = redis::pipe();
        // Nobody looks at the list of a replica that nobody has heard of. A look is under way where this is locked.
        if self
            .presence
            .try_lock()
            .is_ok_and(|presence| !presence.announced)
        {
            let replicas = prefix.replicas();
            let mut command = redis::cmd("ZADD");
            command.arg(&replicas).arg("NX").arg(0).arg(self.owner());
            commands.add_command(command);
            commands.cmd("PEXPIRE").arg(&replicas).arg(&expiry);
        }
        let owned = prefix.owned(self.replica());
        let id = id.text();
        commands.cmd("SADD").arg(&owned).arg(id.as_bytes());
        commands.cmd("PEXPIRE").arg(&owned).arg(&expiry);
        let answers = self.household().call_all(&commands, 0).await;
        answers.is_ok_and(|answers| answers.value.iter().all(Result::is_ok))
    }

    /// Tells of everything that a dead replica has left without an end. When nothing is left, it is forgotten.
    async fn bury(&self, dead: Replica) {
        let mut command = redis::cmd("SMEMBERS");
        command.arg(self.config.prefix.owned(dead));
        let Ok(answer) = self
            .nodes
            .reads(self.presence_slot())
            .call(&command, 0)
            .await
        else {
            return;
        };
        let mut over = Vec::new();
        for id in ids(answer.value) {
            match self.left(id, dead).await {
                Some(Left::Ownerless(log)) => self.notify(id, Notice::Ownerless(log)),
                Some(Left::Over) => over.push(id),
                // Redis does not answer: another look will come.
                None => return,
            }
        }
        self.forget(dead, &over).await;
    }

    /// Takes off the list of a silent replica what is over, and the replica itself when nothing is left.
    async fn forget(&self, silent: Replica, over: &[StreamId]) {
        let prefix = &self.config.prefix;
        let (name, replicas, owned) = (name(silent), prefix.replicas(), prefix.owned(silent));
        let pages = over.chunks(PAGE).chain(over.is_empty().then_some(over));
        for page in pages {
            let ids: Vec<_> = page.iter().map(|id| id.text()).collect();
            let mut args: Vec<&[u8]> = vec![name.as_bytes()];
            args.extend(ids.iter().map(|id| id.as_bytes()));
            let keys = [&replicas[..], &owned[..]];
            match script::FORGET.run(self.household(), &keys, &args).await {
                Ok(said) if said.word() == "none" => self.forget_address(&name).await,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// What a replica has left of a generation on its list. `None`: Redis does not answer.
    async fn left(&self, id: StreamId, by: Replica) -> Option<Left> {
        let keys = self.config.prefix.keys(id);
        let mut commands = redis::pipe();
        commands
            .cmd("HMGET")
            .arg(&keys.meta)
            .arg(&["owner", "epoch", "label", "ended"]);
        commands.cmd("EXISTS").arg(&keys.log);
        let answer = self.nodes.reads(id).call_all(&commands, 0).await.ok()?;
        let [Ok(Value::Array(meta)), Ok(Value::Int(logs))] =
            <[_; 2]>::try_from(answer.value).ok()?
        else {
            return None;
        };
        let [owner, epoch, label, ended] = <[Value; 4]>::try_from(meta).ok()?;
        let is_writer = owner == Value::BulkString(name(by).into_bytes());
        if logs == 0 || ended != Value::Nil || !is_writer {
            return Some(Left::Over);
        }
        let label = match label {
            Value::BulkString(label) => Bytes::from(label),
            _ => Bytes::new(),
        };
        let epoch = match epoch {
            Value::BulkString(epoch) => String::from_utf8(epoch).ok()?.parse().ok()?,
            _ => return Some(Left::Over),
        };
        Epoch::new(epoch).map(|epoch| Left::Ownerless(Ownerless { epoch, label }))
    }

    /// The other replicas that give signs of life now.
    pub(crate) async fn others(&self) -> Result<Vec<Replica>, Unreachable> {
        let replicas = self.config.prefix.replicas();
        let said = script::ALIVE
            .run(self.household(), &[&replicas], &[])
            .await
            .map_err(|_| Unreachable)?;
        let names = said.with.iter().flatten();
        let others = names.filter_map(|name| parse_replica(std::str::from_utf8(name).ok()?));
        Ok(others.filter(|it| *it != self.replica()).collect())
    }

    /// Whether a replica gives no sign of life now. That it is dead is not said.
    pub(crate) async fn is_silent(&self, replica: Replica) -> bool {
        let mut commands = redis::pipe();
        commands.cmd("TIME");
        let replicas = self.config.prefix.replicas();
        commands.cmd("ZSCORE").arg(&replicas).arg(name(replica));
        let Ok(answer) = self.household().call_all(&commands, 0).await else {
            return false;
        };
        match &answer.value[..] {
            [Ok(_), Ok(Value::Nil)] => true,
            [Ok(time), Ok(till)] => {
                matches!((now(time), number(till)), (Some(now), Some(till)) if till <= now)
            }
            _ => false,
        }
    }

    /// Takes this process out. What it has left without an end stays on its list for the others.
    pub(crate) async fn depart(&self) {
        self.presence.lock().await.departed = true;
        let over = {
            let table = self.table();
            let is_live = |id| table.live.contains_key(&id);
            table.listed.changes([], is_live, Duration::ZERO).remove
        };
        let mut command = redis::cmd("ZADD");
        let replicas = self.config.prefix.replicas();
        command.arg(&replicas).arg("XX").arg(0).arg(self.owner());
        if self.household().call(&command, 0).await.is_ok() {
            self.forget(self.replica(), &over).await;
        }
    }
}

/// What a dead replica has left of a generation.
enum Left {
    /// Nothing to do: it has an end, or another writer, or never was.
    Over,
    Ownerless(Ownerless),
}

/// What became of a generation that this process does not write, and may have to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reclaimed {
    /// Nothing has to: it has an end, or another writer, or is gone.
    Over,
    /// Whoever takes notices was told, or has begun already.
    Told,
}

fn name(replica: Replica) -> String {
    format!("{:032x}", replica.0)
}

/// The answer to TIME in milliseconds.
fn now(time: &Value) -> Option<f64> {
    let Value::Array(parts) = time else {
        return None;
    };
    let [secs, micros] = &parts[..] else {
        return None;
    };
    Some(number(secs)? * 1e3 + (number(micros)? / 1e3).floor())
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn ids(value: Value) -> Vec<StreamId> {
    let (Value::Array(values) | Value::Set(values)) = value else {
        return Vec::new();
    };
    let id = |value| match value {
        Value::BulkString(id) => StreamId::parse(std::str::from_utf8(&id).ok()?).ok(),
        _ => None,
    };
    values.into_iter().filter_map(id).collect()
}
