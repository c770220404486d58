//! Who may read a generation: a digest over the credential of the request that made it.
//!
//! Only the digest is kept, in memory and in any journal. It is compared in constant time, so that
//! neither its bytes nor the existence of a generation can be found out by timing.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The names of the header fields that carry a credential.
#[derive(Clone, Debug)]
pub struct CredentialHeaders {
    names: Vec<String>,
    /// One of them, by which a gateway says whom it has authenticated.
    subject: Option<String>,
}

impl CredentialHeaders {
    /// The fields that are always looked at.
    pub const BUILT_IN: [&'static str; 5] = [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        SESSION,
    ];

    /// The built-in fields and `more`, in lowercase and each once.
    #[must_use]
    pub fn with(more: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = Self::BUILT_IN
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        for name in more {
            let name = name.to_ascii_lowercase();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self {
            names,
            subject: None,
        }
    }

    /// The same with a field in which somebody who is trusted says who the caller is. Where it is there, it stands in place
    /// of the credential.
    #[must_use]
    pub fn with_subject(self, name: Option<String>) -> Self {
        let subject = name.map(|name| name.to_ascii_lowercase());
        let all = self.names.into_iter().chain(subject.clone());
        Self {
            subject,
            ..Self::with(all)
        }
    }

    /// That field.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// The names, in the order in which they enter the digest.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

impl Default for CredentialHeaders {
    fn default() -> Self {
        Self::with([])
    }
}

/// The session of MCP: its server makes it known by the answer to the first call, so that call has none yet.
const SESSION: &str = "mcp-session-id";

/// The digest of a caller's credential.
#[derive(Clone, Copy)]
pub struct Access {
    digest: [u8; 32],
    /// The same without the session.
    outside: [u8; 32],
    anonymous: bool,
}

impl Access {
    /// Digests what `values` gives for each credential field. A field that occurs several times counts
    /// with all its values, in order. Where a subject is told, once and not empty, that and the session count alone, so
    /// that a credential may change behind it.
    pub fn of<'v, V>(headers: &CredentialHeaders, mut values: impl FnMut(&str) -> V) -> Self
    where
        V: IntoIterator<Item = &'v [u8]>,
    {
        let subject = headers.subject().and_then(|name| {
            let mut told = values(name).into_iter();
            told.next()
                .filter(|it| !it.is_empty() && told.next().is_none())
        });
        let mut hash = Sha256::new();
        match subject {
            Some(subject) => {
                // Another beginning, so that no credential reads what a subject has made.
                hash.update(b"streamweld subject 1\0");
                update(&mut hash, "", subject);
            }
            None => hash.update(b"streamweld access 1\0"),
        }
        let mut outside = hash.clone();
        let mut anonymous = subject.is_none();
        let counts = |name: &&str| match subject {
            Some(_) => *name == SESSION,
            None => Some(*name) != headers.subject(),
        };
        for name in headers.names().filter(counts) {
            for value in values(name) {
                anonymous = false;
                update(&mut hash, name, value);
                if name != SESSION {
                    update(&mut outside, name, value);
                }
            }
        }
        Self {
            digest: hash.finalize().into(),
            outside: outside.finalize().into(),
            anonymous,
        }
    }

    /// Of a generation that another replica has begun: it is known what its callers must match, and no more.
    #[must_use]
    pub fn inherited(digest: [u8; 32], anonymous: bool) -> Self {
        Self {
            digest,
            outside: digest,
            anonymous,
        }
    }

    /// The digest, for a journal to keep.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// No credential was present: the stream id is the only secret.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// Whether this caller made what carries `digest`, in its session or before it had one. In constant time.
    #[must_use]
    pub fn matches(&self, digest: &[u8; 32]) -> bool {
        (self.digest.ct_eq(digest) | self.outside.ct_eq(digest)).into()
    }

    /// A key in this caller's scope, for things that are looked up by digest (idempotency, retries).
    #[must_use]
    pub fn scoped(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"streamweld scope 1\0");
        hash.update(self.digest);
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// Lengths stand in front, so that no two lists of fields digest alike.
fn update(hash: &mut Sha256, name: &str, value: &[u8]) {
    hash.update((name.len() as u64).to_be_bytes());
    hash.update(name.as_bytes());
    hash.update((value.len() as u64).to_be_bytes());
    hash.update(value);
}

impl std::fmt::Debug for Access {
    /// Never shows the digest: it is all that a memory dump of a log would need for an offline guess.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(fields: &[(&str, &str)]) -> Access {
        Access::of(&CredentialHeaders::default(), |name| {
            fields
                .iter()
                .filter(|(n, _)| *n == name)
                .map(|(_, v)| v.as_bytes())
                .collect::<Vec<_>>()
        })
    }

    #[test]
    fn same_credential_matches_and_another_does_not() {
        let maker = access(&[("authorization", "Bearer a")]);
        assert!(access(&[("authorization", "Bearer a")]).matches(&maker.digest()));
        assert!(!access(&[("authorization", "Bearer b")]).matches(&maker.digest()));
        assert!(!access(&[]).matches(&maker.digest()));
    }

    #[test]
    fn a_value_under_another_name_is_another_credential() {
        let maker = access(&[("x-api-key", "k")]);
        assert!(!access(&[("api-key", "k")]).matches(&maker.digest()));
    }

    #[test]
    fn values_cannot_be_shifted_between_fields() {
        let one = access(&[("authorization", "a"), ("x-api-key", "b")]);
        let two = access(&[("authorization", "ab"), ("x-api-key", "")]);
        assert!(!two.matches(&one.digest()));
    }

    #[test]
    fn a_session_reads_what_it_made_and_what_was_made_before_it() {
        let before = access(&[("authorization", "a")]);
        let one = access(&[("authorization", "a"), (SESSION, "1")]);
        let other = access(&[("authorization", "a"), (SESSION, "2")]);
        assert!(one.matches(&before.digest()) && one.matches(&one.digest()));
        assert!(!other.matches(&one.digest()) && !before.matches(&one.digest()));
        let stranger = access(&[("authorization", "b"), (SESSION, "1")]);
        assert!(!stranger.matches(&before.digest()) && !stranger.matches(&one.digest()));
    }

    #[test]
    fn fields_that_are_no_credential_do_not_count() {
        assert!(access(&[("x-other", "1")]).is_anonymous());
        let named = CredentialHeaders::with(["X-Other".to_owned()]);
        let with = Access::of(&named, |name| (name == "x-other").then_some(&b"1"[..]));
        assert!(!with.is_anonymous());
    }

    #[test]
    fn a_subject_stands_in_place_of_a_credential_and_is_none_itself() {
        let headers = CredentialHeaders::default().with_subject(Some("X-User".to_owned()));
        let access = |fields: &[(&str, &str)]| {
            Access::of(&headers, |name| {
                let named = fields.iter().filter(|(n, _)| *n == name);
                named.map(|(_, value)| value.as_bytes()).collect::<Vec<_>>()
            })
        };
        let ann = access(&[("x-user", "ann"), ("authorization", "a")]);
        assert!(!ann.is_anonymous());
        let with_another_key = access(&[("x-user", "ann"), ("authorization", "b")]);
        assert!(with_another_key.matches(&ann.digest()));
        let strangers: [&[(&str, &str)]; 6] = [
            &[("x-user", "bob"), ("authorization", "a")],
            &[("authorization", "a")],
            &[("authorization", "ann")],
            &[("x-user", ""), ("authorization", "a")],
            &[("x-user", "ann"), ("x-user", "bob")],
            &[("x-user", "ann"), ("x-user", "ann")],
        ];
        for stranger in strangers {
            assert!(!access(stranger).matches(&ann.digest()), "{stranger:?}");
        }
        let in_session = access(&[("x-user", "ann"), (SESSION, "1")]);
        assert!(in_session.matches(&ann.digest()) && !ann.matches(&in_session.digest()));
    }

    #[test]
    fn a_scoped_key_differs_by_caller_purpose_and_part() {
        let (a, b) = (access(&[("x-api-key", "a")]), access(&[("x-api-key", "b")]));
        let key = a.scoped("idempotency", &[b"k"]);
        assert_ne!(key, b.scoped("idempotency", &[b"k"]));
        assert_ne!(key, a.scoped("retry", &[b"k"]));
        assert_ne!(key, a.scoped("idempotency", &[b"", b"k"]));
    }
}
