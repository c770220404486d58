//! What a backend is shown as proof that it may be used.
//!
//! Either the caller's own credential passes, or the proxy owns one and shows it instead. It comes
//! from a file, never from a flag, and is never shown: not by `Debug`, not in an error, and not by
//! whoever prints the headers, because its value is marked sensitive.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::Family;

/// Whose credential goes to a backend.
#[derive(Clone, Default, PartialEq)]
pub enum Credential {
    /// The caller's, untouched.
    #[default]
    PassThrough,
    /// The proxy's.
    Owned(OwnedCredential),
}

/// A credential that the proxy owns.
#[derive(Clone, PartialEq)]
pub struct OwnedCredential {
    header: HeaderName,
    value: HeaderValue,
}

impl Credential {
    /// Reads the proxy's credential from a file that holds the bare key, and a line end at most.
    /// It is shown in the header that `family` reads: `x-api-key` for Anthropic, `x-goog-api-key`
    /// for Gemini, else `Authorization: Bearer`. Blocks while it reads; for the start.
    pub fn from_file(path: &Path, family: Family) -> Result<Self, CredentialError> {
        let error = |cause| CredentialError {
            path: path.to_owned(),
            cause,
        };
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut text))
            .map_err(|source| error(CredentialFault::Read(source)))?;
        OwnedCredential::parse(&text, family)
            .map(Self::Owned)
            .map_err(error)
    }

    /// Puts the proxy's credential in place of every one that the caller sent, so that a caller's
    /// key never reaches a backend it was not meant for. Passing through changes nothing.
    pub fn apply(&self, headers: &mut HeaderMap) {
        let Self::Owned(owned) = self else { return };
        for name in CALLERS {
            headers.remove(name);
        }
        headers.insert(&owned.header, owned.value.clone());
    }
}

impl OwnedCredential {
    fn parse(text: &[u8], family: Family) -> Result<Self, CredentialFault> {
        if text.len() as u64 > LARGEST {
            return Err(CredentialFault::TooLarge);
        }
        let key = text.trim_ascii();
        if key.is_empty() {
            return Err(CredentialFault::Empty);
        }
        if !key.iter().all(u8::is_ascii_graphic) {
            return Err(CredentialFault::NotAKey);
        }
        let (header, scheme) = match family {
            Family::Anthropic => (X_API_KEY, &b""[..]),
            Family::Gemini => (X_GOOG_API_KEY, &b""[..]),
            Family::Openai | Family::Unknown => (AUTHORIZATION, &b"Bearer "[..]),
        };
        let mut value = HeaderValue::from_bytes(&[scheme, key].concat())
            .expect("visible ASCII is a header value");
        value.set_sensitive(true);
        Ok(Self { header, value })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PassThrough => "PassThrough",
            Self::Owned(_) => "Owned(..)",
        })
    }
}

impl fmt::Debug for OwnedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedCredential(..)")
    }
}

/// A credential file that is of no use. Never repeats what is in it.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the credential in {}", path.display())]
pub struct CredentialError {
    path: PathBuf,
    #[source]
    cause: CredentialFault,
}

/// What is wrong with a credential file.
#[derive(Debug, thiserror::Error)]
enum CredentialFault {
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    #[error("it is empty")]
    Empty,
    #[error("it holds something else than one key in visible ASCII")]
    NotAKey,
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
}

/// Where callers put theirs.
const CALLERS: [HeaderName; 4] = [AUTHORIZATION, X_API_KEY, API_KEY, X_GOOG_API_KEY];
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// Long tokens have some kilobytes; servers refuse longer headers.
const LARGEST: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(family: Family, header: &str, value: &str) {
        let owned = OwnedCredential::parse(b"s3cret\n", family).unwrap();
        let credential = Credential::Owned(owned);
        let mut headers = HeaderMap::new();
        for name in CALLERS {
            headers.insert(name, HeaderValue::from_static("callers"));
        }
        headers.insert("accept", HeaderValue::from_static("*/*"));
        credential.apply(&mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(headers[header], value);
        assert!(!format!("{headers:?} {credential:?}").contains("s3cret"));
    }

    #[test]
    fn the_proxys_credential_replaces_every_one_of_the_caller() {
        check(Family::Openai, "authorization", "Bearer s3cret");
        check(Family::Unknown, "authorization", "Bearer s3cret");
        check(Family::Anthropic, "x-api-key", "s3cret");
        check(Family::Gemini, "x-goog-api-key", "s3cret");
    }

    #[test]
    fn the_callers_passes_untouched() {
        let mut headers = HeaderMap::new();
        headers.insert(X_API_KEY, HeaderValue::from_static("callers"));
        Credential::PassThrough.apply(&mut headers);
        assert_eq!(headers[X_API_KEY], "callers");
    }

    #[test]
    fn a_file_that_holds_no_key_is_refused_without_being_repeated() {
        let large = vec![b'k'; LARGEST as usize + 1];
        for text in [&b""[..], b" \n", b"s3cret\ns3cret", b"s3cret\0", &large] {
            let error = OwnedCredential::parse(text, Family::Openai).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"));
        }
        let missing = Credential::from_file(Path::new("/nowhere/key"), Family::Openai);
        let error = missing.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use the credential in /nowhere/key"
        );
    }
}
