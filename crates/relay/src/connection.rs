//! The connection to one replica: made when it is asked, shared by all who do, closed when nobody does any more.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::counters::Failure;
use crate::identity::Current;
use crate::seldom::Seldom;

/// One for each address, while somebody holds it.
#[derive(Default)]
pub(crate) struct Connections {
    places: Mutex<HashMap<String, Arc<Place>>>,
    refused: Arc<Seldom>,
}

/// Whoever makes the connection of an address holds this; the others wait.
type Place = tokio::sync::Mutex<Weak<Connection>>;

pub(crate) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    is_answered: Arc<AtomicBool>,
    _driver: AbortOnDropHandle<()>,
}

impl Connections {
    /// The connection to an address, made if there is none.
    pub(crate) async fn to(
        &self,
        address: &str,
        name: Option<&str>,
        identity: &Arc<Current>,
    ) -> Result<Arc<Connection>, Failure> {
        let place = self.place(address);
        let mut place = place.lock().await;
        if let Some(connection) = place.upgrade() {
            if !connection.sender.is_closed() {
                return Ok(connection);
            }
        }
        let connection = Arc::new(Connection::make(address, name, identity, &self.refused).await?);
        *place = Arc::downgrade(&connection);
        Ok(connection)
    }

    fn place(&self, address: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        // Replicas come and go, each with an address of its own.
        places.retain(|_, place| {
            let is_idle = || {
                place
                    .try_lock()
                    .is_ok_and(|place| place.strong_count() == 0)
            };
            Arc::strong_count(place) > 1 || !is_idle()
        });
        Arc::clone(places.entry(address.to_owned()).or_default())
    }
}

impl Connection {
    async fn make(
        address: &str,
        name: Option<&str>,
        identity: &Arc<Current>,
        refused: &Arc<Seldom>,
    ) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|_| Failure::Connect)?;
        stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
        let name = name.or_else(|| host(address)).ok_or(Failure::Tls)?;
        let name = ServerName::try_from(name.to_owned()).map_err(|_| Failure::Tls)?;
        let tls = TlsConnector::from(identity.now().await.client);
        let stream = tls.connect(name, stream).await.map_err(|error| {
            tell(refused, address, &error);
            Failure::Tls
        })?;
        // Whoever is not let in is told so only now.
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| Failure::Tls)?;
        let is_answered = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn({
            let (address, refused) = (address.to_owned(), Arc::clone(refused));
            let is_answered = Arc::clone(&is_answered);
            async move {
                match driver.await {
                    Err(error) if !is_answered.load(Ordering::Relaxed) => {
                        tell(&refused, &address, &error);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the connection to a replica ended early");
                    }
                    Ok(()) => {}
                }
            }
        });
        Ok(Self {
            sender,
            is_answered,
            _driver: AbortOnDropHandle::new(driver),
        })
    }

    pub(crate) async fn get(&self, target: String) -> Result<Response<Incoming>, Failure> {
        let request = Request::get(target)
            .body(Empty::new())
            .map_err(|_| Failure::BadAnswer)?;
        let sent = self.sender.clone().send_request(request).await;
        let response = sent.map_err(|_| Failure::Cut)?;
        self.is_answered.store(true, Ordering::Relaxed);
        Ok(response)
    }
}

/// A replica does not let this one in, or is not believed.
fn tell(refused: &Seldom, address: &str, error: &dyn Error) {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        why.push_str(": ");
        why.push_str(&error.to_string());
        source = error.source();
    }
    if refused.is_news(address, Instant::now()) {
        tracing::warn!(address, why, "a replica cannot be asked by the relay");
    } else {
        tracing::debug!(address, why, "a replica cannot be asked by the relay");
    }
}

/// The host of an address, without its port.
pub(crate) fn host(address: &str) -> Option<&str> {
    let (host, _) = address.rsplit_once(':')?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    Some(bare.unwrap_or(host))
}

/// What one generation may have on its way.
const STREAM_WINDOW: u32 = 256 << 10;
/// Each is read as fast as it comes, whoever reads it then, so few of them are full at a time.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// How soon a connection that is cut silently is given up, at the latest, twice.
const ALIVE: Duration = Duration::from_secs(1);
