//! Moving one generation to another backend, or asking whether it could be (protocol.md 12.1).

use std::sync::Arc;

use serde::Serialize;
use streamweld_generation::migration::{Order, Report};
use streamweld_journal::StreamId;

use super::Done;
use super::streams::bad;
use crate::app::App;
use crate::attach::{self, Readable};
use crate::caller::Caller;
use crate::error::{Error, ErrorCode};
use crate::gates::{self, GateState};
use crate::{elsewhere, query, streams};

/// Answers when it is known what became of it.
pub(super) async fn migrate(app: &Arc<App>, id: &str, query: Option<&str>) -> Result<Done, Error> {
    let id = streams::parse_id(id)?;
    let order = match query::first(query, "dry_run").as_deref() {
        None | Some(b"false") => Order::Move,
        Some(b"true") => Order::DryRun,
        Some(_) => return Err(bad("dry_run is true or false")),
    };
    let found = attach::find(app, id, &Caller::Operator).await?;
    match &found.handle {
        Some(handle) => answer(id, handle.order(order).await),
        None => Err(not_here(&found)),
    }
}

/// Why what has no producer here cannot be moved.
fn not_here(found: &Readable) -> Error {
    let id = found.window.id();
    if found.window.terminal().is_some() {
        return over(id);
    }
    if !found.has_owner() {
        return elsewhere::owner_lost(id);
    }
    let message =
        "another replica runs this stream; ask the admin listener of each of the others for it";
    Error::new(ErrorCode::NotOwner, message).about(id)
}

fn over(id: StreamId) -> Error {
    Error::new(ErrorCode::AlreadyTerminal, "it is over").about(id)
}

fn answer(id: StreamId, report: Report) -> Result<Done, Error> {
    #[derive(Serialize)]
    struct Tried {
        object: &'static str,
        stream_id: String,
        would_move: bool,
        target: Option<String>,
        method: Option<&'static str>,
        gates: Vec<GateState>,
    }
    #[derive(Serialize)]
    struct Moved<'a> {
        object: &'static str,
        stream_id: String,
        moved: bool,
        from: &'a str,
        to: &'a str,
        method: &'static str,
    }
    let (object, stream_id) = ("streamweld.migration", id.to_string());
    match report {
        Report::Gates(judged) => {
            let would_move = judged.is_open();
            let gates = GateState::all(&judged);
            // Without a method it would be asked anew, but only if it moved.
            let known = would_move || judged.method.is_some();
            let response = streams::json(&Tried {
                object,
                stream_id,
                would_move,
                method: known.then(|| gates::method(judged.method)),
                target: judged.target,
                gates,
            });
            let outcome = match would_move {
                true => "it would move",
                false => "it would stay",
            };
            Ok(Done {
                response,
                outcome: outcome.to_owned(),
            })
        }
        Report::Moved { from, to, method } => {
            let response = streams::json(&Moved {
                object,
                stream_id,
                moved: true,
                from: &from,
                to: &to,
                method: gates::method(method),
            });
            Ok(Done {
                response,
                outcome: format!("moved from {from} to {to}"),
            })
        }
        Report::Stays { judged, reason } => Err(Error::new(ErrorCode::MigrationRefused, reason)
            .about(id)
            .with_gates(GateState::refusing(&judged))),
        Report::Over => Err(over(id)),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};
    use streamweld_dialect::Method;
    use streamweld_generation::migration::Judged;
    use streamweld_generation::migration::gates::{Gate, Verdict};

    use super::*;

    const ID: &str = "01jcv5t0q4e8x2m7n9p3r6s1ab";

    fn judged(refusal: Option<&str>, method: Option<Method>) -> Judged {
        let verdict = |gate, refusal: Option<&str>| Verdict {
            gate,
            refusal: refusal.map(str::to_owned),
        };
        Judged {
            verdicts: vec![
                verdict(Gate::Policy, None),
                verdict(Gate::ToolCall, refusal),
            ],
            target: Some("b".to_owned()),
            method,
        }
    }

    async fn told(report: Report) -> (u16, Value) {
        let id = StreamId::parse(ID).expect("an id");
        let response = match answer(id, report) {
            Ok(done) => done.response,
            Err(error) => error.into_response("r"),
        };
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body");
        let value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        (status, value)
    }

    #[tokio::test]
    async fn a_dry_run_tells_every_gate() {
        let open = |refusal: Option<&str>| {
            json!([{"gate": "policy", "open": true, "message": null},
                   {"gate": "tool_call", "open": refusal.is_none(), "message": refusal}])
        };
        let shape = |would_move: bool, method: Value, gates: Value| {
            let object = "streamweld.migration";
            let target = "b";
            (
                200,
                json!({"object": object, "stream_id": ID, "would_move": would_move, "target": target,
                       "method": method, "gates": gates}),
            )
        };
        let ids = Some(Method::TokenIds);
        for (refusal, method, would_move, word) in [
            (None, ids, true, json!("token_ids")),
            (None, Some(Method::Prefill), true, json!("prefill")),
            (None, None, true, json!("restart")),
            (Some("a call had begun"), ids, false, json!("token_ids")),
            (Some("a call had begun"), None, false, Value::Null),
        ] {
            let answer = told(Report::Gates(judged(refusal, method))).await;
            assert_eq!(answer, shape(would_move, word, open(refusal)));
        }
    }

    #[tokio::test]
    async fn a_move_tells_from_where_to_where() {
        let moved = Report::Moved {
            from: "a".to_owned(),
            to: "b".to_owned(),
            method: Some(Method::TokenIds),
        };
        let expected = json!({"object": "streamweld.migration", "stream_id": ID, "moved": true, "from": "a",
                              "to": "b", "method": "token_ids"});
        assert_eq!(told(moved).await, (200, expected));
    }

    #[tokio::test]
    async fn what_stays_tells_the_gates_that_refuse() {
        let stays = Report::Stays {
            judged: judged(Some("a call had begun"), None),
            reason: "it stays: tool_call refuses".to_owned(),
        };
        let (status, answer) = told(stays).await;
        let expected = json!({"type": "streamweld_error", "code": "migration_refused",
            "message": "it stays: tool_call refuses", "stream_id": ID, "request_id": "r",
            "gates": [{"gate": "tool_call", "open": false, "message": "a call had begun"}]});
        assert_eq!((status, &answer["error"]), (409, &expected));
    }

    #[tokio::test]
    async fn what_is_over_is_already_terminal() {
        let (status, answer) = told(Report::Over).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (409, &json!("already_terminal"))
        );
        assert_eq!(answer["error"].get("gates"), None);
    }
}
