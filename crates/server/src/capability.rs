//! Resume URLs: a generation for whoever has its URL, without the credential (protocol.md 9.2).
//!
//! What a capability allows is in it, with a keyed MAC over that, the generation and the digest of its credential. So
//! nothing is kept, and every replica that has the key can check it. It can only add to what a caller may do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use http::header::{HeaderMap, HeaderValue};
use sha2::Sha256;
use streamweld_generation::Access;
use streamweld_journal::StreamId;
use subtle::{Choice, ConstantTimeEq};

use crate::config::ResumeUrlConfig;
use crate::error::{Error, ErrorCode};
use crate::{head, query};

/// What the holder of a URL may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Read,
    ReadAndStop,
}

impl Scope {
    /// What a caller wants its URL to allow.
    pub(crate) fn wanted(headers: &HeaderMap) -> Result<Self, Error> {
        let mut values = headers.get_all(head::CAPABILITY).iter();
        match (values.next().map(HeaderValue::as_bytes), values.next()) {
            (None | Some(b"read"), None) => Ok(Self::Read),
            (Some(b"read+stop"), None) => Ok(Self::ReadAndStop),
            (_, _) => Err(Error::new(
                ErrorCode::InvalidParameter,
                "X-Streamweld-Capability is `read` or `read+stop`",
            )),
        }
    }

    fn allows(self, what: Self) -> bool {
        self == what || self == Self::ReadAndStop
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::ReadAndStop => "rs",
        }
    }
}

/// What the resume URL in an answer to its maker would allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    access: Access,
    scope: Scope,
}

impl Grant {
    pub(crate) fn new(access: Access, scope: Scope) -> Self {
        Self { access, scope }
    }

    /// Adds the URL to a head, where anything is signed here.
    pub(crate) fn show(self, config: &ResumeUrlConfig, id: StreamId, headers: &mut HeaderMap) {
        let Some(key) = config.keys.each().next() else {
            return;
        };
        let expires = seconds(SystemTime::now() + config.lifetime);
        let capability = Capability::signed(key, self.scope, expires, id, &self.access.digest());
        let (prefix, capability) = (&config.prefix, capability.text());
        let url = format!("{prefix}/v1/streams/{id}/events?{QUERY}={capability}");
        headers.insert(head::RESUME_URL, head::ascii(&url));
    }
}

/// What a URL says that it allows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Capability {
    scope: Scope,
    /// In seconds since 1970.
    expires: u64,
    mac: [u8; 32],
}

impl Capability {
    /// The one in a query, if it can be read at all.
    pub(crate) fn of(query: Option<&str>) -> Option<Self> {
        let text = query::first(query, QUERY)?;
        Self::parse(std::str::from_utf8(&text).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (scope, expires, mac) = (parts.next()?, parts.next()?, parts.next()?);
        let scope = [Scope::Read, Scope::ReadAndStop]
            .into_iter()
            .find(|known| known.as_str() == scope)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        let capability = Self {
            scope,
            expires: expires.parse().ok()?,
            mac: mac.try_into().ok()?,
        };
        // One spelling for each: what was altered is not what was given, even where it means the same.
        (capability.text() == text).then_some(capability)
    }

    fn signed(key: &[u8], scope: Scope, expires: u64, id: StreamId, digest: &[u8; 32]) -> Self {
        Self {
            scope,
            expires,
            mac: mac(key, scope, expires, id, digest),
        }
    }

    fn text(&self) -> String {
        let (scope, mac) = (self.scope.as_str(), URL_SAFE_NO_PAD.encode(self.mac));
        format!("{scope}.{}.{mac}", self.expires)
    }

    /// Whether it was given here, whatever it is worth by now. In constant time, whichever key it may be of.
    pub(crate) fn is_good(
        &self,
        config: &ResumeUrlConfig,
        id: StreamId,
        digest: &[u8; 32],
    ) -> bool {
        config
            .keys
            .each()
            .fold(Choice::from(0), |found, key| {
                found | mac(key, self.scope, self.expires, id, digest).ct_eq(&self.mac)
            })
            .into()
    }

    /// What a good one is worth.
    ///
    /// # Errors
    /// It has expired, or does not allow that.
    pub(crate) fn admit(&self, id: StreamId, wants: Scope) -> Result<(), Error> {
        let refuse = |code, message| Err(Error::new(code, message).about(id));
        if self.expires <= seconds(SystemTime::now()) {
            return refuse(
                ErrorCode::CapabilityExpired,
                "this resume URL has expired; whoever has the credential of the stream is given a new one in \
                 X-Streamweld-Resume-Url with its state",
            );
        }
        if !self.scope.allows(wants) {
            return refuse(
                ErrorCode::CapabilityScope,
                "this resume URL may read and not stop; one that may is given to a request with \
                 `X-Streamweld-Capability: read+stop`",
            );
        }
        Ok(())
    }
}

/// Whether a query has one: it is for nobody else's eyes.
pub(crate) fn is_in(query: Option<&str>) -> bool {
    query::first(query, QUERY).is_some()
}

/// The parameter.
const QUERY: &str = "cap";

/// Everything in it has a fixed length, so that no two contents are written alike.
fn mac(key: &[u8], scope: Scope, expires: u64, id: StreamId, digest: &[u8; 32]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(b"streamweld capability 1\0");
    mac.update(&[match scope {
        Scope::Read => 0,
        Scope::ReadAndStop => 1,
    }]);
    mac.update(&expires.to_be_bytes());
    mac.update(id.to_string().as_bytes());
    mac.update(digest);
    mac.finalize().into_bytes().into()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}

#[cfg(test)]
mod tests;
