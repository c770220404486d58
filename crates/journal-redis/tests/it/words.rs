//! What replicas say to each other, and who there is to talk to.

use std::time::{Duration, SystemTime};

use streamweld_journal::{Epoch, Journal, Notice, Replica, Seq, StreamId, Word};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal};
use tokio::time::timeout;

use crate::connect::{config, connect, connect_with};
use crate::logs::Logs;

fn words() -> [Word; 4] {
    let (epoch, last) = (Epoch::new(3).unwrap(), Seq::new(77));
    let declines = |why: &str| Word::Declines {
        epoch,
        why: why.to_owned(),
    };
    let offer = Word::Offer { epoch, last };
    let considers = Word::Considers { epoch };
    [offer, considers, declines("tokens,template"), declines("")]
}

/// Everything that one says is heard by the other, in its order.
pub(crate) async fn hear(from: &RedisJournal, to: &RedisJournal) {
    let heard = async |id: StreamId| {
        loop {
            if let (of, Notice::Said { from, word }) = to.next_notice().await {
                if of == id {
                    return (from, word);
                }
            }
        }
    };
    let now = SystemTime::now();
    // What is said before it listens is lost.
    let (first, id) = (StreamId::generate(now), StreamId::generate(now));
    until("it listens", async || {
        let [_, considers, ..] = words();
        assert_eq!(from.say(to.replica(), first, considers).await, Ok(()));
        let soon = timeout(Duration::from_millis(200), heard(first)).await;
        soon.is_ok()
    })
    .await;
    for word in words() {
        assert_eq!(from.say(to.replica(), id, word.clone()).await, Ok(()));
        let heard = timeout(Duration::from_secs(10), heard(id)).await;
        assert_eq!(heard, Ok((from.replica(), word)));
    }
}

#[tokio::test]
async fn what_is_said_is_heard_by_the_one_it_is_said_to() {
    let server = Server::new().await;
    let (here, there, third) = (
        connect(&server).await,
        connect(&server).await,
        connect(&server).await,
    );
    hear(&here, &there).await;
    hear(&there, &here).await;
    hear(&third, &there).await;
}

/// As those of a later version are.
#[tokio::test]
async fn words_that_nobody_understands_do_no_harm() {
    let server = Server::new().await;
    let logs = Logs::begin_with_milestones();
    let (here, there) = (connect(&server).await, connect(&server).await);
    let channel = format!("streamweld:orders:{:032x}", there.replica().0);
    until("it listens", async || {
        server.cli(&["PUBLISH", &channel, "hums a tune"]).await == "1"
    })
    .await;
    hear(&here, &there).await;
    assert_eq!(logs.debug("an order that nobody here understands"), 1);
    assert_eq!(logs.with("hums"), Vec::<String>::new());
}

#[tokio::test]
async fn others_are_those_who_give_signs_of_life() {
    let server = Server::new().await;
    let lease = Duration::from_millis(1200);
    let short = || Config { lease, ..config() };
    let here = connect_with(&server, short()).await;
    assert_eq!(here.replicas().await, Ok(vec![]));
    let stays = connect_with(&server, short()).await;
    let (dies, departs) = (
        connect_with(&server, short()).await,
        connect_with(&server, short()).await,
    );
    let others = async |expected: &[&RedisJournal]| {
        let mut expected: Vec<Replica> = expected.iter().map(|it| it.replica()).collect();
        expected.sort();
        until("they are the others", async || {
            let mut others = here.replicas().await.unwrap();
            others.sort();
            others == expected
        })
        .await;
    };
    others(&[&stays, &dies, &departs]).await;
    departs.depart().await;
    others(&[&stays, &dies]).await;
    drop(dies);
    others(&[&stays]).await;
    let name = here.replica();
    let journal: &dyn Journal = &here;
    assert_eq!(journal.replica(), Some(name));
}
