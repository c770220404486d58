//! The relay that was asked for, and what it tells of.

use std::sync::Arc;

use anyhow::Context;
use prometheus_client::registry::Registry;
use streamweld_journal::StreamId;
use streamweld_relay::{Config, Files, Generations, Listener, Owned, Relay};
use streamweld_server::{OwnedHere, Server};

use crate::args::Serve;

/// What it is made from. `None`: there is none, or a file of it was not named.
pub(crate) fn settings(args: &Serve) -> Option<Config> {
    Some(Config {
        listen: args.relay_listen?,
        advertise: args.relay_advertise.clone(),
        name: args.relay_name.clone(),
        files: Files {
            certificate: args.relay_cert.clone()?,
            key: args.relay_key.clone()?,
            ca: args.relay_ca.clone()?,
        },
    })
}

/// Takes its port.
///
/// # Errors
/// It cannot be had, or a certificate is of no use (any more).
pub(crate) async fn bind(config: Option<Config>) -> anyhow::Result<Option<(Relay, Listener)>> {
    let Some(config) = config else {
        return Ok(None);
    };
    Relay::bind(config).await.map(Some).context("the relay")
}

/// Answers other replicas for as long as it is polled.
pub(crate) async fn run(listener: Listener, owned: OwnedHere) {
    match listener.run(Arc::new(Here(owned))).await {}
}

/// Shows what it counts with the metrics of the server.
pub(crate) fn show(relay: &Relay, server: &Server) {
    let mut registry = Registry::default();
    relay.counters().register(&mut registry);
    server.show_metrics(registry);
}

/// The generations of a server.
struct Here(OwnedHere);

impl Generations for Here {
    fn owned(&self, id: StreamId) -> Option<Owned> {
        let owned = self.0.find(id)?;
        Some(Owned {
            window: owned.window,
            access: owned.access,
            hold: Box::new(owned.presence),
        })
    }
}
