//! Replicas that are told to end with five hundred answers under way: real processes over a real Redis.

use std::time::Duration;

use streamweld_journal_redis::testing::Server;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, End, Process, blocks, ends, patience, state, wait_end, wait_seq};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Reading, whole};

const STREAMS: usize = 500;
/// One of so many has a reader; the others have lost theirs.
const READ: usize = 5;
/// One of so many ends when it is let to, the others do not.
const ENDS: usize = 2;
/// Events of each before it stands still.
const EVENTS: usize = 3;

/// An answer that stands still until this gate opens.
fn script(number: usize) -> Script {
    let gate = if number % ENDS == 0 { "go" } else { "never" };
    Script::tokens(6).id("fixed").gate_after(EVENTS, gate)
}

struct Stream {
    number: usize,
    id: String,
    whole: Vec<u8>,
    reading: Option<Reading>,
}

impl Stream {
    async fn begin(client: Client, number: usize) -> Self {
        let said = serde_json::to_string(&script(number)).expect("a script");
        let response = loop {
            let response = client.with("x-mock-script", &said).chat().await;
            // With every core busy an opening may take too long.
            if response.is_durable() {
                break response;
            }
        };
        let id = response.id();
        let reading = Reading::begin(response, EVENTS).await;
        wait_seq(&client, &id, EVENTS as u64 + 1).await;
        Self {
            number,
            whole: whole(&script(number), &id),
            id,
            reading: Some(reading).filter(|_| number % READ == 0),
        }
    }

    fn ends(&self) -> bool {
        self.number % ENDS == 0
    }

    fn begun(&self) -> &[u8] {
        &self.whole[..ends(&self.whole)[EVENTS - 1]]
    }

    /// Whoever reads it elsewhere is shown its true end, and so was whoever read it all along.
    async fn check_ended(self, elsewhere: Client) {
        let state = wait_end(&elsewhere, &self.id).await;
        let (body, end) = elsewhere.events(&self.id).await.all().await;
        assert_eq!(end, End::Proper);
        if self.ends() {
            assert_eq!(state["status"], "done");
            assert!(body == self.whole);
        } else {
            assert_eq!(state["status"], "error");
            assert_eq!(state["terminal"]["code"], "shutdown");
            assert!(body.starts_with(self.begun()));
            let form = blocks(&body).pop().expect("the form");
            assert_eq!(form.seq(), EVENTS as u64 + 2);
            assert!(form.data.is_some_and(|form| form.contains("shutdown")));
        }
        let (ends, whole) = (self.ends(), self.whole);
        let Some(reading) = self.reading else {
            return;
        };
        let (body, end) = reading.rest().await;
        if ends {
            assert!((body, end) == (whole, End::Proper));
        } else {
            assert_eq!(end, End::Fin, "a part is no whole");
            let form = blocks(&body).pop().and_then(|form| form.data);
            assert!(form.is_some_and(|form| form.contains("shutdown")));
        }
    }

    /// Nobody has ended it, and what stands is shown elsewhere.
    async fn check_left(self, elsewhere: Client) {
        let begun = self.begun().to_vec();
        let late = Reading::begin(elsewhere.events(&self.id).await, EVENTS).await;
        assert!(late.held == begun);
        let state = state(&elsewhere, &self.id).await;
        assert_ne!(state["status"], "done");
        if let Some(reading) = self.reading {
            let (body, end) = reading.rest().await;
            assert_ne!(end, End::Proper, "a part is no whole");
            assert!(body == begun);
        }
    }
}

/// Two replicas, and so many answers under way at the first.
struct Story {
    mock: Mock,
    _redis: Server,
    leaves: Process,
    _stays: Process,
    /// Clients of the one that stays.
    elsewhere: Client,
    streams: Vec<Stream>,
}

impl Story {
    async fn begin(grace: &str) -> Self {
        let mock = Mock::start(Script::new()).await.expect("a port");
        let redis = Server::new().await;
        let backend = format!("--backend={}", mock.url());
        let journal = format!("--journal={}", redis.url());
        let both = [backend.as_str(), journal.as_str()];
        let grace = format!("--shutdown-grace={grace}");
        let mut leaves = Process::serve(&[&both[..], &[&grace]].concat());
        let mut stays = Process::serve(&both);
        let client = leaves.client().await;
        let mut streams = Vec::new();
        // Not all at once: that a server takes a crowd is another story.
        for first in (0..STREAMS).step_by(20) {
            let mut some = JoinSet::new();
            for number in first..first + 20 {
                some.spawn(Stream::begin(client.clone(), number));
            }
            streams.extend(some.join_all().await);
        }
        Self {
            mock,
            _redis: redis,
            elsewhere: stays.client().await,
            leaves,
            _stays: stays,
            streams,
        }
    }

    /// Signals the first, and waits until it has begun to end.
    async fn terminate(&mut self) {
        let admin = self.leaves.admin().await;
        self.leaves.signal("TERM");
        let begun = async {
            while admin.get("/readyz").await.status == 200 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        patience(begun).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_leaves_no_answer_without_its_end() {
    let mut story = Story::begin("3s").await;
    story.terminate().await;
    story.mock.gates().release("go");
    let (status, output) = story.leaves.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("were cut"), "{output}");
    let mut checks = JoinSet::new();
    for stream in story.streams {
        checks.spawn(stream.check_ended(story.elsewhere.clone()));
    }
    checks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_leaves_what_stands() {
    // Far longer than anybody waits here.
    let mut story = Story::begin("10m").await;
    story.terminate().await;
    story.leaves.signal("TERM");
    let (status, output) = story.leaves.ended().await;
    assert_eq!(status.code(), Some(143), "{output}");
    let mut checks = JoinSet::new();
    for stream in story.streams {
        checks.spawn(stream.check_left(story.elsewhere.clone()));
    }
    checks.join_all().await;
}
