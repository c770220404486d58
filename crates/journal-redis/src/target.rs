//! Which server to connect to, and as whom: asked anew for each connection.
//!
//! A server is at a fixed address, or it is the master that sentinels name. A node of a cluster is at a fixed address
//! too; see [`cluster`].

mod address;
mod ask;
mod cluster;
mod sentinels;

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
use crate::feed;
use crate::link::ConnectError;
use crate::socket::Socket;

/// A server and the credentials for it. Neither is shown by `Debug`.
#[derive(Clone)]
pub struct Target {
    place: Place,
    password_file: Option<PathBuf>,
    ca_file: Trust,
    /// Of a cluster: whom to ask for its nodes. The place is the first of them.
    seeds: Option<Arc<[Arc<Address>]>>,
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

/// A text that names no server.
///
/// It does not hold the text: a URL may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a redis URL: redis://, rediss:// or redis+unix:// with user, password and database as needed, \
     redis+sentinel:// or rediss+sentinel:// with the name of a service, or \
     redis+cluster:// or rediss+cluster:// with the addresses of some nodes"
)]
pub struct BadTarget;

impl Target {
    /// Reads `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS, or
    /// `redis+unix:///path[?db=..&user=..&pass=..]`.
    ///
    /// A master that sentinels watch over is named by
    /// `redis+sentinel://[user:pass@]host[:port][,host[:port]…]/<service>[/db][?sentinel_user=..&sentinel_pass=..]`,
    /// where the hosts are sentinels, on port 26379 unless they are told otherwise, and user and password are those of
    /// the master. With `rediss+sentinel://` both are spoken to by TLS.
    ///
    /// A cluster is named by some of its nodes, `redis+cluster://[user[:password]@]host[:port][,host[:port]…]`, the same
    /// with `rediss+cluster://` for TLS.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(url: &str) -> Result<Self, BadTarget> {
        let sentinels = |tls, rest: &str| Sentinels::parse(tls, rest).map(Arc::new);
        let place = if url.contains('#') {
            return Err(BadTarget);
        } else if let Some((tls, seeds)) = cluster::scheme(url) {
            return Self::parse_cluster(tls, seeds);
        } else if let Some(rest) = url.strip_prefix("redis+sentinel://") {
            Place::Named(sentinels(false, rest)?)
        } else if let Some(rest) = url.strip_prefix("rediss+sentinel://") {
            Place::Named(sentinels(true, rest)?)
        } else {
            Place::Fixed(Arc::new(Address::parse(url)?))
        };
        Ok(Self {
            place,
            password_file: None,
            ca_file: None,
            seeds: None,
        })
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

    /// A new connection. One to a master that sentinels name has said that it is one.
    pub(crate) async fn dial(&self) -> Result<Dialled, ConnectError> {
        match &self.place {
            Place::Fixed(address) => {
                let login = self.login(&address.login).await?;
                let mut socket = address.dial(self.ca_file.clone()).await?;
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

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_not_shown() {
        for url in [
            "redis://localhost",
            "redis://localhost:7000/3",
            "redis://user:secret@[::1]:7000/3",
            "redis://:secret@localhost",
            "rediss://user:secret@redis.example",
            "redis+unix:///run/redis.sock?db=2&user=user&pass=secret",
            "redis+sentinel://a/streamweld",
            "redis+sentinel://user:secret@a:1,[::1]:2,c/streamweld/3?sentinel_user=u&sentinel_pass=secret",
            "rediss+sentinel://:secret@a,b/my-service.1?sentinel_pass=se%40cret",
            "redis+cluster://user:secret@one:7000,two",
        ] {
            let target = Target::parse(url).unwrap_or_else(|_| panic!("{url}"));
            assert_eq!(format!("{target:?}"), "Target { .. }");
        }
    }

    #[test]
    fn other_texts_are_refused_without_being_repeated() {
        for url in [
            "",
            "localhost:6379",
            "http://localhost",
            "redis://user:secret@",
            "redis://:secret@localhost/notanumber",
            "rediss://:secret@localhost#insecure",
            "redis+sentinel://:secret@a",
            "redis+sentinel://:secret@a/",
            "redis+sentinel://:secret@a,,b/s",
            "redis+sentinel://:secret@/s",
            "redis+sentinel://:secret@a/s/notanumber",
            "redis+sentinel://:secret@a/s s",
            "redis+sentinel://:secret@a:99999/s",
            "redis+sentinel://a/s?sentinel_user=secret",
            "redis+sentinel://a/s?sentinel_pass=se@cret",
            "redis+sentinel://a/s?password=secret",
        ] {
            let error = Target::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{url}");
        }
    }
}
