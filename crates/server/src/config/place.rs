//! Where the journal is.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;

use super::Secret;

/// Where the journal is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In this process: it serves one replica, and ends with it.
    #[default]
    Memory,
    /// In a Redis, or a cluster of them: it serves every replica that is given the same one.
    Redis(JournalUrl),
}

/// The URL of a Redis or of a cluster. It may hold a password, so it is shown by [`Display`](fmt::Display) without user
/// and password, and whole by [`JournalUrl::secret`] only.
#[derive(Clone, PartialEq, Eq)]
pub struct JournalUrl {
    url: Secret,
    shown: String,
    tls: bool,
    credential: bool,
    password: bool,
    secret: bool,
}

impl JournalUrl {
    /// All of it, for whoever connects. It must not be shown.
    #[must_use]
    pub fn secret(&self) -> &str {
        self.url.as_str()
    }

    /// It names a user or a password.
    #[must_use]
    pub fn has_credential(&self) -> bool {
        self.credential
    }

    /// It names the password of the Redis.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password
    }

    /// It holds any password, that of the Redis or that of its sentinels.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// It is spoken to by TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Reads it from a file, so that it need not stand on a command line or in an environment.
    ///
    /// # Errors
    /// The file cannot be read or holds no such URL. What it holds is never repeated.
    pub fn from_file(path: &Path) -> std::io::Result<Self> {
        let invalid =
            |error: JournalUrlError| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        let text = std::fs::read(path)?;
        let text = std::str::from_utf8(&text).map_err(|_| invalid(JournalUrlError::NoText))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            Err(invalid(JournalUrlError::Empty))
        } else if text.contains('\n') {
            Err(invalid(JournalUrlError::Lines))
        } else if text.contains(char::is_control) {
            Err(invalid(JournalUrlError::NoText))
        } else {
            text.parse().map_err(invalid)
        }
    }
}

impl FromStr for Place {
    type Err = JournalUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "memory" => Ok(Self::Memory),
            url => url.parse().map(Self::Redis),
        }
    }
}

impl FromStr for JournalUrl {
    type Err = JournalUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Looked for in the text: the parser drops a fragment without a word.
        if text.contains('#') {
            return Err(JournalUrlError::Fragment);
        }
        let parts = match text.split_once("://") {
            Some((scheme @ ("redis+sentinel" | "rediss+sentinel"), rest)) => {
                sentinels(scheme, rest)?
            }
            Some((scheme @ ("redis+cluster" | "rediss+cluster"), rest)) => cluster(scheme, rest)?,
            Some(("redis+unix", rest)) => socket(rest)?,
            _ => server(text)?,
        };
        let password = parts.user.as_ref().is_some_and(|user| user.contains(':'));
        Ok(Self {
            shown: parts.shown,
            tls: text.starts_with("rediss"),
            credential: parts.user.is_some() || parts.secret_query,
            password,
            secret: password || parts.secret_query,
            url: Secret::new(text.to_owned()).ok_or(JournalUrlError::Syntax)?,
        })
    }
}

/// What a URL is made of, once it is known to be good.
struct Parts {
    shown: String,
    user: Option<String>,
    secret_query: bool,
}

/// `redis://[user[:password]@]host[:port][/database]`
fn server(text: &str) -> Result<Parts, JournalUrlError> {
    let uri: Uri = text.parse().map_err(|_| JournalUrlError::Syntax)?;
    let scheme = match uri.scheme_str() {
        Some(scheme @ ("redis" | "rediss")) => scheme,
        Some(_) | None => return Err(JournalUrlError::Scheme),
    };
    let authority = uri.authority().ok_or(JournalUrlError::Host)?;
    let (user, at) = split_user(authority.as_str());
    check_place(authority, at)?;
    if uri.query().is_some() {
        return Err(JournalUrlError::Query);
    }
    check_database(uri.path().strip_prefix('/').unwrap_or_default())?;
    Ok(Parts {
        shown: format!("{scheme}://{at}"),
        user,
        secret_query: false,
    })
}

/// `[user[:password]@]host[:port][,host[:port]…]`
fn cluster(scheme: &str, text: &str) -> Result<Parts, JournalUrlError> {
    let (user, nodes) = split_user(text);
    let nodes = nodes.strip_suffix('/').unwrap_or(nodes);
    if nodes.contains('?') {
        return Err(JournalUrlError::Query);
    }
    if nodes.contains('/') {
        return Err(JournalUrlError::Cluster);
    }
    check_places(user.as_deref(), nodes)?;
    Ok(Parts {
        shown: format!("{scheme}://{nodes}"),
        user,
        secret_query: false,
    })
}

/// `/path[?db=…&user=…&pass=…]`
fn socket(text: &str) -> Result<Parts, JournalUrlError> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    if !path.starts_with('/') || path.ends_with('/') {
        return Err(JournalUrlError::Socket);
    }
    let (mut user, mut password) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("db", "")) => return Err(JournalUrlError::SocketQuery),
            Some(("db", database)) => check_database(database)?,
            Some(("user", name)) => user = Some(name),
            Some(("pass", text)) => password = Some(text),
            _ => return Err(JournalUrlError::SocketQuery),
        }
    }
    let login = match (user, password) {
        (name, Some(password)) => Some(format!("{}:{password}", name.unwrap_or_default())),
        (name, None) => name.map(str::to_owned),
    };
    Ok(Parts {
        shown: format!("redis+unix://{path}"),
        user: login,
        secret_query: false,
    })
}

/// `[user[:password]@]host[:port][,host[:port]…]/service[/database][?sentinel_user=…&sentinel_pass=…]`
fn sentinels(scheme: &str, text: &str) -> Result<Parts, JournalUrlError> {
    let (text, query) = match text.split_once('?') {
        Some((text, query)) => (text, Some(query)),
        None => (text, None),
    };
    let (authority, path) = text.split_once('/').ok_or(JournalUrlError::Service)?;
    let (user, hosts) = split_user(authority);
    check_places(user.as_deref(), hosts)?;
    let (service, database) = path.split_once('/').unwrap_or((path, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if service.is_empty() || !service.bytes().all(is_name) {
        return Err(JournalUrlError::Service);
    }
    check_database(database)?;
    // What has a meaning in a URL would be taken for it.
    let is_plain = |value: &str| !value.contains([':', '/', '@', '?', '[', ']']);
    for pair in query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
    {
        match pair.split_once('=') {
            Some(("sentinel_user" | "sentinel_pass", value)) if is_plain(value) => {}
            _ => return Err(JournalUrlError::SentinelQuery),
        }
    }
    Ok(Parts {
        shown: format!("{scheme}://{hosts}/{service}"),
        user,
        secret_query: query.is_some(),
    })
}

fn split_user(authority: &str) -> (Option<String>, &str) {
    match authority.rsplit_once('@') {
        Some((user, at)) => (Some(user.to_owned()), at),
        None => (None, authority),
    }
}

fn check_places(user: Option<&str>, hosts: &str) -> Result<(), JournalUrlError> {
    // As a part of each, so that a bad one is noticed.
    let login = user.map_or_else(String::new, |user| format!("{user}@"));
    for host in hosts.split(',') {
        let one = format!("{login}{host}");
        let authority: Authority = one.parse().map_err(|_| match host {
            "" => JournalUrlError::Host,
            _ => JournalUrlError::Syntax,
        })?;
        check_place(&authority, host)?;
    }
    Ok(())
}

fn check_place(authority: &Authority, at: &str) -> Result<(), JournalUrlError> {
    if authority.host().is_empty() {
        return Err(JournalUrlError::Host);
    }
    let port = &at[authority.host().len()..];
    if !port.is_empty() && !matches!(authority.port_u16(), Some(1..)) {
        return Err(JournalUrlError::Port);
    }
    Ok(())
}

fn check_database(database: &str) -> Result<(), JournalUrlError> {
    let is_number = database.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (!database.is_empty() && database.parse::<u16>().is_err()) {
        return Err(JournalUrlError::Database);
    }
    Ok(())
}

impl fmt::Display for JournalUrl {
    /// Scheme, hosts and ports, and the service that sentinels watch over; of a socket its path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JournalUrl").field(&self.shown).finish()
    }
}

/// Why the URL of a journal was refused. Never repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalUrlError {
    /// Not a URL.
    #[error("not a valid URL; what is not a letter or a digit in a password is written as %40")]
    Syntax,
    /// A file without anything in it.
    #[error("the file is empty")]
    Empty,
    /// A file with more than a URL.
    #[error("the file has to hold one line, with the URL")]
    Lines,
    /// A file with bytes that no text has.
    #[error("the file does not hold plain text")]
    NoText,
    /// None that is known.
    #[error(
        "the scheme must be redis, or rediss for TLS, with +sentinel or +cluster behind it where that is meant, or redis+unix"
    )]
    Scheme,
    /// No host.
    #[error("there is no host")]
    Host,
    /// No port that there is.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// A path that is no number.
    #[error("the path must be the number of a database, or nothing")]
    Database,
    /// Sentinels without the name of what they watch over.
    #[error("behind the sentinels there must be the name of the service that they watch over")]
    Service,
    /// A path, for a cluster.
    #[error("a cluster has no databases, so there is no path")]
    Cluster,
    /// No path where a socket could be.
    #[error("behind redis+unix:// there must be the whole path of a socket, which begins with /")]
    Socket,
    /// A query that is not about the socket.
    #[error("the query may hold db, user and pass only, and db is the number of a database")]
    SocketQuery,
    /// A query, which nothing would look at.
    #[error("a query has no meaning here")]
    Query,
    /// A query that is not about the sentinels.
    #[error(
        "the query may hold sentinel_user and sentinel_pass only, and in them what is not a letter or a digit is \
         written as %40"
    )]
    SentinelQuery,
    /// A fragment, which nothing would look at.
    #[error("a fragment has no meaning here; in a password write # as %23")]
    Fragment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn accept(text: &str, shown: &str, credential: bool) {
        let Ok(Place::Redis(url)) = text.parse() else {
            panic!("{text} is refused")
        };
        assert_eq!(url.to_string(), shown);
        assert_eq!(url.secret(), text);
        assert_eq!(url.has_credential(), credential);
        assert!(!format!("{url:?}").contains("pass"), "{url:?}");
    }

    #[test]
    fn a_redis_is_shown_without_who_asks_it() {
        accept("redis://r", "redis://r", false);
        accept("redis://10.0.0.1:6379/", "redis://10.0.0.1:6379", false);
        accept("rediss://[::1]:6380/2", "rediss://[::1]:6380", false);
        accept("redis://:pass@r:6379/0", "redis://r:6379", true);
        accept("rediss://user:pass%40@r", "rediss://r", true);
        accept("redis+cluster://r", "redis+cluster://r", false);
        let shown = "rediss+cluster://a:7000,[::1]:7001,c";
        let text = "rediss+cluster://user:pass@a:7000,[::1]:7001,c/";
        accept(text, shown, true);
    }

    #[test]
    fn a_socket_is_shown_by_its_path() {
        let shown = "redis+unix:///run/redis.sock";
        accept(shown, shown, false);
        for (query, credential, password) in [
            ("?db=2", false, false),
            ("?db=2&user=u", true, false),
            ("?pass=secret", true, true),
            ("?user=u&db=1&pass=se%26cret", true, true),
        ] {
            let text = format!("{shown}{query}");
            accept(&text, shown, credential);
            let url: JournalUrl = text.parse().expect("good");
            assert_eq!((url.has_password(), url.is_tls()), (password, false));
        }
    }

    #[test]
    fn sentinels_are_shown_without_who_asks_them() {
        let shown = "redis+sentinel://a:26379,[::1],c/main";
        accept(shown, shown, false);
        accept(
            "redis+sentinel://user:pass@a:26379,[::1],c/main/2",
            shown,
            true,
        );
        accept(
            "rediss+sentinel://a/main?sentinel_user=u&sentinel_pass=pass",
            "rediss+sentinel://a/main",
            true,
        );
        for (text, tls, password) in [
            ("redis+sentinel://a/s", false, false),
            ("rediss+sentinel://user@a/s", true, false),
            ("rediss://user:pass@a", true, true),
        ] {
            let url: JournalUrl = text.parse().expect("good");
            assert_eq!((url.is_tls(), url.has_password()), (tls, password));
            assert_eq!(url.is_secret(), password);
        }
    }

    #[test]
    fn memory_is_a_word() {
        assert_eq!("memory".parse(), Ok(Place::Memory));
    }

    #[track_caller]
    fn refuse(text: &str, error: JournalUrlError) {
        assert_eq!(text.parse::<Place>(), Err(error), "{text}");
    }

    #[test]
    fn everything_else_is_refused_by_its_part() {
        refuse("", JournalUrlError::Syntax);
        refuse("redis://a b", JournalUrlError::Syntax);
        refuse("Memory", JournalUrlError::Scheme);
        refuse("r:6379", JournalUrlError::Scheme);
        refuse("http://r", JournalUrlError::Scheme);
        refuse("redis://r:0", JournalUrlError::Port);
        refuse("redis://r:65536", JournalUrlError::Port);
        refuse("redis://:pass@", JournalUrlError::Syntax);
        refuse("redis://:6379", JournalUrlError::Host);
        refuse("redis://:pass@:6379", JournalUrlError::Host);
        refuse("redis://r/a", JournalUrlError::Database);
        refuse("redis://r/1/2", JournalUrlError::Database);
        refuse("redis://r/70000", JournalUrlError::Database);
        refuse("redis://r?protocol=3", JournalUrlError::Query);
        refuse("redis://r#1", JournalUrlError::Fragment);
        refuse("sentinel://a/s", JournalUrlError::Scheme);
        refuse("redis+sentry://r", JournalUrlError::Scheme);
        refuse("redis+sentinel://a", JournalUrlError::Service);
        refuse("redis+sentinel://a/", JournalUrlError::Service);
        refuse("redis+sentinel://a/s%20", JournalUrlError::Service);
        refuse("redis+sentinel://a,,b/s", JournalUrlError::Host);
        refuse("redis+sentinel:///s", JournalUrlError::Host);
        refuse("redis+sentinel://a:0/s", JournalUrlError::Port);
        refuse("redis+sentinel://a/s/b", JournalUrlError::Database);
        refuse(
            "redis+sentinel://a/s?pass=1",
            JournalUrlError::SentinelQuery,
        );
        refuse(
            "redis+sentinel://a/s?sentinel_pass=a@b",
            JournalUrlError::SentinelQuery,
        );
        refuse("redis+cluster://", JournalUrlError::Host);
        refuse("redis+cluster://a,,b", JournalUrlError::Host);
        refuse("redis+cluster://a,b:0", JournalUrlError::Port);
        refuse("redis+cluster://a,b/1", JournalUrlError::Cluster);
        refuse("redis+cluster://a,b?protocol=3", JournalUrlError::Query);
        refuse("redis+cluster://:pass@a,b c", JournalUrlError::Syntax);
        refuse("redis+unix://", JournalUrlError::Socket);
        refuse("redis+unix://run/redis.sock", JournalUrlError::Socket);
        refuse("redis+unix:///", JournalUrlError::Socket);
        refuse("redis+unix:///s?db=a", JournalUrlError::Database);
        refuse("redis+unix:///s?db=", JournalUrlError::SocketQuery);
        refuse("redis+unix:///s?protocol=3", JournalUrlError::SocketQuery);
        refuse("redis+unix:///s?pass", JournalUrlError::SocketQuery);
    }
}
