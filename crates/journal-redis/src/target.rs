//! Which server to connect to, and as whom: asked anew for each connection.
//!
//! A server is at a fixed address, or it is the master that sentinels name. A node of a cluster is at a fixed address
//! too; see [`cluster`].

mod address;
mod ask;
mod cluster;
mod sentinels;
mod url;
mod url_error;

use std::fmt;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use redis::RedisConnectionInfo;
use tokio_util::task::AbortOnDropHandle;

use self::address::Address;
use self::sentinels::Sentinels;
pub use self::url::RedisUrl;
pub use self::url_error::UrlError;
use crate::feed;
use crate::link::ConnectError;
use crate::socket::{Dialer, Socket};

/// A server and the credentials for it. Neither is shown by `Debug`.
#[derive(Clone)]
pub struct Target {
    place: Place,
    password_file: Option<PathBuf>,
    ca_file: Trust,
    /// Of a cluster: whom to ask for its nodes. The place is the first of them.
    seeds: Option<Arc<[Arc<Address>]>>,
    dialer: Option<Dialer>,
}

/// The file with certificates to trust beside those of the machine.
type Trust = Option<PathBuf>;

#[derive(Clone)]
enum Place {
    Fixed(Arc<Address>),
    Named(Arc<Sentinels>),
}

/// A new connection, which is logged in. Each says so in the same way, so that a server lets in all of them, or none.
pub(crate) struct Dialled {
    pub(crate) socket: Socket,
    /// What is left to be said at its beginning: the number of a database.
    pub(crate) login: RedisConnectionInfo,
    pub(crate) moved: Moved,
}

/// Ready when the server is known to be another one by now.
pub(crate) type Moved = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Target {
    fn of(place: Place) -> Self {
        Self {
            place,
            password_file: None,
            ca_file: None,
            seeds: None,
            dialer: None,
        }
    }

    /// Reads a [`RedisUrl`].
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        url.parse().map(|url: RedisUrl| url.target)
    }

    /// Takes the password from a file, which is read for each connection: so it may be changed at any time. A line
    /// end behind it is not part of it.
    #[must_use]
    pub fn with_password_file(mut self, path: PathBuf) -> Self {
        self.password_file = Some(path);
        self
    }

    /// Trusts the certificates in a PEM file besides those that the machine trusts, for `rediss://`. It is read for
    /// each connection.
    #[must_use]
    pub fn with_ca_file(mut self, path: PathBuf) -> Self {
        self.ca_file = Some(path);
        self
    }

    /// Goes another way than TCP to servers at a fixed address, which is one without TLS.
    #[must_use]
    pub fn with_dialer(mut self, dialer: Dialer) -> Self {
        self.dialer = Some(dialer);
        self
    }

    /// A new connection. One to a master that sentinels name has said that it is one.
    pub(crate) async fn dial(&self) -> Result<Dialled, ConnectError> {
        match &self.place {
            Place::Fixed(address) => {
                let login = self.login(&address.login).await?;
                let mut socket = match &self.dialer {
                    Some(dialer) => address.dial_by(dialer).await?,
                    None => address.dial(self.ca_file.clone()).await?,
                };
                ask::log_in(&mut socket, &login).await?;
                Ok(Dialled {
                    login: logged_in(&login),
                    socket,
                    moved: Box::pin(pending()),
                })
            }
            Place::Named(sentinels) => {
                let login = self.login(sentinels.login()).await?;
                let (socket, named) = sentinels.dial(&login, &self.ca_file).await?;
                let moved = Box::pin(Arc::clone(sentinels).moved_from(named));
                Ok(Dialled {
                    login: logged_in(&login),
                    socket,
                    moved,
                })
            }
        }
    }

    /// The same for the connection that listens.
    pub(crate) async fn dial_feed(&self) -> io::Result<feed::Link<Socket>> {
        let dialled = self.dial().await.map_err(io::Error::other)?;
        Ok(feed::Link {
            stream: dialled.socket,
            login: None,
            moved: dialled.moved,
        })
    }

    /// Learns of changes of the server, where somebody tells of them, for as long as the handle is held. It is a task
    /// of the runtime that this is called in.
    pub(crate) fn watch(&self) -> Option<AbortOnDropHandle<()>> {
        let Place::Named(sentinels) = &self.place else {
            return None;
        };
        let watch = Arc::clone(sentinels).watch(self.ca_file.clone());
        Some(AbortOnDropHandle::new(tokio::spawn(watch)))
    }

    async fn login(
        &self,
        login: &RedisConnectionInfo,
    ) -> Result<RedisConnectionInfo, ConnectError> {
        let login = login.clone();
        let Some(path) = self.password_file.clone() else {
            return Ok(login);
        };
        // No worker thread waits for a file system.
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let password = read
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
            .map_err(|error| ConnectError::PasswordFile(error.kind()))?;
        let password = password.trim_end_matches(['\r', '\n']);
        if password.contains(char::is_control) {
            return Err(ConnectError::PasswordFile(io::ErrorKind::InvalidData));
        }
        Ok(login.set_password(password))
    }
}

/// What is not said by logging in.
fn logged_in(login: &RedisConnectionInfo) -> RedisConnectionInfo {
    RedisConnectionInfo::default()
        .set_db(login.db())
        .set_skip_set_lib_name()
}

fn feed_login(login: &RedisConnectionInfo) -> Option<feed::Login> {
    Some(feed::Login {
        username: login.username().map(str::to_owned),
        password: login.password()?.to_owned(),
    })
}

impl From<&RedisUrl> for Target {
    fn from(url: &RedisUrl) -> Self {
        url.target.clone()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}
