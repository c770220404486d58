//! While Redis is away the owner is asked, and shown as it tells.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use streamweld_journal::{Call, Closed, Epoch, Found, Journal, Kind, Seq, Window, WindowConfig};
use streamweld_journal_redis::relay::{About, Answer, Ask, NoAnswer, Relay, Telling, Told};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal, record};
use tokio::sync::mpsc;

use crate::connect::{config, connect_with};
use crate::follow::{append, find, shows};
use crate::writer::Writer;

/// A way to others that answers as the test says.
struct Fake {
    address: String,
    asked: Mutex<Vec<(String, Ask)>>,
    /// What the next who is asked tells.
    answers: Mutex<Vec<Answer>>,
}

struct Tells(mpsc::Receiver<Told>);

impl Telling for Tells {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        self.0.poll_recv(cx)
    }
}

impl Relay for Fake {
    fn address(&self) -> &str {
        &self.address
    }

    fn ask(&self, address: &str, ask: Ask) -> Call<'static, Result<Answer, NoAnswer>> {
        self.asked.lock().unwrap().push((address.to_owned(), ask));
        let answer = self.answers.lock().unwrap().pop();
        Call::answered(answer.ok_or(NoAnswer::NotHere))
    }
}

impl Fake {
    fn new(address: &str) -> Arc<Self> {
        Arc::new(Self {
            address: address.to_owned(),
            asked: Mutex::default(),
            answers: Mutex::default(),
        })
    }

    /// Has the next question answered, by what is sent to what is given back.
    fn answers(&self, about: Option<About>) -> mpsc::Sender<Told> {
        let (tell, told) = mpsc::channel(16);
        let telling = Box::new(Tells(told));
        let mut answers = self.answers.lock().unwrap();
        answers.push(Answer { about, telling });
        tell
    }

    fn asked(&self) -> Vec<(String, Ask)> {
        self.asked.lock().unwrap().clone()
    }
}

/// Three journals, the second of which has the relay that is given back; it knows where the others are.
async fn journals(server: &Server) -> ([RedisJournal; 3], Arc<Fake>) {
    let fakes = ["one:1", "two:2", "three:3"].map(Fake::new);
    let mut journals = Vec::new();
    for fake in &fakes {
        let config = Config {
            lease: Duration::from_secs(1),
            relay: Some(Arc::clone(fake) as Arc<dyn Relay>),
            ..config()
        };
        journals.push(connect_with(server, config).await);
    }
    until("all are known", async || {
        server.cli(&["HLEN", RELAYS]).await == "3"
    })
    .await;
    let looks = "cmdstat_hgetall:calls=";
    let count = async || {
        let stats = server.cli(&["INFO", "commandstats"]).await;
        let calls = stats.split_once(looks).map(|it| it.1.to_owned());
        let calls = calls.and_then(|it| it.split(',').next()?.parse::<u64>().ok());
        calls.unwrap_or_default()
    };
    let before = count().await;
    until("all have looked", async || count().await > before + 8).await;
    let Ok(journals) = journals.try_into() else {
        panic!("three")
    };
    let [_, fake, _] = fakes;
    (journals, fake)
}

const RELAYS: &str = "streamweld:{presence}:relays";

/// What a writer of this log tells when it has staged one event more, and the mark ahead of it.
fn suffix(writer: &Writer<'_>, text: &str) -> [Told; 2] {
    let committed = writer.window.committed();
    let own = Window::new(
        writer.id(),
        writer.window.epoch(),
        SystemTime::now(),
        WindowConfig::default(),
    );
    own.begin_after(committed);
    own.stage(SystemTime::now()).push(Kind::Event, |out| {
        out.extend_from_slice(format!("data: {text}\n").as_bytes());
    });
    let told = |stands, record: Vec<u8>| Told {
        stands,
        committed,
        record: record.into(),
    };
    [
        told(true, record::stand(own.epoch(), committed)),
        told(false, record::encode(&own.staged(committed), own.epoch())),
    ]
}

/// Redis stands still, and what the owner tells is shown.
async fn foresee(
    server: &Server,
    writer: &Writer<'_>,
    window: &Window,
    fake: &Fake,
) -> mpsc::Sender<Told> {
    let tell = fake.answers(None);
    server.pause();
    for told in suffix(writer, "next") {
        tell.send(told).await.unwrap();
    }
    until("it is shown", async || window.received() == Seq::new(3)).await;
    assert_eq!(window.committed(), Seq::new(2));
    assert!(window.is_exposed());
    tell
}

#[tokio::test]
async fn addresses_are_known_for_as_long_as_their_replicas() {
    let server = Server::new().await;
    let ([one, _two, _three], _) = journals(&server).await;
    let name = format!("{:032x}", one.replica().0);
    assert_eq!(server.cli(&["HGET", RELAYS, &name]).await, "one:1");
    one.depart().await;
    until("it is forgotten", async || {
        server.cli(&["HGETALL", RELAYS]).await.lines().count() == 4
    })
    .await;
    assert_eq!(server.cli(&["HGET", RELAYS, &name]).await, "");
}

#[tokio::test]
async fn the_owner_is_asked_first_and_what_it_tells_stands_when_redis_says_so() {
    let server = Server::new().await;
    let ([one, two, _three], fake) = journals(&server).await;
    let writer = Writer::opened(&one).await;
    writer.stage("before");
    append(&writer).await;
    let (window, _follow) = find(&two, writer.id()).await;
    let tell = foresee(&server, &writer, &window, &fake).await;
    let ask = Ask {
        id: writer.id(),
        after: Seq::new(2),
        writer: Some(Epoch::FIRST),
    };
    assert_eq!(fake.asked(), [("one:1".to_owned(), ask)]);
    server.resume();
    writer.stage("next");
    append(&writer).await;
    shows(&window, 3).await;
    // It is needed no more.
    until("the line is closed", async || tell.is_closed()).await;
    assert!(!window.is_exposed());
    writer.stage("and on");
    append(&writer).await;
    shows(&window, 4).await;
    assert_eq!(window.closed(), None);
}

#[tokio::test]
async fn what_redis_has_otherwise_closes_the_window() {
    let server = Server::new().await;
    let ([one, two, _three], fake) = journals(&server).await;
    let writer = Writer::opened(&one).await;
    writer.stage("before");
    append(&writer).await;
    let (window, follow) = find(&two, writer.id()).await;
    let _tell = foresee(&server, &writer, &window, &fake).await;
    server.resume();
    writer.stage("another");
    append(&writer).await;
    until("it is closed", async || {
        window.closed() == Some(Closed::Fenced)
    })
    .await;
    assert!(!window.is_exposed());
    drop(follow);
    // Whoever comes now is shown what stands.
    let (again, _follow) = find(&two, writer.id()).await;
    assert!(!Arc::ptr_eq(&again, &window));
    shows(&again, 3).await;
}

#[tokio::test]
async fn all_others_are_asked_for_what_nobody_here_has_heard_of() {
    let server = Server::new().await;
    let ([one, two, _three], fake) = journals(&server).await;
    let writer = Writer::opened(&one).await;
    writer.stage("before");
    append(&writer).await;
    server.pause();
    let unknown = two.find(writer.id(), SystemTime::now()).await;
    assert!(unknown.is_err());
    let mut asked: Vec<String> = fake.asked().into_iter().map(|it| it.0).collect();
    asked.sort();
    assert_eq!(asked, ["one:1", "three:3"]);
    let about = About {
        access: [7; 32],
        created: SystemTime::now(),
        label: b"{}".to_vec().into(),
        epoch: Epoch::FIRST,
    };
    let tell = fake.answers(Some(about));
    let stands = Told {
        stands: true,
        committed: Seq::new(2),
        record: record::encode(&writer.window.staged(Seq::ZERO), Epoch::FIRST).into(),
    };
    tell.send(stands).await.unwrap();
    let found = two.find(writer.id(), SystemTime::now()).await;
    let Ok(Found::Here {
        window,
        access,
        follow: Some(follow),
    }) = found
    else {
        panic!("{found:?}")
    };
    assert_eq!((access, &window.label()[..]), ([7; 32], &b"{}"[..]));
    assert_eq!(window.committed(), Seq::new(2));
    // And it is followed as ever when Redis is back.
    let _reads = follow.reading();
    server.resume();
    writer.stage("next");
    append(&writer).await;
    shows(&window, 3).await;
}
