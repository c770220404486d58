//! `streamweld demo`: the main job, shown step by step over real sockets.
#![allow(
    clippy::print_stdout,
    reason = "a command's answer goes to standard output"
)]

mod client;
mod replicas;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::{Config, Server};
use streamweld_upstream::{Backend, BackendUrl};
use tokio::sync::oneshot;

use self::client::{Client, Length, Seen};
use crate::args;
use crate::serve::runtime;

/// Runs every step, or says which one did not hold.
pub(crate) fn run(args: args::Demo) -> anyhow::Result<ExitCode> {
    runtime(None)?.block_on(async {
        match args.replicas {
            Some(addrs) => replicas::show(addrs, &args.model).await,
            None => show(args).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: args::Demo) -> anyhow::Result<()> {
    let mock = match &args.backend {
        Some(_) => None,
        None => Some(start_mock().await?),
    };
    let backend = match (&args.backend, &mock) {
        (Some(url), _) => url.checked()?,
        (None, Some(mock)) => mock.url().parse().context("the mock has an odd address")?,
        (None, None) => bail!("there is no backend"),
    };
    let (client, stop) = start_server(&backend, &args.model).await?;
    println!("streamweld  http://{}", client.addr);
    println!(
        "backend     {}",
        if mock.is_some() {
            "a fake inference server of its own"
        } else {
            "the one you named"
        }
    );

    let (id, _) = cut_and_resume(&client, &client).await?;
    if let Some(mock) = &mock {
        let asked = mock.recorder().requests().len();
        ensure!(asked == 1, "the backend was asked {asked} times");
        println!("   the backend was asked once");
    }
    second_reader(&client).await?;
    stop_one(5, &client, &client).await?;
    point_an_app(&client, &id);
    let _ = stop.send(());
    Ok(())
}

/// An answer is cut in the middle and taken up again. Gives its id and the whole of it.
async fn cut_and_resume(begins: &Client, resumes: &Client) -> anyhow::Result<(String, Vec<Seen>)> {
    let place = begins.place;
    step(
        1,
        &format!("stream an answer{place}, and cut the connection in the middle"),
    );
    let mut stream = begins.ask(Length::Short, None).await?;
    let id = stream.id()?;
    println!("   X-Streamweld-Stream-Id: {id}");
    println!(
        "   X-Streamweld-Durability: {}",
        stream.header("x-streamweld-durability").unwrap_or_default()
    );
    let mut seen = stream.take(6).await?;
    drop(stream);
    let cursor = seen
        .last()
        .and_then(|seen| seen.id.clone())
        .context("an event came without an id")?;
    show_text(&seen);
    println!(
        "   ✂ the connection is gone after {} events; the last id was {cursor}",
        seen.len()
    );

    let place = resumes.place;
    step(
        2,
        &format!("send the same request again{place}, with Last-Event-ID"),
    );
    let mut stream = resumes.ask(Length::Short, Some(&cursor)).await?;
    let resumed = stream.rest().await?;
    show_text(&resumed);
    seen.extend(resumed);

    let place = begins.place;
    step(
        3,
        &format!("compare with an uninterrupted replay of the journal{place}"),
    );
    let whole = begins.events(&id, None).await?.rest().await?;
    ensure!(seen == whole, "the pieces are not the whole");
    println!(
        "   {} events in two pieces = {} events in one: nothing lost, nothing doubled ✓",
        seen.len(),
        whole.len()
    );
    Ok((id, whole))
}

/// A second device joins while the answer runs.
async fn second_reader(client: &Client) -> anyhow::Result<()> {
    step(4, "attach a second reader while an answer runs");
    let mut first = client.ask(Length::Short, None).await?;
    let id = first.id()?;
    let mut one = first.take(4).await?;
    let mut second = client.events(&id, None).await?;
    let (rest, two) = tokio::try_join!(first.rest(), second.rest())?;
    one.extend(rest);
    ensure!(one == two, "the two readers saw different answers");
    println!(
        "   the first saw {} events, the second, who came late, the same {} ✓",
        one.len(),
        two.len()
    );
    Ok(())
}

/// Only an explicit stop cancels.
async fn stop_one(number: u32, begins: &Client, stops: &Client) -> anyhow::Result<()> {
    step(number, &format!("stop a generation{}", stops.place));
    let mut stream = begins.ask(Length::Short, None).await?;
    let id = stream.id()?;
    stream.take(2).await?;
    let answer = stops.stop(&id).await?;
    let rest = stream.rest().await?;
    println!("   POST /v1/streams/{id}/stop");
    println!("   {answer}");
    ensure!(
        answer.contains("\"status\":\"stopped\""),
        "it was not stopped"
    );
    ensure!(
        rest.last().is_some_and(|last| last.data == "[DONE]"),
        "the reader saw no end"
    );
    println!("   its reader{} saw a proper end ✓", begins.place);
    Ok(())
}

fn point_an_app(client: &Client, id: &str) {
    println!("\nTo use it, put it in front of your inference server and point apps at it:\n");
    println!("   streamweld serve --backend http://127.0.0.1:8000");
    println!("   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python your_app.py");
    println!("\nTo resume by hand (the demo's server ends with it):\n");
    println!(
        "   curl -N -H 'Last-Event-ID: {id}:7' http://{}/v1/streams/{id}/events",
        client.addr
    );
}

fn step(number: u32, what: &str) {
    println!("\n{number}. {what}");
}

fn show_text(seen: &[Seen]) {
    let text: String = seen.iter().filter_map(Seen::text).collect();
    println!("   {text:?}");
}

async fn start_mock() -> anyhow::Result<Mock> {
    let script = Script {
        tokens: Some(24),
        pace: Duration::from_millis(40),
        ..Script::default()
    };
    Mock::bind(
        "127.0.0.1:0",
        MockConfig {
            default: script,
            ..MockConfig::default()
        },
    )
    .await
    .context("cannot start the fake inference server")
}

async fn start_server(
    backend: &BackendUrl,
    model: &str,
) -> anyhow::Result<(Client, oneshot::Sender<()>)> {
    let mut config = Config::new(Backend::named("demo", backend.clone()));
    config.listen = ([127, 0, 0, 1], 0).into();
    config.admin_listen = ([127, 0, 0, 1], 0).into();
    config.shutdown_grace = Duration::ZERO;
    let server = Server::bind(config).await?;
    let addr = server.data_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    // Ends when `stop` is used or dropped, at the latest with the runtime.
    tokio::spawn(server.run(async { drop(stopped.await) }));
    Ok((
        Client {
            addr,
            model: model.to_owned(),
            place: "",
        },
        stop,
    ))
}
