//! One generation that has ended, as each kind of reader sees it.
//!
//! The kinds differ in how an end looks to them (protocol.md 7.4): the client of the request that made it, the same
//! request again with a cursor, the resume URL, and a reader with control events.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use streamweld_mock::{Dialect, Script};

use crate::client::{Client, End, Response};
use crate::harness::Harness;
use crate::sse::{Block, blocks};

/// What every kind of reader was shown.
#[derive(Debug)]
pub struct Shown {
    /// How its events are understood.
    pub dialect: Dialect,
    /// Its id.
    pub id: String,
    /// To the client that made it.
    pub first: (Vec<u8>, End),
    /// To the same request again, from the start.
    pub again: (Vec<u8>, End),
    /// To the resume URL, from the start.
    pub replay: (Vec<u8>, End),
    /// To a reader with control events, from the start.
    pub control: (Vec<u8>, End),
    /// To the same request again, behind the last event but before the terminal: status, body, end.
    pub rest: (u16, Vec<u8>, End),
    /// Its state.
    pub state: Value,
    /// The request as the mock saw it, counted from 0.
    pub request: usize,
}

/// Sends a streaming request of this dialect that is like no other, so that it joins none.
pub async fn ask(client: &Client, dialect: Dialect) -> Response {
    client.send("POST", dialect.path(), &question()).await
}

/// The body of a streaming request that is like no other.
#[must_use]
pub fn question() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(r#"{{"model":"m","stream":true,"user":"user {number}"}}"#)
}

impl Shown {
    /// Makes a generation, and shows it to every kind of reader once it has ended.
    pub async fn of(harness: &Harness, dialect: Dialect) -> Self {
        Self::held(harness, dialect, 0, None).await
    }

    /// The same, with the mock held at a gate until its client has been given so many events.
    ///
    /// # Panics
    /// When it does not end, or is not to be found afterwards.
    pub async fn held(
        harness: &Harness,
        dialect: Dialect,
        events: usize,
        gate: Option<&str>,
    ) -> Self {
        let request = harness.mock.recorder().count();
        let mut response = ask(&harness.client, dialect).await;
        assert_eq!(response.status, 200);
        let id = response.id();
        let mut body = response.body.blocks(events).await;
        if let Some(gate) = gate {
            harness.mock.gates().step(gate);
        }
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        let state = harness
            .client
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        let terminal = state["terminal"]["seq"]
            .as_u64()
            .unwrap_or_else(|| panic!("no terminal: {state}"));
        let from = |seq: u64| harness.client.with("last-event-id", &format!("{id}:{seq}"));
        let again = ask(&from(0), dialect).await.all().await;
        let replay = harness.client.events(&id).await.all().await;
        let control = harness.client.with("x-streamweld-events", "control");
        let control = control.events(&id).await.all().await;
        let rest = ask(&from(terminal - 1), dialect).await;
        let rest_status = rest.status;
        let (rest, rest_end) = rest.all().await;
        for over in [
            ask(&from(terminal), dialect).await,
            from(terminal).events(&id).await,
        ] {
            assert_eq!(over.status, 204, "nothing lies behind the terminal");
        }
        assert_eq!(
            harness.mock.recorder().count(),
            request + 1,
            "one request to the backend"
        );
        Self {
            dialect,
            id,
            first: (body, end),
            again,
            replay,
            control,
            rest: (rest_status, rest, rest_end),
            state,
            request,
        }
    }

    /// The events that `script` has before its first fault.
    ///
    /// # Panics
    /// When the mock has forgotten the request.
    #[must_use]
    pub fn expected(&self, harness: &Harness, script: &Script) -> Vec<Block> {
        let request = harness.mock.recorder().request(self.request);
        let ask = request.expect("the request").ask(self.dialect);
        blocks(&script.expected(&ask).concat())
    }

    /// Checks that all of these were journaled, and then a success.
    ///
    /// # Panics
    /// When any reader was shown anything else.
    #[track_caller]
    pub fn assert_done(&self, events: &[Block], end: &str, reasons: &[&str]) {
        assert_eq!(self.first.1, End::Proper);
        assert!(self.assert_first(events).is_empty());
        assert_eq!(self.again.1, End::Proper);
        assert!(self.assert_events(&self.again.0, events).is_empty());
        assert_eq!(self.replay, self.again);
        assert_eq!(self.rest.0, 204);
        let terminal = self.assert_control(events, &[], "done");
        assert_eq!(terminal["end"], end);
        assert_eq!(terminal["reasons"], Value::from(reasons.to_vec()));
        assert_eq!(self.state["status"], "done");
        assert_eq!(self.state["terminal"]["kind"], "done");
        assert_eq!(self.state["terminal"]["code"], Value::Null);
        assert_eq!(self.state["terminal"]["end"], end);
        assert_eq!(
            self.state["terminal"]["reasons"],
            Value::from(reasons.to_vec())
        );
    }

    /// Checks that all of these were journaled, and then an error. Gives the payload of the terminal.
    ///
    /// # Panics
    /// When any reader was shown anything else.
    #[track_caller]
    pub fn assert_failed(&self, events: &[Block], code: &str) -> Value {
        let has_form = self.dialect != Dialect::Generic;
        // Without a cursor: the form, then the abort.
        assert_eq!(self.first.1, End::Fin, "an error ends with an abort");
        let mut form = self.assert_first(events);
        assert_eq!(form.len(), usize::from(has_form));
        for block in &mut form {
            assert_eq!(block.id, None, "whoever cannot resume gets no id");
            if self.is_plain() {
                assert_eq!(block.data, None, "plain readers see no event in it");
                block.data = block.bare.take();
            }
            self.assert_form(block, code);
        }
        // With one: the form with an id, then a clean end. Without a form there is the break alone.
        for (bytes, end) in [&self.again, &self.replay] {
            let resumed = self.assert_events(bytes, events);
            if has_form {
                assert_eq!(*end, End::Proper);
                assert_eq!(without_ids(&resumed), without_ids(&form));
                assert_eq!(resumed[0].seq(), self.terminal_seq());
            } else {
                // Where nothing is left to show, the answer is 204.
                let nothing = events.is_empty();
                assert_eq!(*end, if nothing { End::Proper } else { End::Fin });
                assert!(resumed.is_empty());
            }
        }
        if has_form {
            assert_eq!((self.rest.0, self.rest.2), (200, End::Proper));
            assert_eq!(without_ids(&blocks(&self.rest.1)), without_ids(&form));
        } else {
            assert_eq!(self.rest.0, 204);
        }
        let terminal = self.assert_control(events, &without_ids(&form), "error");
        assert_eq!(terminal["code"], code);
        assert!(!terminal["message"].as_str().expect("a message").is_empty());
        assert_eq!(self.state["status"], "error");
        assert_eq!(self.state["terminal"]["kind"], "error");
        assert_eq!(self.state["terminal"]["code"], code);
        assert_eq!(self.state["terminal"]["message"], terminal["message"]);
        terminal
    }

    fn terminal_seq(&self) -> u64 {
        self.state["terminal"]["seq"].as_u64().expect("a sequence")
    }

    /// Readers of this dialect that have not opted in are shown neither ids nor comments.
    fn is_plain(&self) -> bool {
        self.dialect == Dialect::Gemini
    }

    /// Checks that the client that made it was shown these events first. Gives what it was shown behind them.
    #[track_caller]
    fn assert_first(&self, events: &[Block]) -> Vec<Block> {
        if !self.is_plain() {
            return self.assert_events(&self.first.0, events);
        }
        let mut shown = blocks(&self.first.0);
        let rest = shown.split_off(events.len());
        assert_eq!(shown, without_ids(events), "not even an id");
        rest
    }

    /// Checks that `bytes` begin with these events under their sequences. Gives what follows them.
    #[track_caller]
    fn assert_events(&self, bytes: &[u8], events: &[Block]) -> Vec<Block> {
        let mut shown = blocks(bytes);
        assert!(
            shown.len() >= events.len(),
            "{shown:#?} instead of {events:#?}"
        );
        let rest = shown.split_off(events.len());
        assert_eq!(without_ids(&shown), without_ids(events));
        for (seq, block) in (2..).zip(&shown) {
            assert_eq!(
                block.id.as_deref(),
                Some(format!("{}:{seq}", self.id).as_str())
            );
        }
        assert_eq!(self.terminal_seq(), 2 + events.len() as u64);
        rest
    }

    /// Checks what the reader with control events was shown. Gives the payload of the terminal.
    #[track_caller]
    fn assert_control(&self, events: &[Block], form: &[Block], kind: &str) -> Value {
        let (bytes, end) = &self.control;
        assert_eq!(
            *end,
            End::Proper,
            "control events are followed by a clean end"
        );
        let mut shown = blocks(bytes);
        let open = shown.remove(0);
        assert_eq!(open.event.as_deref(), Some("streamweld.open"));
        assert_eq!(open.seq(), 1);
        let terminal = shown.pop().expect("a terminal");
        assert_eq!(
            terminal.event.as_deref(),
            Some(format!("streamweld.{kind}").as_str())
        );
        assert_eq!(terminal.seq(), self.terminal_seq());
        let forms = shown.split_off(events.len());
        assert_eq!(without_ids(&shown), without_ids(events));
        assert_eq!(forms, form, "the form has no id beside a control event");
        let payload: Value =
            serde_json::from_str(&terminal.data.expect("data")).expect("one line of JSON");
        assert_eq!(payload["stream_id"], self.id.as_str());
        assert_eq!(payload["seq"], self.terminal_seq());
        assert_eq!(payload["attempts"], 1);
        assert_eq!(payload["time"], self.state["terminal"]["time"]);
        payload
    }

    #[track_caller]
    fn assert_form(&self, form: &Block, code: &str) {
        let data = form.data.as_deref().expect("data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        let error = data["error"].as_object().expect("an error");
        match self.dialect {
            Dialect::Gemini => {
                assert_eq!(error["code"], 500);
                assert_eq!(error["details"][0]["reason"], code);
            }
            _ => assert_eq!(error["code"], code),
        }
        assert!(error["message"].is_string());
        match self.dialect {
            Dialect::OpenAiResponses => {
                assert_eq!(form.event.as_deref(), Some("error"));
                assert_eq!(data["type"], "error");
                assert_eq!(data["code"], code);
                assert_eq!(data["message"], error["message"]);
                assert!(data["sequence_number"].is_u64());
                assert_eq!(error["type"], "streamweld_error");
            }
            Dialect::AnthropicMessages => {
                assert_eq!(form.event.as_deref(), Some("error"));
                assert_eq!(data["type"], "error");
                assert_eq!(error["type"], "api_error");
            }
            Dialect::Gemini => {
                assert_eq!(form.event, None);
                assert_eq!(error["status"], "INTERNAL");
            }
            Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Generic => {
                assert_eq!(form.event, None);
                assert_eq!(error["type"], "streamweld_error");
                assert_eq!(error["param"], Value::Null);
            }
        }
    }
}

/// The same blocks as a reader without ids would see them.
#[must_use]
pub fn without_ids(blocks: &[Block]) -> Vec<Block> {
    blocks
        .iter()
        .map(|block| Block {
            id: None,
            ..block.clone()
        })
        .collect()
}
