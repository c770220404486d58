//! `streamweld streams`, `migrate` and `backends`: what an operator asks of a running server (protocol.md 12).
//!
//! Exit codes: 0 when it is done; 1 when the server refuses it, or a drain leaves something behind; 3 when nobody that
//! is a Streamweld answered.

mod api;
mod table;

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use self::api::{Answer, Api};
use crate::args::{
    Admin, BackendsCommand, BackendsWhat, Drain, Format, Migrate, Streams, StreamsList, StreamsWhat,
};
use crate::serve::runtime;

/// What the server has to answer by itself in this time.
const SOON: Duration = Duration::from_secs(30);
/// A move waits for a backend, and for the first word of it.
const MOVE: Duration = Duration::from_secs(600);
/// When there was no answer.
const UNREACHABLE: u8 = 3;

/// Lists streams, shows or stops one.
pub(crate) fn streams(args: &Streams) -> anyhow::Result<ExitCode> {
    let ask = match &args.what {
        None => list(&args.list),
        Some(StreamsWhat::List(filter)) => list(filter),
        Some(StreamsWhat::Show { id }) => Ask::get(
            format!("/admin/streams/{id}"),
            "streamweld.stream",
            table::members,
        ),
        Some(StreamsWhat::Stop { id }) => Ask::post(
            format!("/admin/streams/{id}/stop"),
            "streamweld.stop",
            table::stopped,
        ),
    };
    run(&args.admin, &ask)
}

/// Moves a stream, or asks whether it would move.
pub(crate) fn migrate(args: &Migrate) -> anyhow::Result<ExitCode> {
    let dry_run = if args.dry_run { "?dry_run=true" } else { "" };
    let path = format!("/admin/streams/{}/migrate{dry_run}", args.id);
    let ask = Ask {
        within: MOVE,
        holds: |answer| answer["would_move"] != false,
        ..Ask::post(path, "streamweld.migration", table::migration)
    };
    run(&args.admin, &ask)
}

/// Has a replica leave.
pub(crate) fn drain(args: &Drain) -> anyhow::Result<ExitCode> {
    let wait = args.wait.unwrap_or_default().saturating_sub(args.after);
    let ask = Ask {
        after: args.after,
        within: wait + SOON,
        holds: |answer| answer["drained"] == true,
        ..Ask::post(
            format!("/admin/drain?timeout={}", in_query(wait)),
            "streamweld.replica_drain",
            table::left,
        )
    };
    let done = run(&args.admin, &ask)?;
    // Without waiting there is nothing that could be left behind.
    Ok(match args.wait {
        None if done == ExitCode::from(1) => ExitCode::SUCCESS,
        _ => done,
    })
}

/// As the server reads it: no space in a query.
fn in_query(time: Duration) -> String {
    humantime::format_duration(time)
        .to_string()
        .replace(' ', "%20")
}

/// Lists backends, drains or undrains one.
pub(crate) fn backends(args: &BackendsCommand) -> anyhow::Result<ExitCode> {
    let ask = match &args.what {
        None | Some(BackendsWhat::List) => {
            Ask::get("/admin/backends".to_owned(), "list", table::backends)
        }
        Some(BackendsWhat::Drain { name, timeout }) => {
            let wait = in_query(*timeout);
            Ask {
                within: *timeout + SOON,
                holds: |answer| answer["drained"] == true,
                ..Ask::post(
                    format!("/admin/backends/{name}/drain?timeout={wait}"),
                    "streamweld.drain",
                    table::drain,
                )
            }
        }
        Some(BackendsWhat::Undrain { name }) => Ask::post(
            format!("/admin/backends/{name}/undrain"),
            "streamweld.backend",
            table::undrained,
        ),
    };
    run(&args.admin, &ask)
}

/// One request, and what is made of its answer.
struct Ask {
    method: http::Method,
    path: String,
    /// What the answer is, if it is ours.
    object: &'static str,
    /// So long after the call of the command.
    after: Duration,
    within: Duration,
    /// How people are shown it.
    show: fn(&Value) -> String,
    /// Whether what was wished for is so.
    holds: fn(&Value) -> bool,
}

impl Ask {
    fn get(path: String, object: &'static str, show: fn(&Value) -> String) -> Self {
        Self {
            method: http::Method::GET,
            path,
            object,
            after: Duration::ZERO,
            within: SOON,
            show,
            holds: |_| true,
        }
    }

    fn post(path: String, object: &'static str, show: fn(&Value) -> String) -> Self {
        Self {
            method: http::Method::POST,
            ..Self::get(path, object, show)
        }
    }
}

fn list(filter: &StreamsList) -> Ask {
    let age = filter
        .older_than
        .map(|age| humantime::format_duration(age).to_string());
    let limit = filter.limit.map(|limit| limit.to_string());
    let filters = [
        ("status", filter.status.as_ref()),
        ("model", filter.model.as_ref()),
        ("backend", filter.backend.as_ref()),
        ("older_than", age.as_ref()),
        ("limit", limit.as_ref()),
    ];
    let mut path = "/admin/streams".to_owned();
    let given = filters
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    for (at, (name, value)) in given.enumerate() {
        let before = if at == 0 { '?' } else { '&' };
        path.push_str(&format!("{before}{name}={}", encoded(value)));
    }
    Ask::get(path, "list", table::streams)
}

/// As a value of a query.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn run(admin: &Admin, ask: &Ask) -> anyhow::Result<ExitCode> {
    let api = Api::new(admin)?;
    let answer = runtime(Some(1))?.block_on(async {
        sleep(ask.after).await;
        api.send(ask.method.clone(), &ask.path, ask.within).await
    });
    let answer = match answer.and_then(|answer| answer.ours(ask.object)) {
        Ok(answer) => answer,
        Err(reason) => {
            say(&mut stderr(), &format!("streamweld: {reason}"));
            return Ok(ExitCode::from(UNREACHABLE));
        }
    };
    let Answer { status, body } = answer;
    let is_refused = !status.is_success();
    match (admin.format, is_refused) {
        (Format::Json, _) => say(&mut stdout(), &body.to_string()),
        (Format::Table, false) => say(&mut stdout(), &(ask.show)(&body)),
        (Format::Table, true) => say(&mut stderr(), &table::refused(&body)),
    }
    let is_done = !is_refused && (ask.holds)(&body);
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Whoever reads it may have gone, such as `head`; then nobody has to be told.
fn say(out: &mut impl Write, text: &str) {
    let _ = writeln!(out, "{}", text.trim_end_matches('\n'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_written_as_a_query_has_them() {
        let none = StreamsList::default();
        assert_eq!(list(&none).path, "/admin/streams");
        let all = StreamsList {
            status: Some("done".to_owned()),
            model: Some("org/ä b&c".to_owned()),
            backend: Some("a-1".to_owned()),
            older_than: Some(Duration::from_secs(90)),
            limit: Some(5),
        };
        let expected = "/admin/streams?status=done&model=org%2F%C3%A4%20b%26c&backend=a-1&older_than=1m%2030s&limit=5";
        assert_eq!(list(&all).path, expected);
    }
}
