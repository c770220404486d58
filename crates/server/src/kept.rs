//! What is kept of a request, for the replica that goes on with its answer when this one is gone (protocol.md 8.9).
//!
//! One line of JSON, and the body behind it; where there are keys, sealed with AES-256-GCM, the stream id being what it is
//! sealed for. Fields by which a caller proves itself are left out, unless the operator wants them kept, which takes a key.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use streamweld_dialect::Engine;
use streamweld_generation::{Access, CredentialHeaders, Handle, Leg};
use streamweld_journal::StreamId;
use streamweld_upstream::examine::Likeness;

use crate::config::{JournalConfig, SigningKeys};
use crate::facts::{Callers, Former};

/// A request, and the attempt that its answer is at.
pub(crate) struct Kept {
    pub(crate) facts: KeptFacts,
    pub(crate) body: Bytes,
}

/// Everything but the body.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptFacts {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    /// What a caller must match, see [`Access`].
    access: [u8; 32],
    callers: Callers,
    /// Milliseconds since 1970.
    created: u64,
    /// The model that its target names.
    pub(crate) model: Option<String>,
    pub(crate) backend: String,
    pub(crate) group: Option<String>,
    /// What that had shown itself to be.
    pub(crate) engine: Option<Engine>,
    passes_through: bool,
    known: Option<Likeness>,
    pub(crate) attempts: u32,
}

impl KeptFacts {
    /// Of a generation that is at this attempt now.
    pub(crate) fn of(
        handle: &Handle,
        request: &Request<()>,
        (leg, former): (&Leg, &Former),
        callers: Callers,
        (names, keeps_credentials): (&CredentialHeaders, bool),
    ) -> Self {
        let spec = handle.spec();
        let keeps = |name: &HeaderName| {
            keeps_credentials || names.names().all(|credential| credential != name.as_str())
        };
        let headers = request.headers().iter().filter(|(name, _)| keeps(name));
        // A value that is no text is nothing that an API asks for.
        let headers = headers
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let created = spec.created.duration_since(UNIX_EPOCH).unwrap_or_default();
        let target = request.uri();
        let target = (!keeps_credentials)
            .then(|| crate::sending::without_key(target))
            .flatten()
            .unwrap_or_else(|| target.clone());
        Self {
            method: request.method().to_string(),
            target: target.to_string(),
            headers: headers.collect(),
            access: spec.access.digest(),
            callers: match callers {
                Callers::Shown if !keeps_credentials => Callers::NotKept,
                callers => callers,
            },
            created: u64::try_from(created.as_millis()).unwrap_or(u64::MAX),
            model: spec.model.clone(),
            backend: leg.backend.to_string(),
            group: leg.group.as_deref().map(str::to_owned),
            engine: leg.engine,
            passes_through: former.passes_through,
            known: former.known.as_deref().cloned(),
            attempts: handle.attempts(),
        }
    }

    /// The request as it was made, but for its body.
    pub(crate) fn request(&self) -> Option<Request<()>> {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).ok()?;
        *request.uri_mut() = self.target.parse::<Uri>().ok()?;
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            request
                .headers_mut()
                .append(name, HeaderValue::from_str(value).ok()?);
        }
        Some(request)
    }

    pub(crate) fn access(&self) -> Access {
        Access::inherited(self.access, self.callers == Callers::Nothing)
    }

    pub(crate) fn callers(&self) -> Callers {
        self.callers
    }

    pub(crate) fn created(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.created)
    }

    /// The backend that it was at.
    pub(crate) fn former(&self) -> Former {
        Former {
            id: Former::ELSEWHERE,
            passes_through: self.passes_through,
            known: self.known.clone().map(Arc::new),
            member: None,
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.facts, f)
    }
}

impl fmt::Debug for KeptFacts {
    /// Never what a caller has sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptFacts")
            .field("backend", &self.backend)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// It stands open, or sealed.
const OPEN: u8 = 0;
const SEALED: u8 = 1;

impl Kept {
    /// As it is stored.
    pub(crate) fn store(&self, id: StreamId, config: &JournalConfig) -> Option<Bytes> {
        let mut plain = serde_json::to_vec(&self.facts).ok()?;
        plain.push(b'\n');
        plain.extend_from_slice(&self.body);
        let Some(key) = config.request_keys.each().next() else {
            return Some([&[OPEN], &plain[..]].concat().into());
        };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let head = [&[SEALED][..], &nonce].concat();
        let aad = Aad::from(id.to_string());
        let sealed = key_of(key).seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            aad,
            &mut plain,
        );
        sealed.ok()?;
        Some([head, plain].concat().into())
    }

    /// What was stored. `None`: it is something else, or sealed with no key that is here.
    pub(crate) fn load(id: StreamId, stored: &[u8], keys: &SigningKeys) -> Option<Self> {
        let (kind, rest) = stored.split_first()?;
        let plain = match *kind {
            OPEN => rest.to_vec(),
            SEALED => {
                let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
                let open = |key: &[u8]| {
                    let mut sealed = sealed.to_vec();
                    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
                    let aad = Aad::from(id.to_string());
                    let plain = key_of(key).open_in_place(nonce, aad, &mut sealed).ok()?;
                    Some(plain.to_vec())
                };
                keys.each().find_map(open)?
            }
            _ => return None,
        };
        let end = plain.iter().position(|byte| *byte == b'\n')?;
        Some(Self {
            facts: serde_json::from_slice(&plain[..end]).ok()?,
            body: Bytes::from(plain).slice(end + 1..),
        })
    }
}

/// A key of the right length, of one that is written in any.
fn key_of(secret: &[u8]) -> LessSafeKey {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(b"streamweld request 1");
    let key = mac.finalize().into_bytes();
    let key = UnboundKey::new(&AES_256_GCM, &key).expect("SHA-256 gives 32 bytes");
    LessSafeKey::new(key)
}

#[cfg(test)]
mod tests {
    use streamweld_dialect::Dialect;
    use streamweld_generation::migration::Policy;
    use streamweld_generation::{OrphanPolicy, Spec};
    use streamweld_journal::{Epoch, Window, WindowConfig};

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const BODY: &str = "{\"messages\":[]}\n\u{6f6e}";

    fn kept(keeps_credentials: bool) -> (StreamId, Kept) {
        let created = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let id = StreamId::generate(created);
        let names = CredentialHeaders::with(["x-tenant".to_owned()]);
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/v1/chat/completions?a=b&key=secret");
        let fields = [
            ("authorization", "Bearer secret"),
            ("x-tenant", "secret"),
            ("content-type", "application/json"),
        ];
        for (name, value) in fields {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append(name, value);
        }
        let spec = Spec {
            id,
            dialect: Dialect::OpenAiChat,
            model: None,
            access: Access::of(&names, |_| [&b"secret"[..]]),
            policy: OrphanPolicy::Continue,
            request_id: "r".to_owned(),
            created,
            retry: None,
        };
        let window = Window::new(id, Epoch::FIRST, created, WindowConfig::default());
        let handle = Handle::new(spec, window);
        let leg = Leg {
            backend: "a".into(),
            member: 1,
            group: Some("g".into()),
            policy: Policy::Exact,
            engine: Some(Engine::Vllm),
            added: None,
        };
        let former = Former {
            id: Former::ELSEWHERE,
            passes_through: true,
            known: None,
            member: None,
        };
        let facts = KeptFacts::of(
            &handle,
            &request,
            (&leg, &former),
            Callers::Shown,
            (&names, keeps_credentials),
        );
        let body = Bytes::from_static(BODY.as_bytes());
        (id, Kept { facts, body })
    }

    fn keys(keys: &[&str]) -> JournalConfig {
        JournalConfig {
            request_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..JournalConfig::default()
        }
    }

    #[test]
    fn what_is_stored_is_loaded_again() {
        for config in [keys(&[]), keys(&[KEY])] {
            let (id, kept) = kept(false);
            let stored = kept.store(id, &config).expect("it is stored");
            let loaded = Kept::load(id, &stored, &config.request_keys).expect("it is loaded");
            assert_eq!(loaded.body, BODY);
            let request = loaded.facts.request().expect("a request");
            assert_eq!(request.uri(), "/v1/chat/completions?a=b");
            assert_eq!(request.headers()["content-type"], "application/json");
            assert_eq!(loaded.facts.created(), kept.facts.created());
            assert!(!loaded.facts.access().is_anonymous());
            assert_eq!(loaded.facts.engine, Some(Engine::Vllm));
        }
    }

    #[test]
    fn a_credential_is_kept_only_where_that_is_wanted() {
        let (id, without) = kept(false);
        let stored = without.store(id, &keys(&[])).expect("it is stored");
        assert!(!String::from_utf8_lossy(&stored).contains("secret"));
        assert_eq!(without.facts.callers(), Callers::NotKept);
        let (_, with) = kept(true);
        let request = with.facts.request().expect("a request");
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        assert_eq!(request.headers()["x-tenant"], "secret");
        assert_eq!(with.facts.callers(), Callers::Shown);
    }

    #[test]
    fn what_is_sealed_opens_with_any_of_the_keys_for_its_own_stream() {
        let (id, kept) = kept(true);
        let stored = kept.store(id, &keys(&[KEY])).expect("it is stored");
        assert!(!String::from_utf8_lossy(&stored).contains("messages"));
        let other = KEY.replace('0', "1");
        let load = |id, stored: &[u8], with: &[&str]| {
            Kept::load(id, stored, &keys(with).request_keys).map(|kept| kept.body)
        };
        assert!(load(id, &stored, &[&other, KEY]).is_some());
        assert_eq!(load(id, &stored, &[&other]), None);
        assert_eq!(load(id, &stored, &[]), None);
        let elsewhere = StreamId::generate(SystemTime::now());
        assert_eq!(load(elsewhere, &stored, &[KEY]), None);
        for at in [0, 1, 20, stored.len() - 1] {
            let mut changed = stored.to_vec();
            changed[at] ^= 1;
            assert_eq!(load(id, &changed, &[KEY]), None, "{at}");
        }
        for cut in 0..20 {
            assert_eq!(load(id, &stored[..cut], &[KEY]), None, "{cut}");
        }
    }

    #[test]
    fn nothing_of_it_is_shown_by_accident() {
        let (_, kept) = kept(true);
        let shown = format!("{kept:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
