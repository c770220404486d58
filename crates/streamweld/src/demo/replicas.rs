//! The client's part of the demonstration with two replicas and a Redis.
//!
//! It starts and ends no process: it says in a line with an arrow what is to be done, and goes on when it sees that it
//! was. So `scripts/demo-redis.sh` can do it, or somebody by hand, in front of servers of their own.
#![allow(
    clippy::print_stdout,
    reason = "a command's answer goes to standard output"
)]

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::client::{Client, Length, PATIENCE, Seen, Stream};
use super::{cut_and_resume, step, stop_one};

/// Runs every step, or says which one did not hold.
pub(super) async fn show(addrs: [SocketAddr; 2], model: &str) -> anyhow::Result<()> {
    let client = |addr, place| Client {
        addr,
        model: model.to_owned(),
        place,
    };
    let [first, second] = addrs;
    println!("first       http://{first}");
    println!("second      http://{second}");
    let first = client(first, " at the first replica");
    let second = client(second, " at the second replica");

    let (id, whole) = cut_and_resume(&first, &second).await?;
    lose_the_journal(&first, &second).await?;
    stop_one(5, &first, &second).await?;
    lose_the_replica(&first, &second, &id, &whole).await?;

    println!("\nTo have this, give each replica the same journal:\n");
    println!(
        "   streamweld serve --backend http://127.0.0.1:8000 --journal redis://127.0.0.1:6379"
    );
    Ok(())
}

/// An answer goes on while its journal is away, and is whole in it once that is back.
async fn lose_the_journal(first: &Client, second: &Client) -> anyhow::Result<()> {
    step(
        4,
        "kill Redis in mid-answer, with a reader at each replica, and start it again",
    );
    let mut stream = first.ask(Length::Long, None).await?;
    let id = stream.id()?;
    let mut there = second.events(&id, None).await?;
    let there = tokio::spawn(async move { there.rest().await });

    let mut seen = stream.take(10).await?;
    tell("kill Redis now");
    let with_ids = until(&mut stream, &mut seen, |seen| seen.id.is_none())
        .await?
        .context("the answer ended before it was seen that Redis was away")?;
    println!("   {with_ids} events came with ids; the reader at the first goes on without");
    seen.extend(stream.take(25).await?);

    tell("start Redis again now");
    let back = until(&mut stream, &mut seen, |seen| seen.id.is_some())
        .await?
        .context("the answer ended before it was seen that Redis was back")?;
    let id_back = seen[back].id.clone().unwrap_or_default();
    println!(
        "   {} events came without; ids go on: {id_back}",
        back - with_ids
    );
    seen.extend(stream.rest().await?);

    let whole = second.events(&id, None).await?.rest().await?;
    ensure!(
        whole.last().is_some_and(|last| last.data == "[DONE]"),
        "the replay has no end"
    );
    // The first entry is that the generation was opened; a client is not shown it.
    let numbers: Option<Vec<u64>> = whole.iter().map(Seen::seq).collect();
    ensure!(
        numbers.is_some_and(|numbers| numbers.into_iter().eq(2..2 + whole.len() as u64)),
        "the ids of the replay are not contiguous"
    );
    let same = |seen: &Seen, whole: &Seen| match seen.id {
        Some(_) => seen == whole,
        None => *seen == whole.without_id(),
    };
    ensure!(
        seen.len() == whole.len()
            && seen
                .iter()
                .zip(&whole)
                .all(|(seen, whole)| same(seen, whole)),
        "the replay is not what the reader at the first replica saw"
    );
    ensure!(
        seen[back..].iter().all(|seen| seen.id.is_some()),
        "ids came back, and were lost again"
    );
    println!(
        "   the replay at the second has all {} events, under contiguous ids ✓",
        whole.len()
    );
    let there = there.await.context("the second reader failed")??;
    ensure!(
        there == whole,
        "the reader at the second replica saw another answer"
    );
    println!("   the reader at the second waited meanwhile, and saw the same ✓");
    Ok(())
}

/// What has ended is read without the replica that wrote it.
async fn lose_the_replica(
    first: &Client,
    second: &Client,
    id: &str,
    whole: &[Seen],
) -> anyhow::Result<()> {
    step(
        6,
        "end the first replica, and read at the second what it wrote",
    );
    tell("end the first replica now (SIGTERM)");
    let gone = async {
        while TcpStream::connect(first.addr).await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .context("the first replica is still there")?;
    let replay = second.events(id, None).await?.rest().await?;
    ensure!(
        replay == whole,
        "the answer is not what it was at the first replica"
    );
    println!(
        "   the answer of step 1 is there, all {} events, to the byte ✓",
        replay.len()
    );
    Ok(())
}

/// Reads on to the first event of a kind. Gives its place in `seen`; `None` when the answer ends without it.
async fn until(
    stream: &mut Stream,
    seen: &mut Vec<Seen>,
    kind: impl Fn(&Seen) -> bool,
) -> anyhow::Result<Option<usize>> {
    while let Some(next) = stream.next().await? {
        let found = kind(&next);
        seen.push(next);
        if found {
            return Ok(Some(seen.len() - 1));
        }
    }
    Ok(None)
}

/// Says what is to be done; `scripts/demo-redis.sh` knows the words.
fn tell(what: &str) {
    println!("   → {what}");
}
