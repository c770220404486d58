//! All that a reconnecting client told.

use std::net::SocketAddr;

use super::program::Program;

/// All that a program said, by what it is about.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) client: String,
    /// Data and last event ID of each event.
    pub(super) events: Vec<(String, String)>,
    /// The `Last-Event-ID` of each request.
    pub(super) cursors: Vec<Option<String>>,
    pub(super) statuses: Vec<u64>,
    /// `readyState` at each error that concerned the connection.
    pub(super) states: Vec<u64>,
    /// The promise of `fetchEventSource` was kept.
    pub(super) resolved: bool,
    /// It had to be aborted.
    pub(super) endless: bool,
}

impl Told {
    /// Runs a program to its own end.
    pub(super) async fn by(name: &str, to: SocketAddr, args: &[&str]) -> Self {
        Self::of(Program::start(name, to, args).await).await
    }

    pub(super) async fn of(program: Program) -> Self {
        let mut told = Self {
            client: program.client.clone(),
            ..Self::default()
        };
        for line in program.ended().await {
            let text = |name: &str| line[name].as_str().map(str::to_owned);
            if let Some(data) = text("data") {
                told.events.push((data, text("id").unwrap_or_default()));
            }
            if line.get("request").is_some() {
                told.cursors.push(text("cursor"));
            }
            told.statuses.extend(line["status"].as_u64());
            told.states.extend(line["state"].as_u64());
            told.resolved |= line["resolved"] == true;
            told.endless |= line["endless"] == true;
        }
        told
    }

    pub(super) fn data(&self) -> Vec<&str> {
        self.events.iter().map(|(data, _)| data.as_str()).collect()
    }

    /// The events of ours that say that the generation failed.
    pub(super) fn errors(&self) -> usize {
        let is_error =
            |data: &&str| data.contains("\"streamweld_error\"") || data.contains("\"api_error\"");
        self.data().into_iter().filter(is_error).count()
    }

    /// The events before those.
    pub(super) fn good(&self) -> Vec<&str> {
        let mut data = self.data();
        data.truncate(data.len() - self.errors());
        data
    }
}

/// The last of so many requests came with the last id and was answered 204, and nothing followed. Ids only grow.
#[track_caller]
pub(super) fn assert_stopped_by_204(told: &Told, requests: usize) {
    assert_eq!(told.cursors.len(), requests, "{told:?}");
    assert_eq!(told.statuses.last(), Some(&204), "{told:?}");
    assert_eq!(told.states.last(), Some(&2), "CLOSED: {told:?}");
    let last = told.events.last().map(|(_, id)| id.clone());
    assert_eq!(told.cursors.last(), Some(&last), "{told:?}");
    let seqs: Vec<u64> = told
        .events
        .iter()
        .map(|(_, id)| id.split_once(':').expect("ours").1.parse().expect("a seq"))
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
}
