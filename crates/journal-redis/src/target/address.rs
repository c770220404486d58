//! Where a server is, and as whom to log in there.

use std::io;
use std::path::PathBuf;

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

use super::UrlError;
use super::url::Holds;
use crate::link::ConnectError;
use crate::socket::{self, Dialer, Socket};

/// One server.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) at: ConnectionAddr,
    pub(super) tls: bool,
    pub(super) login: RedisConnectionInfo,
}

impl Address {
    /// Reads `[user[:password]@]host[:port][/database]`, and what of it can be shown.
    pub(super) fn server(tls: bool, text: &str) -> Result<(Self, String, Holds), UrlError> {
        let (text, query) = split_query(text);
        let (authority, database) = text.split_once('/').unwrap_or((text, ""));
        let (login, place) = split_login(authority);
        // A password with a `/` in it looks like a database.
        if login.is_none() && database.contains('@') {
            return Err(UrlError::Syntax);
        }
        let address = Self::at_place(tls, login, place, 6379, database)?;
        if query.is_some() {
            return Err(UrlError::Query);
        }
        Ok((address, place.to_owned(), Holds::login(login)))
    }

    /// Reads `/path[?db=…&user=…&pass=…]`, and what of it can be shown.
    pub(super) fn socket(text: &str) -> Result<(Self, String, Holds), UrlError> {
        let (path, query) = split_query(text);
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(UrlError::Socket);
        }
        let mut holds = Holds::default();
        for pair in pairs(query) {
            match pair.split_once('=').ok_or(UrlError::SocketQuery)? {
                ("db", "") => return Err(UrlError::SocketQuery),
                ("db", database) => check_database(database)?,
                ("user", _) => holds.user = true,
                ("pass", _) => holds.password = true,
                _ => return Err(UrlError::SocketQuery),
            }
        }
        let address = Self::read(false, &format!("redis+unix://{text}"))?;
        Ok((address, path.to_owned(), holds))
    }

    /// Reads `host[:port]`, for whoever logs in as `login`.
    pub(super) fn at_place(
        tls: bool,
        login: Option<&str>,
        place: &str,
        default_port: u16,
        database: &str,
    ) -> Result<Self, UrlError> {
        let (host, port) = split_place(place)?;
        check_database(database)?;
        let port = port.unwrap_or(default_port);
        let login = login.map_or_else(String::new, |login| format!("{login}@"));
        Self::read(tls, &format!("redis://{login}{host}:{port}/{database}"))
    }

    /// TLS is ours, so the client library is not asked for it.
    fn read(tls: bool, plain: &str) -> Result<Self, UrlError> {
        let info = plain.into_connection_info().map_err(|_| UrlError::Syntax)?;
        Ok(Self {
            at: info.addr().clone(),
            tls,
            login: info.redis_settings().clone().set_skip_set_lib_name(),
        })
    }

    /// The same server elsewhere.
    pub(super) fn moved_to(&self, host: String, port: u16) -> Self {
        Self {
            at: ConnectionAddr::Tcp(host, port),
            ..self.clone()
        }
    }

    pub(super) async fn dial(&self, ca_file: Option<PathBuf>) -> Result<Socket, ConnectError> {
        let socket = match &self.at {
            ConnectionAddr::Tcp(host, port) if self.tls => {
                let trust = socket::trust(ca_file).await;
                let trust = trust.map_err(|error| ConnectError::CaFile(error.kind()))?;
                socket::tls(host, *port, trust).await
            }
            ConnectionAddr::Tcp(host, port) => socket::tcp(host, *port).await,
            ConnectionAddr::Unix(path) => socket::unix(path).await,
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        socket.map_err(|error| ConnectError::Io(error.kind()))
    }

    pub(super) async fn dial_by(&self, dialer: &Dialer) -> Result<Socket, ConnectError> {
        let socket = match &self.at {
            ConnectionAddr::Tcp(host, port) if !self.tls => dialer.dial(host, *port).await,
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        socket.map_err(|error| ConnectError::Io(error.kind()))
    }
}

/// What stands in front of the last `@`, and behind it.
pub(super) fn split_login(authority: &str) -> (Option<&str>, &str) {
    match authority.rsplit_once('@') {
        Some((login, places)) => (Some(login), places),
        None => (None, authority),
    }
}

pub(super) fn split_query(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((text, query)) => (text, Some(query)),
        None => (text, None),
    }
}

/// The members of a query.
pub(super) fn pairs(query: Option<&str>) -> impl Iterator<Item = &str> {
    let all = query.unwrap_or_default().split('&');
    all.filter(|pair| !pair.is_empty())
}

/// A host, with the brackets of one that has colons itself, and a port.
fn split_place(place: &str) -> Result<(&str, Option<u16>), UrlError> {
    let end = match place.strip_prefix('[') {
        Some(rest) => rest.find(']').ok_or(UrlError::Syntax)? + "[]".len(),
        None => place.find(':').unwrap_or(place.len()),
    };
    let (host, port) = place.split_at(end);
    if host.is_empty() {
        // An address of IPv6 without its brackets begins so, too.
        return Err(match port.matches(':').count() {
            0 | 1 => UrlError::Host,
            _ => UrlError::Syntax,
        });
    }
    if port.is_empty() {
        return Ok((host, None));
    }
    let number = port.strip_prefix(':').and_then(|port| port.parse().ok());
    match number {
        Some(1..) => Ok((host, number)),
        Some(0) | None => Err(UrlError::Port),
    }
}

fn check_database(database: &str) -> Result<(), UrlError> {
    let is_number = database.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (!database.is_empty() && database.parse::<u16>().is_err()) {
        return Err(UrlError::Database);
    }
    Ok(())
}
