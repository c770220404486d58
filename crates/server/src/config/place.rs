//! Where the journal is.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use http::Uri;

use super::Secret;

/// Where the journal is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In this process: it serves one replica, and ends with it.
    #[default]
    Memory,
    /// In a Redis: it serves every replica that is given the same one.
    Redis(JournalUrl),
}

/// The URL of a Redis. It may hold a password, so it is shown by [`Display`](fmt::Display) without user and password, and
/// whole by [`JournalUrl::secret`] only.
#[derive(Clone, PartialEq, Eq)]
pub struct JournalUrl {
    url: Secret,
    shown: String,
    password: bool,
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
        self.password
    }

    /// Reads it from a file, so that it need not stand on a command line or in an environment.
    ///
    /// # Errors
    /// The file cannot be read or holds no such URL. What it holds is never repeated.
    pub fn from_file(path: &Path) -> std::io::Result<Self> {
        let invalid =
            |error: JournalUrlError| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        let text = std::fs::read_to_string(path)?;
        text.trim_end_matches(['\r', '\n']).parse().map_err(invalid)
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
        let uri: Uri = text.parse().map_err(|_| JournalUrlError::Syntax)?;
        let scheme = match uri.scheme_str() {
            Some(scheme @ ("redis" | "rediss")) => scheme,
            Some(_) | None => return Err(JournalUrlError::Scheme),
        };
        let authority = uri.authority().ok_or(JournalUrlError::Host)?;
        let (user, at) = match authority.as_str().rsplit_once('@') {
            Some((user, at)) => (Some(user), at),
            None => (None, authority.as_str()),
        };
        if authority.host().is_empty() {
            return Err(JournalUrlError::Host);
        }
        let port = &at[authority.host().len()..];
        if !port.is_empty() && !matches!(authority.port_u16(), Some(1..)) {
            return Err(JournalUrlError::Port);
        }
        if uri.query().is_some() {
            return Err(JournalUrlError::Query);
        }
        let database = uri.path().strip_prefix('/').unwrap_or_default();
        let is_number = database.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (!database.is_empty() && database.parse::<u16>().is_err()) {
            return Err(JournalUrlError::Database);
        }
        Ok(Self {
            shown: format!("{scheme}://{at}"),
            password: user.is_some(),
            url: Secret::new(text.to_owned()).ok_or(JournalUrlError::Syntax)?,
        })
    }
}

impl fmt::Display for JournalUrl {
    /// Scheme, host and port.
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
    /// Neither `redis` nor `rediss`.
    #[error("the scheme must be redis, or rediss for TLS")]
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
    /// A query, which nothing would look at.
    #[error("a query has no meaning here")]
    Query,
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
    }
}
