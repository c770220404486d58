//! What every request shares.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use http::HeaderMap;
use streamweld_generation::{Access, CredentialHeaders, Producer, Shared};
use streamweld_upstream::Client;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::admin::Drains;
use crate::backends::Backends;
use crate::examined::Examined;
use crate::feed::Feed;
use crate::followed::Followed;
use crate::io::Breaker;
use crate::leaving::Leaving;
use crate::metrics::Metrics;
use crate::ownerless::Ownerless;
use crate::responses::Learning;
use crate::settings::{Changing, Settings};
use crate::traced::Traces;

/// The state of one server.
pub(crate) struct App {
    /// Itself, for what outlives a call.
    pub(crate) me: Weak<App>,
    pub(crate) backends: Backends,
    pub(crate) client: Client,
    pub(crate) examined: Examined,
    pub(crate) shared: Shared,
    pub(crate) credentials: CredentialHeaders,
    settings: Changing,
    pub(crate) metrics: Metrics,
    pub(crate) followed: Followed,
    pub(crate) ownerless: Ownerless,
    pub(crate) leaving: Leaving,
    pub(crate) learning: Learning,
    pub(crate) drains: Drains,
    pub(crate) feed: Arc<Feed>,
    pub(crate) traces: Arc<Traces>,
    /// Producers: shutdown waits for them.
    pub(crate) producers: TaskTracker,
    shutting_down: AtomicBool,
}

impl App {
    pub(crate) fn new(
        backends: Backends,
        client: Client,
        shared: Shared,
        credentials: CredentialHeaders,
        settings: Settings,
        metrics: Metrics,
        (feed, traces): (Arc<Feed>, Arc<Traces>),
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            credentials,
            backends,
            client,
            examined: Examined::default(),
            shared,
            settings: Changing::new(settings),
            metrics,
            followed: Followed::default(),
            ownerless: Ownerless::default(),
            leaving: Leaving::default(),
            learning: Learning::default(),
            drains: Drains::default(),
            feed,
            traces,
            producers: TaskTracker::new(),
            shutting_down: AtomicBool::new(false),
        })
    }

    /// The settings as they are now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.now()
    }

    /// What holds from now on: for requests, and for generations that begin.
    pub(crate) fn change(&self, settings: Settings) {
        self.settings.replace(settings);
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    pub(crate) fn start_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    /// Until when a caller that comes now is held for a journal that does not answer.
    pub(crate) fn held(&self) -> Instant {
        Instant::now() + self.settings().edge.hold
    }

    /// Who the caller is, as far as generations are concerned.
    pub(crate) fn access(&self, headers: &HeaderMap) -> Access {
        Access::of(&self.credentials, |name| {
            headers
                .get_all(name)
                .iter()
                .map(http::HeaderValue::as_bytes)
        })
    }

    /// What a generation that begins now shares with others, and what it is held to.
    pub(crate) fn shared(&self) -> Shared {
        Shared {
            limits: Arc::clone(&self.settings().limits),
            ..self.shared.clone()
        }
    }

    pub(crate) fn producer(&self, handle: Arc<streamweld_generation::Handle>) -> Producer {
        Producer::new(self.shared(), handle)
    }
}

/// A request, and the connection that it came on.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) addr: SocketAddr,
    /// By which this request is known in its answer and in the log.
    pub(crate) request_id: Arc<str>,
    pub(crate) shown: Shown,
    /// Tells the connection what it carries, and breaks it where its protocol has no other way.
    pub(crate) breaker: Breaker,
}

/// What a peer has shown of who it is, beside what a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// One of the authority that its listener wants.
    Certificate,
}
