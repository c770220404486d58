//! What can be set. Each part is plain data with defaults; where values come from is the binary's business.

mod migration;
mod page_origin;
mod resume_url;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use streamweld_dialect::{Dialect, UnknownDialect};
use streamweld_generation::OrphanPolicy;
use streamweld_journal::{CLAIM_TIME, Memory, MemoryConfig};
pub use streamweld_telemetry::{Config as TracesConfig, Endpoint as TracesEndpoint};
use streamweld_upstream::{Backend, UpstreamConfig, fleet};

pub use self::migration::MigrationConfig;
pub use self::page_origin::{PageOrigin, PageOriginError};
pub use self::resume_url::{ResumeUrlConfig, SigningKeys};
pub use crate::coding::{ContentCoding, UnknownCoding};

/// Everything that a server is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect. Default `127.0.0.1:8080`: nobody else on the network until you say so.
    pub listen: SocketAddr,
    /// Where probes, scrapers and operators connect. Default `127.0.0.1:9090`.
    pub admin_listen: SocketAddr,
    /// The inference servers. At least one.
    pub backends: Vec<fleet::Spec>,
    /// How backends are talked to.
    pub upstream: UpstreamConfig,
    /// How backends are watched.
    pub fleet: fleet::Config,
    /// What is tried when one fails.
    pub migration: MigrationConfig,
    /// The journal.
    pub journal: JournalConfig,
    /// Generations.
    pub generation: GenerationConfig,
    /// Connections and requests of clients.
    pub edge: EdgeConfig,
    /// The admin token, read from a file. Without one `/admin/*` answers loopback peers only.
    pub admin_token: Option<Secret>,
    /// TLS of the data listener. Default none: it is spoken to in the clear.
    pub tls: Option<streamweld_tls::Listener>,
    /// TLS of the admin listener. Where it asks for certificates, all but `/livez` and `/readyz` needs one. Default none.
    pub admin_tls: Option<streamweld_tls::Listener>,
    /// How long running generations may finish after SIGTERM. Default 30 s; keep it below the orchestrator's own
    /// grace period, or the process is killed before it has said how each generation ended.
    pub shutdown_grace: Duration,
    /// Where spans of generations are sent. Default nowhere: then there are none.
    pub traces: Option<TracesConfig>,
}

impl Config {
    /// The defaults, in front of one backend of which nothing is known but where it is.
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin_listen: SocketAddr::from(([127, 0, 0, 1], 9090)),
            backends: vec![backend.into()],
            upstream: UpstreamConfig::default(),
            fleet: fleet::Config::default(),
            migration: MigrationConfig::default(),
            journal: JournalConfig::default(),
            generation: GenerationConfig::default(),
            edge: EdgeConfig::default(),
            admin_token: None,
            tls: None,
            admin_tls: None,
            shutdown_grace: Duration::from_secs(30),
            traces: None,
        }
    }
}

/// What any journal is asked for, wherever it is.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// Bytes of one generation in this process; beyond them its oldest entries go. A reader that needs them is told so,
    /// or is given them from Redis where the journal is there. Default 32 MiB, some 100,000 events.
    pub per_generation: usize,
    /// Bytes of all generations, in memory. Finished ones go early when it is reached; when live ones fill it, new requests are
    /// served without durability. Default 512 MiB.
    pub total: u64,
    /// How long a generation can be read after its end. Default 10 min: long enough for a phone that comes out of a
    /// tunnel, short enough that memory follows traffic.
    pub retention: Duration,
    /// Keys that what is kept of a request is sealed with, for whoever takes its answer over: the first seals, all of them
    /// open. Default none: it lies in the journal as the app sent it, beside the answer that does so anyway.
    pub request_keys: SigningKeys,
    /// Callers' credentials are kept with their requests, so that another replica can go on where backends ask for them.
    /// Only with keys to seal them. Default not.
    pub keep_credentials: bool,
    /// How long an idempotency key stays with a request that has not got its log yet and gives no sign of life; it
    /// gives one three times in that. Default 30 s: two signs may be lost, and a key whose holder died is soon free.
    pub claim: Duration,
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            per_generation: 32 << 20,
            total: 512 << 20,
            retention: Duration::from_secs(600),
            request_keys: SigningKeys::default(),
            keep_credentials: false,
            claim: CLAIM_TIME,
        }
    }
}

impl JournalConfig {
    /// A journal in memory: it serves this process alone, and ends with it.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory::new(MemoryConfig {
            max_total: self.total,
            retention: self.retention,
            tombstone: self.retention,
            claim: self.claim,
        })
    }
}

/// Generations.
#[derive(Clone, Debug)]
pub struct GenerationConfig {
    /// What happens when the last reader leaves. Default `continue`.
    pub orphan_policy: OrphanPolicy,
    /// The same for durable GET routes, which may never end by themselves. Default `cancel_after=60s`.
    pub feed_orphan_policy: OrphanPolicy,
    /// Longest life. Default 1 h.
    pub max_duration: Duration,
    /// Largest event, in bytes of the backend's own lines. Default 16 MiB; images in base64 need several.
    pub max_event: usize,
    /// How long after its client was lost the answer of a POST waits for the same POST again. Default 30 s.
    pub retry_join: Duration,
    /// GET paths that are made durable: exact, or a prefix when they end in `*`. Default none.
    pub durable_get: Vec<String>,
    /// Paths whose dialect is told rather than detected; the first one that matches counts. Default none.
    pub dialects: Vec<DialectRoute>,
    /// Header fields that carry a credential, beside the usual ones. Default none.
    pub credential_headers: Vec<String>,
    /// The header field in which a gateway that has authenticated its caller says who that is. It stands in place of the
    /// credential then, and without it no generation is made. Whoever can reach the data listener can set it, so that has
    /// to be the gateway alone. Default none.
    pub trusted_subject_header: Option<String>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            orphan_policy: OrphanPolicy::Continue,
            feed_orphan_policy: OrphanPolicy::CancelAfter(Duration::from_secs(60)),
            max_duration: Duration::from_secs(3600),
            max_event: 16 << 20,
            retry_join: Duration::from_secs(30),
            durable_get: Vec::new(),
            dialects: Vec::new(),
            credential_headers: Vec::new(),
            trusted_subject_header: None,
        }
    }
}

/// A path whose dialect is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectRoute {
    /// The path: exact, or a prefix when it ends in `*`.
    pub path: String,
    /// The dialect of its event streams. `None`: they pass through and are not made durable.
    pub dialect: Option<Dialect>,
}

impl DialectRoute {
    /// The name of no dialect at all.
    pub const NONE: &'static str = "none";

    /// A route to a dialect by its name, or to none.
    ///
    /// # Errors
    /// The name is neither.
    pub fn new(path: String, name: &str) -> Result<Self, UnknownDialect> {
        let dialect = match name {
            Self::NONE => None,
            name => Some(name.parse()?),
        };
        Ok(Self { path, dialect })
    }

    /// Whether no path is left for `later` when this one stands before it.
    #[must_use]
    pub fn covers(&self, later: &Self) -> bool {
        match self.path.strip_suffix('*') {
            Some(prefix) => later.path.starts_with(prefix),
            None => self.path == later.path,
        }
    }
}

impl std::fmt::Display for DialectRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.dialect.map_or(Self::NONE, Dialect::as_str);
        write!(f, "{}={name}", self.path)
    }
}

/// Connections and requests of clients.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// A comment line is sent when nothing was written to a durable response for this long. Default 15 s: common
    /// load balancers cut at 30 or 60.
    pub heartbeat: Duration,
    /// A connection that accepts no byte for this long while there is something to write is closed. Default 30 s.
    pub write_timeout: Duration,
    /// How long a read session may hold its connection; then it is told, and its client comes back. Default none. Worth it
    /// where connections have to be spread anew over replicas, or something on the way cuts old ones without a word.
    pub session_max_age: Option<Duration>,
    /// How long the head of a request may take. Default 30 s.
    pub header_timeout: Duration,
    /// How long a client may send nothing of a body that is waited for, before its answer has begun. Default 30 s.
    pub body_timeout: Duration,
    /// And how long all of such waiting for one body may take: what comes byte by byte is slow as well. Default 10 min, in
    /// which a line of 1 Mbit/s brings 75 MB.
    pub body_time: Duration,
    /// Connections of clients at once; others wait. Default 32,768. Descriptors may be fewer, and bound them as well.
    pub max_connections: usize,
    /// Connections to the admin listener at once. Default 256.
    pub max_admin_connections: usize,
    /// Largest head of a request. Default 64 KiB. It bounds the write buffer of a connection as well.
    pub max_head: usize,
    /// Largest body of a request; none passes any. Default none.
    pub max_request_body: Option<u64>,
    /// The longest body that is kept, to be sent to another backend or compared with an earlier one. Default 32 MiB. Those that
    /// are kept count in the journal's total, and take half of it at most.
    pub max_kept_body: usize,
    /// Origins whose pages may use this server, whatever the backend says of them. Default none: the backend decides.
    pub cors_origins: Vec<PageOrigin>,
    /// URLs by which somebody without the credential can read a generation. Default none.
    pub resume_urls: ResumeUrlConfig,
    /// How long a resume waits for a journal that is out of reach. Default 5 s: an `EventSource` gives up for good on
    /// any error status.
    pub hold: Duration,
    /// Content codings that readers are sent when they ask for one, the preferred first. Default none: each open
    /// response holds memory for its encoder (see [`ContentCoding`]) and each event costs time. Worth it where clients
    /// pay for bytes; events shrink to a tenth.
    pub compress: Vec<ContentCoding>,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            session_max_age: None,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            body_time: Duration::from_secs(600),
            max_connections: 32_768,
            max_admin_connections: 256,
            max_head: 64 << 10,
            max_request_body: None,
            max_kept_body: 32 << 20,
            cors_origins: Vec::new(),
            resume_urls: ResumeUrlConfig::default(),
            hold: Duration::from_secs(5),
            compress: Vec::new(),
        }
    }
}

/// Something that must never be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Reads a secret from a file; the last line end is not part of it.
    ///
    /// # Errors
    /// The file cannot be read, or holds no secret that a header field could carry.
    pub fn from_file(path: &PathBuf) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let text = text.trim_end_matches(['\r', '\n']);
        let invalid = |message| std::io::Error::new(std::io::ErrorKind::InvalidData, message);
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("the file has to hold one word of visible ASCII"));
        }
        Self::new(text.to_owned()).ok_or_else(|| invalid("the file is empty"))
    }

    /// A secret, unless the text is empty.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    /// The secret itself, for whoever has to send it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}
