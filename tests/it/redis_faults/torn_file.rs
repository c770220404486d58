//! A server that comes back without the last bytes of its file. It says so in its log and nowhere else.

use std::fs::read_dir;

use streamweld_journal_redis::testing::{Server, until};
use streamweld_tests::{End, blocks, wait_end, wait_seq};

use super::{NEVER, Reading, assert_stands, in_three, key, patient, setup, whole, with_a_file};

/// The id of a record with an end.
const LAST_ID: &str = "18446744073709551615-18446744073709551615";

/// Cuts off the end of what a killed server has written.
fn cut(redis: &Server, at: impl Fn(&[u8]) -> usize) {
    let folder = redis.folder().join("appendonlydir");
    let files = read_dir(folder)
        .expect("it has one")
        .map(|file| file.expect("a file").path());
    let last = files
        .filter(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .max();
    let last = last.expect("it wrote one");
    let mut whole = std::fs::read(&last).expect("it is ours");
    whole.truncate(at(&whole));
    std::fs::write(&last, whole).expect("it is ours");
}

/// The last sequence that stands.
async fn last_seq(redis: &Server, id: &str) -> u64 {
    let log = key(id, "log");
    let entry = redis
        .cli(&["XREVRANGE", &log, "+", "-", "COUNT", "1"])
        .await;
    let last = entry.lines().next().and_then(|it| it.strip_prefix("1-"));
    last.and_then(|seq| seq.parse().ok())
        .expect("an entry of ours")
}

async fn check(bytes: usize) {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER)
        .server(with_a_file())
        .start()
        .await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let mut first = Reading::begin(one.chat().await, 20).await;
    let id = first.response.id();
    let expected = whole(&script, &id);
    wait_seq(&one, &id, 21).await;
    pair.mock.gates().release("go");
    first.more(20).await;
    wait_seq(&one, &id, 41).await;

    pair.redis().kill();
    cut(pair.redis(), |whole| whole.len() - bytes);
    pair.redis().restart().await;
    let last = last_seq(pair.redis(), &id).await;
    assert!(
        (1..41).contains(&last),
        "{last} stands without {bytes} bytes"
    );

    // Elsewhere whoever has read what is lost is told so at once, and not left to wait.
    let ahead = other.with("last-event-id", &format!("{id}:41"));
    let told = async {
        loop {
            match ahead.events(&id).await.error_code().await {
                // It has just come back.
                (503, _) => {}
                told => return told,
            }
        }
    };
    let told = streamweld_tests::patience(told).await;
    assert_eq!(told, (409, "cursor_ahead".to_owned()), "{bytes} bytes");
    let state = streamweld_tests::state(&other, &id).await;
    assert_eq!(state["last_seq"], last);
    let there = Reading::begin(other.events(&id).await, last as usize - 1).await;
    assert!(expected.starts_with(&there.held));

    // The owner has it all, and it stands again with the next event.
    pair.mock.gates().release("end");
    for reading in [first, there] {
        assert!(reading.rest().await == (expected.clone(), End::Proper));
    }
    wait_end(&other, &id).await;
    assert_stands(&pair, &id, &expected).await;
    let (rest, end) = ahead.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest), blocks(&expected)[40..]);
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_torn_file_has_lost_is_noticed_and_appended_again() {
    for bytes in [1, 7, 1000] {
        check(bytes).await;
    }
}

/// It was told as done, so nobody would write it again but whoever wrote it.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_a_torn_file_has_lost_stands_again() {
    let script = in_three(20);
    let mut pair = setup(script.clone()).server(with_a_file()).start().await;
    for gate in ["go", "end"] {
        pair.mock.gates().release(gate);
    }
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let keyed = one.with("idempotency-key", "k");
    let response = keyed.durable_chat().await;
    let id = response.id();
    let expected = whole(&script, &id);
    assert!(response.all().await == (expected.clone(), End::Proper));
    wait_end(&other, &id).await;

    pair.redis().kill();
    let is_end = |bytes: &[u8]| bytes == LAST_ID.as_bytes();
    cut(pair.redis(), |whole| {
        let end = whole.windows(LAST_ID.len()).position(is_end);
        end.expect("it was written")
    });
    pair.redis().restart().await;
    let log = key(&id, "log");
    until("the end stands again", async || {
        let last = ["XREVRANGE", &log, "+", "-", "COUNT", "1"];
        let last = pair.redis().cli(&last).await;
        last.starts_with(LAST_ID)
    })
    .await;
    assert_stands(&pair, &id, &expected).await;
    let again = other.with("idempotency-key", "k").chat().await;
    assert_eq!(again.id(), id);
    assert!(again.all().await == (expected, End::Proper));
    assert_eq!(pair.mock.recorder().count(), 1);
}
