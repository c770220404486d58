//! Opening, growing, ending and handing over a log.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use redis::Value;
use streamweld_journal::rules::judge_stranger;
use streamweld_journal::{
    Access, Adoption, Epoch, Level, Open, OpenRefusal, Outcome, Refusal, Seq, StreamId,
    Unreachable, Window,
};
use tokio::time::Instant;

use crate::journal::Inner;
use crate::keys::Keys;
use crate::link::{Code, Failure};
use crate::nodes::Route;
use crate::orders::parse_replica;
use crate::readers::Readers;
use crate::record;
use crate::script::{self, Said};
use crate::table::{BESIDES, Leave, Live, Send};

impl Inner {
    pub(crate) async fn open(
        &self,
        window: &Arc<Window>,
        owner: &Open,
        now: SystemTime,
    ) -> Outcome<OpenRefusal> {
        let id = window.id();
        let epoch = window.epoch();
        assert!(window.received() >= Seq::FIRST, "entry 1 is staged");
        let claims = {
            let mut table = self.table();
            if !table.has_room(BESIDES + window.held(), self.config.total) {
                drop(table);
                self.is_full();
                return Outcome::No(OpenRefusal::Full);
            }
            table.claims(id)
        };
        let keys = Arc::new(self.config.prefix.keys(id));
        let batch = window.staged_through(Seq::ZERO, Seq::FIRST);
        let created = batch.entries.first().map_or(now, |entry| entry.time);
        let label = window.label();
        let (entry, record) = (entry_id(epoch, Seq::FIRST), record::encode(&batch, epoch));
        let (expiry, writer) = (millis(self.config.live), self.owner());
        let (number, created) = (epoch.to_string(), record::nanos(created).to_string());
        let claims = claims.concat();
        let keys_of_it = [&keys.log[..], &keys.meta, &keys.gone];
        let args: [&[u8]; 16] = [
            entry.as_bytes(),
            &record,
            &batch.beside,
            expiry.as_bytes(),
            b"access",
            &owner.access,
            b"owner",
            writer.as_bytes(),
            b"epoch",
            number.as_bytes(),
            b"created",
            created.as_bytes(),
            b"label",
            &label,
            b"claims",
            &claims,
        ];
        // Listed first: nobody would end a log that nobody knows of.
        let route = self.nodes.appends(id);
        let (list, open) = (self.list(id), script::OPEN.run(route, &keys_of_it, &args));
        let (listed, said) = if route.is_with(&self.household()) {
            tokio::join!(list, open)
        } else {
            (list.await, open.await)
        };
        self.settle_list(id, listed, &said);
        match said {
            Ok(said) if said.word() == "ok" => {
                let live = Live {
                    window: Some(Arc::clone(window)),
                    access: owner.access,
                    keys,
                    epoch,
                    last: Seq::FIRST,
                    seen: Some(said.connection),
                    label,
                    renewed: Instant::now(),
                    readers: Readers::default(),
                };
                // Before it is at its level, so that no word of a follower comes too early.
                self.table().keep(id, live);
                if !self.reached(route, said.connection).await {
                    self.table().forget(id);
                    return Outcome::Unknown;
                }
                self.bind_claims(id, self.config.live).await;
                Outcome::Yes
            }
            Ok(said) if said.word() == "exists" => Outcome::No(OpenRefusal::Exists),
            _ => Outcome::Unknown,
        }
    }

    pub(crate) async fn append(
        &self,
        window: &Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Outcome<Refusal> {
        let id = window.id();
        let renew_after = self.config.live / 4;
        let route = self.nodes.appends(id);
        let connection = route.connection();
        let leave = self
            .table()
            .leave(window, expected, connection, renew_after);
        match leave {
            Leave::Send(send) => self.send(route, window, (expected, through), send).await,
            Leave::Refuse(refusal) => Outcome::No(refusal),
            Leave::ReadBack => Outcome::Unknown,
            Leave::Stranger => match self.tail(id).await {
                Ok(tail) => judge_stranger(tail, window.epoch(), expected),
                Err(Unreachable) => Outcome::Unknown,
            },
        }
    }

    async fn send(
        &self,
        route: Route<'_>,
        window: &Arc<Window>,
        (expected, through): (Seq, Seq),
        send: Send,
    ) -> Outcome<Refusal> {
        let id = window.id();
        let epoch = window.epoch();
        let batch = window.staged_through(expected, through);
        if batch.after != expected {
            // The ring has let go of what would have to be appended: this log cannot be continued by anybody here.
            return Outcome::No(Refusal::Vanished);
        }
        let record = record::encode(&batch, epoch);
        let size = record.len() + batch.beside.len();
        let mut commands = redis::pipe();
        let append = commands
            .cmd("XADD")
            .arg(&send.keys.log)
            .arg("NOMKSTREAM")
            .arg(entry_id(epoch, through))
            .arg("r")
            .arg(&record);
        if !batch.beside.is_empty() {
            append.arg("t").arg(&batch.beside);
        }
        if let Some(label) = &send.label {
            commands
                .cmd("HSET")
                .arg(&send.keys.meta)
                .arg("label")
                .arg(&label[..]);
        }
        // A label that was written to a hash that is gone must not stay for ever either.
        let renew = send.renew || send.label.is_some();
        if renew {
            for key in [&send.keys.log, &send.keys.meta, &send.keys.request] {
                let live = millis(self.config.live);
                commands.cmd("PEXPIRE").arg(key).arg(live);
            }
        }
        let answers = route.call_on(send.connection, &commands, size).await;
        let (outcome, others) = match answers {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                (answers.next(), answers.all(|answer| answer.is_ok()))
            }
            Err(Failure::Refused(code)) => (Some(Err(code)), false),
            Err(Failure::NotSent | Failure::Unanswered) => (None, false),
        };
        if matches!(outcome, Some(Ok(Value::BulkString(_))))
            && !self.reached(route, send.connection).await
        {
            // It stands, but not as it has to. The tail says when it does.
            return Outcome::Unknown;
        }
        let renewed = others && renew;
        let (keys, connection) = (Arc::clone(&send.keys), send.connection);
        let outcome = self.appended(window, (expected, through), send, outcome, renewed);
        if outcome == Outcome::No(Refusal::Vanished) {
            self.drop_request(id).await;
        }
        if outcome == Outcome::Yes {
            // Only what stands is published, also to those who came meanwhile.
            if self.table().is_followed(id) {
                self.publish(id, connection, &keys, &record);
            }
            if renewed {
                self.bind_claims(id, self.config.live).await;
            }
        }
        outcome
    }

    fn appended(
        &self,
        window: &Window,
        (expected, through): (Seq, Seq),
        send: Send,
        answer: Option<Result<Value, Code>>,
        renewed: bool,
    ) -> Outcome<Refusal> {
        let (id, epoch) = (window.id(), window.epoch());
        let mut table = self.table();
        match answer {
            Some(Ok(Value::BulkString(_))) => {
                table.stands(id, epoch, through, send.connection);
                if renewed {
                    table.renewed(id, send.label);
                }
                Outcome::Yes
            }
            Some(Ok(Value::Nil)) => {
                table.forget(id);
                Outcome::No(Refusal::Vanished)
            }
            Some(Err(code)) if code.is("OOM") => {
                // Redis has looked at its memory before the command: nothing was changed.
                table.stands(id, epoch, expected, send.connection);
                Outcome::No(Refusal::Full)
            }
            Some(Err(code)) if code.is("NOREPLICAS") => {
                // Fewer replicas than its `min-replicas-to-write`, which is looked at before the command as well.
                table.stands(id, epoch, expected, send.connection);
                Outcome::No(Refusal::Unready)
            }
            // Among them the id that is not greater, which proves nothing: it may be our own, or another writer's.
            _ => Outcome::Unknown,
        }
    }

    pub(crate) async fn finish(&self, window: &Arc<Window>, expected: Seq) -> Outcome<Refusal> {
        let id = window.id();
        let marks = window.marks();
        let terminal = marks.terminal.expect("a terminal is staged");
        assert!(expected < terminal, "the terminal is behind what stands");
        let batch = window.staged_through(expected, terminal);
        if batch.after != expected {
            return Outcome::No(Refusal::Vanished);
        }
        let keys = self.config.prefix.keys(id);
        let route = self.nodes.appends(id);
        if !self.table().finishing(window, route.connection()) {
            return Outcome::Unknown;
        }
        let record = record::encode(&batch, marks.epoch);
        // Published by the script only where it stands with the answer.
        let feed = match self.config.level {
            Level::Async => keys.feed.as_str(),
            Level::Replicated(_) | Level::Fsync => "",
        };
        let retention = self.config.retention;
        let said = script::FINISH
            .run(
                route,
                &[
                    &keys.log,
                    &keys.meta,
                    &keys.gone,
                    &keys.readers,
                    &keys.request,
                ],
                &[
                    expected.to_string().as_bytes(),
                    marks.epoch.to_string().as_bytes(),
                    &record,
                    millis(retention).as_bytes(),
                    millis(retention + self.config.tombstone).as_bytes(),
                    &window.label(),
                    feed.as_bytes(),
                    self.nodes.publish().as_bytes(),
                    &batch.beside,
                ],
            )
            .await;
        let Ok(said) = said else {
            return Outcome::Unknown;
        };
        if said.word() == "ok" {
            if !self.reached(route, said.connection).await {
                return Outcome::Unknown;
            }
            self.announce_end(id, said.connection, &keys, &record);
            self.ended(id).await;
            return Outcome::Yes;
        }
        let outcome = refused(&said);
        self.settle(id, outcome, said.connection, marks.epoch);
        outcome
    }

    pub(crate) async fn adopt(&self, id: StreamId, adoption: Adoption) -> Outcome<Refusal> {
        let (epoch, expected) = (adoption.epoch(), adoption.last());
        let keys = self.config.prefix.keys(id);
        self.table().doubt(id);
        // First, so that the next one finds it should this process die with it.
        let listed = self.list(id).await;
        let route = self.nodes.appends(id);
        let said = script::ADOPT
            .run(
                route,
                &[&keys.log, &keys.meta, &keys.readers, &keys.request],
                &[
                    adoption.replaces().to_string().as_bytes(),
                    expected.to_string().as_bytes(),
                    epoch.to_string().as_bytes(),
                    &record::change(adoption),
                    millis(self.config.live).as_bytes(),
                    self.owner().as_bytes(),
                    keys.feed.as_bytes(),
                    self.nodes.publish().as_bytes(),
                ],
            )
            .await;
        self.settle_list(id, listed, &said);
        let Ok(said) = said else {
            return Outcome::Unknown;
        };
        if said.word() != "ok" {
            let outcome = refused(&said);
            self.settle(id, outcome, said.connection, epoch);
            return outcome;
        }
        self.take_over(id, epoch, expected, keys, &said);
        let before = said.with.get(3).and_then(Option::as_deref);
        let before = before.and_then(|name| parse_replica(std::str::from_utf8(name).ok()?));
        if let Some(before) = before.filter(|it| *it != self.replica()) {
            self.tell_taken(id, epoch, before);
        }
        if !self.reached(route, said.connection).await {
            self.table().doubt(id);
            return Outcome::Unknown;
        }
        self.bind_claims(id, self.config.live).await;
        // What waits for the writer waits for this one now.
        self.orders.look(id);
        Outcome::Yes
    }

    fn take_over(&self, id: StreamId, epoch: Epoch, last: Seq, keys: Keys, said: &Said) {
        let part = |place: usize| said.with.get(place).and_then(Option::as_deref);
        let access = part(0).and_then(|it| Access::try_from(it).ok());
        let mut table = self.table();
        for key in part(1).unwrap_or_default().chunks_exact(32) {
            table.claimed(id, key.try_into().expect("chunks of this size"));
        }
        if table.live.contains_key(&id) {
            table.stands(id, epoch, last, said.connection);
            return;
        }
        let live = Live {
            window: None,
            // Without it nobody can match it.
            access: access.unwrap_or_default(),
            keys: Arc::new(keys),
            epoch,
            last,
            seen: Some(said.connection),
            label: part(2).map_or_else(Bytes::new, Bytes::copy_from_slice),
            renewed: Instant::now(),
            readers: Readers::default(),
        };
        table.keep(id, live);
    }

    /// What the list of this process holds after a generation on it was opened or adopted, or not.
    fn settle_list(&self, id: StreamId, listed: bool, said: &Result<Said, Failure>) {
        let mut table = self.table();
        match said {
            // It may be this process', and is nobody else's.
            Err(Failure::Unanswered) => {}
            Err(Failure::NotSent) => table.listed.missing(id),
            Ok(_) | Err(Failure::Refused(_)) if !listed => table.listed.missing(id),
            // It is this process' in a moment; see `Table::keep`.
            Ok(said) if said.word() == "ok" => {}
            // Whose it is now may be lost again.
            Ok(_) | Err(Failure::Refused(_)) => table.listed.taken(id),
        }
    }

    /// The log has its end: it is kept as long as it can be read, and so are its claims.
    pub(crate) async fn ended(&self, id: StreamId) {
        self.table().finish(id, &self.config);
        self.bind_claims(id, self.config.retention).await;
        self.table().unclaim_all(id);
    }

    /// What a script refused tells where the log stands.
    fn settle(&self, id: StreamId, outcome: Outcome<Refusal>, connection: u64, epoch: Epoch) {
        let mut table = self.table();
        match outcome {
            Outcome::No(Refusal::Unexpected { last }) => {
                if table.live.get(&id).is_some_and(|live| live.epoch == epoch) {
                    table.stands(id, epoch, last, connection);
                }
            }
            Outcome::No(Refusal::Vanished | Refusal::Ended) => _ = table.forget(id),
            Outcome::No(Refusal::Fenced { epoch: by }) => {
                if table.live.get(&id).is_some_and(|live| live.epoch != by) {
                    table.fenced(id);
                    self.is_fenced();
                }
            }
            Outcome::No(Refusal::Full | Refusal::Unready) | Outcome::Yes | Outcome::Unknown => {}
        }
    }
}

fn refused(said: &Said) -> Outcome<Refusal> {
    let number = said.number();
    let refusal = match said.word() {
        "vanished" => Some(Refusal::Vanished),
        "ended" => Some(Refusal::Ended),
        "fenced" => number
            .and_then(Epoch::new)
            .map(|epoch| Refusal::Fenced { epoch }),
        "unexpected" => number.map(|last| Refusal::Unexpected {
            last: Seq::new(last),
        }),
        // `stray` as well: what stands has to be read back, which takes back what has no place.
        _ => None,
    };
    refusal.map_or(Outcome::Unknown, Outcome::No)
}

/// The id of a batch in its stream: greater for a later one, and for every one of a later epoch.
fn entry_id(epoch: Epoch, last: Seq) -> String {
    format!("{epoch}-{last}")
}

pub(crate) fn millis(time: std::time::Duration) -> String {
    time.as_millis().max(1).to_string()
}
