//! Logs that somebody else deletes or lets expire.

use std::time::{Duration, Instant};

use streamweld_generation::OrphanPolicy;
use streamweld_mock::Outcome;
use streamweld_server::Config;
use streamweld_tests::{End, PairSetup, blocks, events, metric, patience, wait_end};
use tokio::time::sleep;

use super::{
    AT_ONCE, Told, assert_all, assert_cut, assert_let_go, assert_no_ids, assert_no_log,
    assert_unknown, failures, in_three, key, patient, setup,
};

fn start() -> PairSetup {
    patient(setup(in_three(20)), AT_ONCE)
}

/// The next append notices; whoever reads at the owner sees the true end, and whoever reads elsewhere is cut.
async fn check(fault: impl Fn(&str) -> Vec<String>) {
    let mut pair = start().start().await;
    let mut told = Told::begin(&pair, &in_three(20), 20).await;
    let (log, fault) = (told.key("log"), fault(&told.key("log")));
    let fault: Vec<&str> = fault.iter().map(String::as_str).collect();
    pair.redis().cli(&fault).await;
    let gone = async {
        while pair.redis().cli(&["EXISTS", &log]).await != "0" {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(gone).await;
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
        assert_no_ids(&blocks(&body)[20..]);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }
    let (body, end) = told.third.rest().await;
    assert_eq!(end, End::Fin, "a part is not the whole");
    assert_cut(&body, &told.whole, 20);
    let one = &pair.one.client;
    let gone = async {
        while one.events(&told.id).await.status == 200 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    patience(gone).await;
    assert_unknown(&pair, &told.id).await;
    assert_no_log(&mut pair).await;
    assert_eq!(metric(&pair.one.admin, &failures("vanished")).await, 1);
    assert_eq!(pair.mock.recorder().count(), 1);
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_log_is_noticed_and_never_begun_anew() {
    check(|log| words(&["DEL", log])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_redis_is_noticed_and_no_log_is_begun_anew() {
    check(|_| words(&["FLUSHALL"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_expired_while_it_ran_is_noticed_and_never_begun_anew() {
    check(|log| words(&["PEXPIRE", log, "1"])).await;
}

/// Nobody could say any more that they have left: a backend would go on for them until its end.
#[tokio::test(flavor = "multi_thread")]
async fn who_read_a_vanished_log_elsewhere_keeps_no_cancel_away() {
    let cancel = |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::Cancel;
    let mut pair = start().config(cancel).start().await;
    let mut told = Told::begin(&pair, &in_three(20), 20).await;
    pair.redis().restart().await;
    let (body, end) = told.third.rest().await;
    assert_eq!(end, End::Fin);
    assert_cut(&body, &told.whole, 20);
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    told.first.response.leave().await;
    told.second.response.leave().await;
    let ending = pair.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_trimmed_log_is_never_shown_as_the_whole() {
    let mut pair = start().start().await;
    let told = Told::begin(&pair, &in_three(20), 20).await;
    let log = told.key("log");
    pair.mock.gates().release("go");
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, told.third] {
        assert!(reading.rest().await == (told.whole.clone(), End::Proper));
    }
    wait_end(&pair.one.client, &told.id).await;
    pair.redis().cli(&["XTRIM", &log, "MAXLEN", "1"]).await;
    // Neither has it in memory for long.
    for client in [&pair.one.client, &pair.other.client] {
        let told_so = async {
            loop {
                let response = client.events(&told.id).await;
                if response.status != 200 {
                    return response.error_code().await;
                }
                assert!(response.all().await == (told.whole.clone(), End::Proper));
            }
        };
        let expired = (410, "cursor_expired".to_owned());
        assert_eq!(patience(told_so).await, expired);
        assert_eq!(client.events(&told.id).await.error_code().await, expired);
    }
}

/// The retention itself: its keys go as Redis lets them go, and the tombstone stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_resume_after_retention_is_told_so_on_both() {
    let mut pair = start().start().await;
    let mine = pair.one.client.with("authorization", "Bearer mine");
    for gate in ["go", "end"] {
        pair.mock.gates().release(gate);
    }
    let response = mine.chat().await;
    let id = response.id();
    assert_eq!(response.all().await.1, End::Proper);
    wait_end(&mine, &id).await;
    let (log, meta, gone) = (key(&id, "log"), key(&id, "meta"), key(&id, "gone"));
    let mut left = Vec::new();
    for key in [&log, &meta, &gone] {
        let millis = pair.redis().cli(&["PTTL", key]).await;
        left.push(millis.parse::<u64>().expect("it expires"));
    }
    assert!(left[0] <= 600_000 && left[1] <= 600_000, "{left:?}");
    assert!(left[2] > 600_000, "it outlives the log: {left:?}");
    for key in [&log, &meta] {
        pair.redis().cli(&["PEXPIRE", key, "1"]).await;
    }
    let expired = async {
        while pair.redis().cli(&["EXISTS", &log, &meta]).await != "0" {
            sleep(Duration::from_millis(5)).await;
        }
        // What the owner has in memory goes too.
        while mine.events(&id).await.status == 200 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(expired).await;
    let cursor = format!("{id}:4");
    for replica in [&pair.one.client, &pair.other.client] {
        let mine = replica.with("authorization", "Bearer mine");
        let resumes = mine.with("last-event-id", &cursor);
        for response in [
            mine.events(&id).await,
            resumes.events(&id).await,
            resumes.chat().await,
        ] {
            let answer = response.error_code().await;
            assert_eq!(answer, (410, "stream_expired".to_owned()));
        }
        let stranger = replica.events(&id).await.error_code().await;
        assert_eq!(stranger, (404, "stream_not_found".to_owned()));
    }
    assert_eq!(pair.mock.recorder().count(), 1, "no new stream");
    pair.redis().cli(&["PEXPIRE", &gone, "1"]).await;
    let forgotten = async {
        while pair.redis().cli(&["EXISTS", &gone]).await != "0" {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(forgotten).await;
    assert_unknown(&pair, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_a_vanished_log_is_a_stop_at_its_owner_and_told_as_lost_everywhere() {
    let mut pair = start().start().await;
    let told = Told::begin(&pair, &in_three(20), 20).await;
    let stop = format!("/v1/streams/{}/stop", told.id);
    pair.redis().cli(&["FLUSHALL"]).await;
    let lost = (404, "stream_not_found".to_owned());
    // Nothing is left by which the owner could be found.
    let asked = Instant::now();
    let answer = pair.other.client.send("POST", &stop, "").await;
    assert_eq!(answer.error_code().await, lost);
    assert!(asked.elapsed() < Duration::from_secs(4), "it is not held");
    let answer = patience(pair.one.client.send("POST", &stop, "")).await;
    assert_eq!(answer.error_code().await, lost);
    assert_let_go(&pair).await;
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }
    let answer = pair.one.client.events(&told.id).await;
    assert_eq!(answer.error_code().await, lost);
}
