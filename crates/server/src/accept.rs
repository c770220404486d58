//! A listener at work: which connections are let in, how many at once, and the task of each.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use streamweld_tls::Listener as Tls;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use crate::app::{App, Peer};
use crate::body::Body;
use crate::connection::{Http, Phase};
use crate::descriptors::Descriptors;
use crate::listen::{Listen, Stream};
use crate::secure;
use crate::settings::Settings;

/// What the connections of one listener have in common.
pub(crate) struct Door {
    pub(crate) app: Arc<App>,
    pub(crate) name: Name,
    pub(crate) http: Http,
    /// All connections of the server.
    pub(crate) connections: TaskTracker,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Clients are let in only while some are left for them.
    pub(crate) descriptors: Option<Descriptors>,
}

/// Which listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Data,
    Admin,
}

impl Name {
    /// As a label of metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Admin => "admin",
        }
    }

    /// TLS of this listener, where it speaks it.
    pub(crate) fn tls(self, settings: &Settings) -> Option<Tls> {
        match self {
            Self::Data => settings.tls.clone(),
            Self::Admin => settings.admin_tls.clone(),
        }
    }

    fn most(self, settings: &Settings) -> usize {
        match self {
            Self::Data => settings.edge.max_connections,
            Self::Admin => settings.edge.max_admin_connections,
        }
    }
}

/// How long an accept that failed for want of a resource waits before the next.
const BACKOFF: Duration = Duration::from_millis(50);
/// A crowd that comes and goes is worth one line now and then.
const TELL_AGAIN: Duration = Duration::from_secs(60);

impl Door {
    /// Accepts for ever, but no more at once than the listener may have: those beyond wait in the backlog of the system, at
    /// no cost here. Each connection is a task that the tracker knows; its panic ends it alone, and is counted.
    pub(crate) async fn accept<S, F>(mut self, listener: impl Listen, answer: S) -> Infallible
    where
        S: Fn(Request<Incoming>, Peer) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let most = self.name.most(&self.app.settings());
        let room = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let mut told: Option<Instant> = None;
        loop {
            let (stream, addr) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !is_of_one_connection(&error) {
                        // Out of descriptors or memory: the backlog keeps the others until some are free again.
                        tracing::warn!(%error, "cannot accept");
                        sleep(BACKOFF).await;
                    }
                    continue;
                }
            };
            if let (Some(descriptors), Some(socket)) = (&mut self.descriptors, stream.socket()) {
                descriptors.room_for(socket).await;
            }
            if room.available_permits() == 0 && told.is_none_or(|at| at.elapsed() >= TELL_AGAIN) {
                told = Some(Instant::now());
                let listener = self.name.as_str();
                tracing::warn!(listener, most, "all connections are taken: others wait");
            }
            let permit = Arc::clone(&room).acquire_owned().await;
            let permit = permit.expect("nobody closes it");
            let tls = self.name.tls(&self.app.settings());
            let open = self.app.metrics.connection(self.name);
            let panics = self.app.metrics.panics("connection");
            let (http, phase, answer) = (self.http.clone(), self.phase.clone(), answer.clone());
            self.connections.spawn(async move {
                let _while_it_lasts = (permit, open, panics);
                let Some(tls) = tls else {
                    return http.serve(stream, addr, phase, answer).await;
                };
                // Boxed: in the clear nothing is kept for it.
                let secured = async move {
                    let pace = http.write_timeout();
                    if let Some(stream) = secure::handshake(stream, tls, pace).await {
                        http.serve_secured(stream, addr, phase, answer).await;
                    }
                };
                Box::pin(secured).await;
            });
        }
    }
}

/// The peer of this one accept has gone again; the listener is well.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted | Kind::ConnectionReset | Kind::Interrupted
    )
}
