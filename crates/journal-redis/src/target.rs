//! Which server to connect to, and as whom: asked anew for each connection.
//!
//! So far there is one kind, a server at a fixed address. One that is named by sentinels, or a node of a cluster,
//! would be another variant of [`Place`], and the link would not change.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

use crate::feed;
use crate::link::ConnectError;
use crate::socket::{self, Socket};

/// A server and the credentials for it. Neither is shown by `Debug`.
#[derive(Clone)]
pub struct Target {
    place: Place,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

#[derive(Clone)]
enum Place {
    Fixed(Arc<Address>),
}

struct Address {
    at: ConnectionAddr,
    tls: bool,
    login: RedisConnectionInfo,
}

/// A text that names no server.
///
/// It does not hold the text: a URL may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a redis URL: redis://, rediss:// or redis+unix:// with user, password and database as needed"
)]
pub struct BadTarget;

impl Target {
    /// Reads `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS, or
    /// `redis+unix:///path[?db=..&user=..&pass=..]`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(url: &str) -> Result<Self, BadTarget> {
        // TLS is ours, so the client library is not asked for it. Certificates that are not checked protect nothing,
        // so the fragment that would ask for that is refused.
        let (tls, plain) = match url.strip_prefix("rediss://") {
            Some(rest) => (true, format!("redis://{rest}")),
            None => (false, url.to_owned()),
        };
        if plain.contains('#') {
            return Err(BadTarget);
        }
        let info = plain.into_connection_info().map_err(|_| BadTarget)?;
        let address = Address {
            at: info.addr().clone(),
            tls,
            login: info.redis_settings().clone().set_skip_set_lib_name(),
        };
        Ok(Self {
            place: Place::Fixed(Arc::new(address)),
            password_file: None,
            ca_file: None,
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

    /// A new connection, on which nothing was said yet, and who is to log in on it.
    pub(crate) async fn dial(&self) -> Result<(Socket, RedisConnectionInfo), ConnectError> {
        let Place::Fixed(address) = &self.place;
        let login = self.login(&address.login).await?;
        let socket = match &address.at {
            ConnectionAddr::Tcp(host, port) if address.tls => {
                let trust = socket::trust(self.ca_file.clone()).await;
                let trust = trust.map_err(|error| ConnectError::CaFile(error.kind()))?;
                socket::tls(host, *port, trust).await
            }
            ConnectionAddr::Tcp(host, port) => socket::tcp(host, *port).await,
            ConnectionAddr::Unix(path) => socket::unix(path).await,
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        let socket = socket.map_err(|error| ConnectError::Io(error.kind()))?;
        Ok((socket, login))
    }

    /// The same for the connection that listens.
    pub(crate) async fn dial_feed(&self) -> io::Result<feed::Link<Socket>> {
        let (stream, login) = self.dial().await.map_err(|error| match error {
            ConnectError::Io(kind)
            | ConnectError::PasswordFile(kind)
            | ConnectError::CaFile(kind) => io::Error::from(kind),
            _ => io::ErrorKind::Other.into(),
        })?;
        let login = login.password().map(|password| feed::Login {
            username: login.username().map(str::to_owned),
            password: password.to_owned(),
        });
        Ok(feed::Link { stream, login })
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
        Ok(login.set_password(password.trim_end_matches(['\r', '\n'])))
    }
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
        ] {
            let error = Target::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{url}");
        }
    }
}
