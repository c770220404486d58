//! A relay: how this replica asks others, and what it listens with.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use streamweld_journal::Call;
use streamweld_journal_redis::relay as contract;
use streamweld_journal_redis::relay::{Answer, Ask, NoAnswer};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::connection::{Connections, host};
use crate::counters::{Counters, Failure};
use crate::identity::{Current, Files, IdentityError};
use crate::listener::Listener;
use crate::told::Answered;
use crate::wire::{self, Frame};

/// What a relay is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the others ask.
    pub listen: SocketAddr,
    /// Where they reach that, as `host:port`; where it listens, if that says it. With port 0 there, it is the port that
    /// was given.
    pub advertise: Option<String>,
    /// The name that all their certificates have. `None`: each has the host of its address.
    pub name: Option<String>,
    /// Who this replica is, and whom it believes.
    pub files: Files,
}

impl Config {
    /// Whether others would believe this replica.
    ///
    /// # Errors
    /// They would not, or a file cannot be used.
    pub fn check(&self) -> Result<(), IdentityError> {
        self.files.check(&self.looked_for())
    }

    /// The name that others look for in its certificate.
    fn looked_for(&self) -> String {
        let advertised = self.advertise.as_deref().and_then(host);
        match (&self.name, advertised) {
            (Some(name), _) => name.clone(),
            (None, Some(host)) => host.to_owned(),
            (None, None) => self.listen.ip().to_string(),
        }
    }
}

/// A handle. See the crate.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    address: String,
    name: Option<String>,
    identity: Arc<Current>,
    connections: Connections,
    counters: Counters,
}

impl Relay {
    /// Takes the port, and reads the certificates.
    ///
    /// # Errors
    /// Either cannot be had.
    pub async fn bind(config: Config) -> Result<(Self, Listener), BindError> {
        let name = config.looked_for();
        let identity = Arc::new(Current::load(config.files, name)?);
        let listen = config.listen;
        let failed = |source| BindError::Listen {
            addr: listen,
            source,
        };
        let tcp = TcpListener::bind(listen).await.map_err(failed)?;
        let address = match config.advertise {
            Some(address) => address,
            None => tcp.local_addr().map_err(failed)?.to_string(),
        };
        let counters = Counters::default();
        let listener = Listener::new(tcp, Arc::clone(&identity), counters.clone());
        let relay = Self(Arc::new(Inner {
            address,
            name: config.name,
            identity,
            connections: Connections::default(),
            counters,
        }));
        Ok((relay, listener))
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }
}

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Its port cannot be had.
    #[error("cannot listen on {addr}")]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Its certificates are of no use.
    #[error("cannot set up the relay")]
    Identity(#[from] IdentityError),
}

impl contract::Relay for Relay {
    fn address(&self) -> &str {
        &self.0.address
    }

    fn ask(&self, address: &str, ask: Ask) -> Call<'static, Result<Answer, NoAnswer>> {
        let (inner, address) = (Arc::clone(&self.0), address.to_owned());
        Call::under_way(async move {
            let answered = timeout(ANSWER, inner.ask(&address, ask)).await;
            match answered.unwrap_or(Err(Failure::Timeout)) {
                Ok(answer) => answer.ok_or(NoAnswer::NotHere),
                Err(failure) => {
                    inner.counters.failed(failure);
                    tracing::debug!(address, ?failure, "a replica cannot be asked");
                    Err(NoAnswer::Unreachable)
                }
            }
        })
    }
}

impl Inner {
    async fn ask(&self, address: &str, ask: Ask) -> Result<Option<Answer>, Failure> {
        let name = self.name.as_deref();
        let connection = self.connections.to(address, name, &self.identity).await?;
        let target = format!("https://{address}{}", wire::target(&ask));
        let response = connection.get(target).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(Failure::BadAnswer),
        }
        let body = response.into_body();
        let mut answered = Answered::new(body, connection, self.counters.clone());
        let about = match ask.writer {
            Some(_) => None,
            None => match poll_fn(|cx| answered.poll_frame(cx)).await {
                Some(Frame::About(about)) => Some(about),
                Some(Frame::Told(_)) | None => return Err(Failure::BadAnswer),
            },
        };
        Ok(Some(Answer {
            about,
            telling: Box::new(answered),
        }))
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("address", &self.0.address)
            .finish_non_exhaustive()
    }
}

/// How long a replica may take, with the connection to it.
const ANSWER: Duration = Duration::from_secs(2);
