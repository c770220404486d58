//! The loop of a reader: ask, read, break off, come back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::ask::{Answer, Ask, Next};
use super::history::{Cursor, End, History};
use crate::net::Port;
use crate::random::Random;
use crate::trace::Trace;

/// Where readers are, and whom they can ask.
#[derive(Clone)]
pub struct Setting {
    /// Their network.
    pub port: Port,
    /// The names of all replicas.
    pub replicas: Arc<[String]>,
    /// What they see is noted there.
    pub trace: Trace,
}

/// An answer that somebody asks for, and others read as well once its id is known.
#[derive(Clone)]
pub struct Generation {
    /// Its number.
    pub number: usize,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    id: Option<String>,
    /// It came to nothing that could be read elsewhere.
    never: bool,
}

/// How somebody reads.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Who.
    pub name: String,
    /// Where the answer is asked for, by the one who does; the others read it.
    pub first: Option<usize>,
    /// When to begin.
    pub after: Duration,
    /// With control events.
    pub control: bool,
    /// How often in a hundred a connection is broken off, each time within so many blocks.
    pub breaks: u64,
    /// Reads for so long and then no more.
    pub leaves: Option<Duration>,
    /// Draws the rest.
    pub random: Random,
}

/// What a reader has seen so far, for whoever looks.
type Seen = Arc<Mutex<History>>;

impl Generation {
    /// One that nobody has asked for.
    pub fn new(number: usize) -> Self {
        Self {
            number,
            known: Arc::default(),
        }
    }

    /// Its id, once that is known.
    pub fn id(&self) -> Option<String> {
        self.lock().id.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PATH: &str = "/v1/chat/completions";
const CONTROL: (&str, &str) = ("x-streamweld-events", "control");

/// Reads an answer until there is an end. What it saw is there from the beginning.
pub fn read(
    setting: Setting,
    generation: Generation,
    reading: Reading,
) -> (Seen, impl Future<Output = ()> + Send) {
    let history = History::new(reading.name.clone(), reading.control);
    let seen = Arc::new(Mutex::new(history));
    let reader = Reader {
        setting,
        generation,
        reading,
        seen: Arc::clone(&seen),
        unknown: 0,
    };
    (seen, reader.run())
}

/// Reads a whole answer with control events at one replica, after everything.
pub fn audit(
    setting: Setting,
    generation: Generation,
    replica: usize,
    random: Random,
) -> (Seen, impl Future<Output = ()> + Send) {
    let setting = Setting {
        replicas: Arc::new([setting.replicas[replica].clone()]),
        ..setting
    };
    let reading = Reading {
        name: format!("audit{}.{replica}", generation.number),
        first: None,
        after: Duration::ZERO,
        control: true,
        breaks: 0,
        leaves: None,
        random,
    };
    read(setting, generation, reading)
}

/// Stops an answer, at any replica that says that it did.
pub async fn stop(
    setting: Setting,
    generation: Generation,
    mut random: Random,
    told: Arc<Mutex<Option<String>>>,
) {
    for _ in 0..20 {
        let Some(id) = generation.id() else {
            sleep(Duration::from_millis(200)).await;
            continue;
        };
        let replica = &setting.replicas[random.below(setting.replicas.len())];
        let ask = Ask::new(replica, "POST", &format!("/v1/streams/{id}/stop"), &[], "");
        if let Some(answer) = ask.send(&setting.port).await {
            let status = answer.status;
            note(
                &setting,
                "stop",
                format_args!("{status} of {}", generation.number),
            );
            if status == 200 {
                let json = answer.json().await;
                let kind = json["terminal"]["kind"].as_str().map(str::to_owned);
                *told.lock().unwrap_or_else(PoisonError::into_inner) = kind;
                return;
            }
            if status == 409 {
                return;
            }
        }
        sleep(Duration::from_millis(300)).await;
    }
}

struct Reader {
    setting: Setting,
    generation: Generation,
    reading: Reading,
    seen: Seen,
    /// How often in a row the stream was not known.
    unknown: u32,
}

/// What is done after a connection.
enum Then {
    Again,
    End(End),
}

impl Reader {
    async fn run(mut self) {
        sleep(self.reading.after).await;
        let patience = self.reading.leaves.unwrap_or(Duration::MAX);
        let end = timeout(patience, self.until_end()).await;
        let end = end.unwrap_or(End::Left);
        if self.reading.first.is_some() && self.generation.id().is_none() {
            self.generation.lock().never = true;
        }
        self.note(format_args!("ends: {end:?}"));
        let now = self.setting.port.clock.now();
        self.lock().end = Some((now, end));
    }

    async fn until_end(&mut self) -> End {
        loop {
            if self.generation.lock().never {
                return End::Left;
            }
            let pause = match self.ask() {
                Some(ask) => {
                    let replica = ask.replica.clone();
                    match ask.send(&self.setting.port).await {
                        Some(answer) => {
                            self.note(format_args!("{} at {replica}", answer.status));
                            match self.answered(answer).await {
                                Then::End(end) => return end,
                                Then::Again => 500,
                            }
                        }
                        None => 300,
                    }
                }
                None => 100,
            };
            let pause = self.reading.random.between(10, pause);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// What to ask next; nothing while the id is not known.
    fn ask(&mut self) -> Option<Ask> {
        let place = match self.reading.first {
            Some(first) if self.generation.id().is_none() && !self.reading.random.chance(30) => {
                first
            }
            _ => self.reading.random.below(self.setting.replicas.len()),
        };
        let replica = &self.setting.replicas[place];
        let control = self.reading.control.then_some(CONTROL);
        let Some(id) = self.generation.id() else {
            self.reading.first?;
            let key = format!("key-{}", self.generation.number);
            let body = body(self.generation.number);
            let mut headers = vec![
                ("content-type", "application/json"),
                ("idempotency-key", &key),
            ];
            headers.extend(control);
            return Some(Ask::new(replica, "POST", PATH, &headers, &body));
        };
        let cursor = {
            let mut seen = self.lock();
            seen.stream = Some(id.clone());
            seen.come_back();
            seen.cursor().map(|cursor| match cursor.epoch {
                1 => format!("{id}:{}", cursor.seq),
                epoch => format!("{id}:{}~{epoch}", cursor.seq),
            })
        };
        let mut headers: Vec<(&str, &str)> = control.into_iter().collect();
        if let Some(cursor) = &cursor {
            headers.push(("last-event-id", cursor));
            // The same request again, or the events of the stream: either is a way back.
            if self.reading.first.is_some() && self.reading.random.chance(50) {
                headers.push(("content-type", "application/json"));
                return Some(Ask::new(
                    replica,
                    "POST",
                    PATH,
                    &headers,
                    &body(self.generation.number),
                ));
            }
        }
        Some(Ask::new(
            replica,
            "GET",
            &format!("/v1/streams/{id}/events"),
            &headers,
            "",
        ))
    }

    async fn answered(&mut self, answer: Answer) -> Then {
        let status = answer.status;
        if status != 404 {
            self.unknown = 0;
        }
        match status {
            200 => self.body(answer).await,
            204 => {
                let end = self.lock().said_end();
                Then::End(end.unwrap_or_else(|| {
                    self.wrong("there is nothing more, and there was no end".to_owned());
                    End::Refused(204, String::new())
                }))
            }
            // Not here, not yet or not any more: other replicas may know it.
            404 if self.unknown < 10 => {
                self.unknown += 1;
                Then::Again
            }
            502..=504 => Then::Again,
            _ => {
                let json = answer.json().await;
                let code = json["error"]["code"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                Then::End(End::Refused(status, code))
            }
        }
    }

    async fn body(&mut self, mut answer: Answer) -> Then {
        let is_degraded = answer.stream.is_none();
        match (&answer.stream, self.generation.id()) {
            (Some(id), None) => {
                self.generation.lock().id = Some(id.clone());
                self.lock().stream = Some(id.clone());
            }
            (Some(id), Some(known)) if *id != known => {
                self.wrong(format!("{id} came for {known}"));
            }
            _ => {}
        }
        let breaks = self.reading.random.chance(self.reading.breaks);
        let mut left = if breaks {
            self.reading.random.between(0, 12)
        } else {
            u64::MAX
        };
        loop {
            if left == 0 {
                self.note(format_args!("breaks off"));
                return match is_degraded {
                    true => Then::End(End::Degraded),
                    false => Then::Again,
                };
            }
            left -= 1;
            match answer.next().await {
                Next::Block(block) => {
                    self.lock().see(block);
                    self.note_last();
                }
                Next::End => {
                    let end = self.lock().said_end();
                    return match end {
                        Some(_) if is_degraded => Then::End(End::Degraded),
                        Some(end) => Then::End(end),
                        None => {
                            self.wrong("a clean end behind no end".to_owned());
                            Then::Again
                        }
                    };
                }
                Next::Broken => {
                    self.note(format_args!("is broken off"));
                    return match is_degraded {
                        true => Then::End(End::Degraded),
                        false => Then::Again,
                    };
                }
            }
        }
    }

    fn note_last(&self) {
        let line = {
            let seen = self.lock();
            let Some(last) = seen.shown.last() else {
                return;
            };
            match last.cursor {
                Some(Cursor { seq, epoch }) => format!("{seq}~{epoch} {}", last.block),
                None => format!("without an id: {}", last.block),
            }
        };
        self.note(format_args!("{}", line.replace('\n', " | ")));
    }

    fn wrong(&self, what: String) {
        self.note(format_args!("wrong: {what}"));
        self.lock().wrong.push(what);
    }

    fn note(&self, what: std::fmt::Arguments<'_>) {
        note(&self.setting, &self.reading.name, what);
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(setting: &Setting, who: &str, what: std::fmt::Arguments<'_>) {
    setting.trace.note(setting.port.clock.now(), who, what);
}

fn body(number: usize) -> String {
    format!(
        r#"{{"model":"m","stream":true,"temperature":0,"messages":[{{"role":"user","content":"q{number}"}}]}}"#
    )
}
