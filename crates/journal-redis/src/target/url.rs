//! The URL of a Redis: read once, where it enters, and never shown whole.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use super::address::Address;
use super::sentinels::Sentinels;
use super::{Place, Target, UrlError};

/// The URL of a server, of a cluster, or of a master that sentinels name.
///
/// | | |
/// |---|---|
/// | a server | `redis://[user[:password]@]host[:port][/database]` |
/// | its socket | `redis+unix:///path[?db=…&user=…&pass=…]` |
/// | sentinels | `redis+sentinel://[user[:password]@]host[:port][,…]/service[/database][?sentinel_user=…&sentinel_pass=…]` |
/// | a cluster, by some of its nodes | `redis+cluster://[user[:password]@]host[:port][,…]` |
///
/// `rediss` instead of `redis` means TLS, but for a socket. A port that is not told is 6379, that of a sentinel 26379.
/// User and password are those of the Redis; behind sentinels, those of the master.
///
/// It may hold a password, so it is shown, by [`Display`](fmt::Display) and [`Debug`](fmt::Debug), by scheme, places
/// and service alone.
#[derive(Clone)]
pub struct RedisUrl {
    pub(super) target: Target,
    shown: String,
    holds: Holds,
}

/// What of a URL is nobody's business.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holds {
    pub(super) user: bool,
    pub(super) password: bool,
    /// Those for the sentinels.
    pub(super) others: bool,
}

impl Holds {
    /// What stands in front of the places, `user[:password]`.
    pub(super) fn login(login: Option<&str>) -> Self {
        Self {
            user: login.is_some(),
            password: login.is_some_and(|login| login.contains(':')),
            others: false,
        }
    }
}

impl RedisUrl {
    /// Reads it from a file, so that it need not stand on a command line or in an environment.
    ///
    /// # Errors
    /// The file cannot be read or holds no such URL. What it holds is never repeated.
    pub fn from_file(path: &Path) -> std::io::Result<Self> {
        let invalid = |error: UrlError| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        let text = std::fs::read(path)?;
        let text = std::str::from_utf8(&text).map_err(|_| invalid(UrlError::NoText))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            Err(invalid(UrlError::Empty))
        } else if text.contains('\n') {
            Err(invalid(UrlError::Lines))
        } else if text.contains(char::is_control) {
            Err(invalid(UrlError::NoText))
        } else {
            text.parse().map_err(invalid)
        }
    }

    /// It names a user or a password, of whomever.
    #[must_use]
    pub fn has_credential(&self) -> bool {
        self.holds.user || self.is_secret()
    }

    /// It names the password of the Redis.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.holds.password
    }

    /// It holds any password, that of the Redis or that of its sentinels.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.holds.password || self.holds.others
    }

    /// It is spoken to by TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.shown.starts_with("rediss")
    }
}

impl FromStr for RedisUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        // One that asks for certificates not to be checked, for example.
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let tls = scheme.starts_with("rediss");
        let (target, shown, holds) = match scheme {
            "redis" | "rediss" => {
                let (address, shown, holds) = Address::server(tls, rest)?;
                (Target::of(Place::Fixed(Arc::new(address))), shown, holds)
            }
            "redis+unix" => {
                let (address, shown, holds) = Address::socket(rest)?;
                (Target::of(Place::Fixed(Arc::new(address))), shown, holds)
            }
            "redis+sentinel" | "rediss+sentinel" => {
                let (sentinels, shown, holds) = Sentinels::read(tls, rest)?;
                (Target::of(Place::Named(Arc::new(sentinels))), shown, holds)
            }
            "redis+cluster" | "rediss+cluster" => Target::cluster(tls, rest)?,
            _ => return Err(UrlError::Scheme),
        };
        Ok(Self {
            target,
            shown: format!("{scheme}://{shown}"),
            holds,
        })
    }
}

impl fmt::Display for RedisUrl {
    /// Scheme, hosts and ports, and the service that sentinels watch over; of a socket its path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests;
