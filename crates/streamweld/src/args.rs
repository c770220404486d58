//! The command line. Each flag of `serve` can be given as a `STREAMWELD_*` variable as well, or in a file; a flag wins, then
//! the variable.
//!
//! [`Args::read`] refuses everything that can be known to be wrong before anything starts, files included, and names
//! the flag or the variable that it stands in. What it lets through can still fail, but is no mistake in writing.

mod check;
mod file;
mod operate;
mod origin;
#[cfg(test)]
mod reference;
mod settings;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::builder::{BoolishValueParser, PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{
    ArgAction, ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand,
    ValueEnum,
};
use streamweld_generation::OrphanPolicy;
use streamweld_journal::Level;
use streamweld_journal_redis::{RedisUrl, UrlError};
use streamweld_mock::Script;
use streamweld_server::config::{ContentCoding, DialectRoute, PageOrigin, Secret, SigningKeys};
use streamweld_upstream::fleet::{Credential, Engine};

use crate::journal::Place;
use crate::values::{
    Backends, Collector, GroupPolicy, JournalPlace, Listed, Member, Url, address, attempts,
    backend_name, certificates, certified_name, credential, credential_header, dialect_route,
    duration, health_time, host_and_port, journal_file, journal_size, orphan_policy, password_file,
    path_pattern, positive_duration, presence_lease, script, script_file, secret, signing_keys,
    size, subject_header, times, two_addresses, url_prefix,
};

use self::file::SettingsFile;
pub(crate) use self::operate::{
    Admin, Backends as BackendsCommand, BackendsWhat, Drain, Format, Migrate, Streams, StreamsList,
    StreamsWhat,
};
use self::origin::Origin;
pub(crate) use self::settings::{Setting, Stands};

/// Makes streamed answers of inference servers durable and resumable.
#[derive(Debug, Parser)]
#[command(name = "streamweld", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Each setting of a command that can be written into a file, and where it stands.
    #[arg(skip)]
    pub(crate) settings: Vec<Setting>,
}

/// The setting that says which file the others stand in.
const FILE: &str = "config";

impl Serve {
    /// What one generation may hold: by default no more than all together.
    pub(crate) fn per_generation(&self) -> ByteSize {
        let default = ByteSize::mib(32).min(self.journal_total);
        self.journal_per_generation.unwrap_or(default)
    }

    /// The backends that were written well, which all are once [`Args::read`] has let them through.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Listed> {
        self.backend.iter().flat_map(|some| some.each().flatten())
    }

    /// For how long there can be something to read of a generation that begins now.
    pub(crate) fn longest(&self) -> Duration {
        self.max_duration.saturating_add(self.retention)
    }

    /// Where the journal is.
    ///
    /// # Errors
    /// It was written wrongly, which [`Args::read`] has refused already.
    pub(crate) fn place(&self) -> Result<Place, UrlError> {
        match (&self.journal_file, &self.journal) {
            (Some(url), _) => Ok(Place::Redis(url.clone())),
            (None, Some(place)) => place.checked(),
            (None, None) => Ok(Place::Memory),
        }
    }
}

impl Args {
    /// Reads the command line, the variables and the settings file.
    ///
    /// # Errors
    /// What is refused, in words for whoever wrote it. Also a wish for help or for the version.
    pub(crate) fn read<T>(line: impl IntoIterator<Item = T>) -> Result<Self, clap::Error>
    where
        T: Into<OsString>,
    {
        let line: Vec<OsString> = line.into_iter().map(Into::into).collect();
        // What the file is asked for may be demanded: it is missing only when it is not there either.
        let lenient = with_settings(Self::command(), |command| {
            command.mut_arg("backend", |backend| backend.required(false))
        });
        let matches = lenient
            .try_get_matches_from(&line)
            .map_err(|error| origin::name_variable(error, &line))?;
        let mut command = Self::command();
        let file = match chosen(&matches).and_then(|matches| matches.get_one::<PathBuf>(FILE)) {
            Some(path) => {
                let serve = command.find_subcommand("serve").expect("it is one");
                let file = SettingsFile::read(path, serve);
                Some(file.map_err(|faults| refused(&mut command, &matches, &faults))?)
            }
            None => None,
        };
        if let Some(file) = &file {
            command = with_settings(command, |command| file.put_below(command));
        }
        // Flags and variables were well, so a fault is the file's.
        let matches = command
            .try_get_matches_from_mut(&line)
            .map_err(|error| origin::name_line(error, file.as_ref()))?;
        let mut args =
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        let origin = match chosen(&matches) {
            Some(chosen) => Origin::of(chosen, file.as_ref()),
            None => Origin::of(matches.subcommand().expect("clap demands one").1, None),
        };
        let faults = check::faults(&args.command, &origin);
        if !faults.is_empty() {
            return Err(refused(&mut command, &matches, &faults));
        }
        if let Some(chosen) = chosen(&matches) {
            args.settings = settings::all(&Self::command(), chosen, file.as_ref());
        }
        Ok(args)
    }
}

/// Below one another, behind what clap writes in front of the first.
fn refused(command: &mut clap::Command, matches: &ArgMatches, faults: &[String]) -> clap::Error {
    let (name, _) = matches.subcommand().expect("clap demands a command");
    let chosen = command.find_subcommand_mut(name).expect("it was chosen");
    chosen.error(ErrorKind::ValueValidation, faults.join("\n       "))
}

/// What was given to a command that has the settings of `serve`.
fn chosen(matches: &ArgMatches) -> Option<&ArgMatches> {
    match matches.subcommand()? {
        ("serve" | "check-config", chosen) => Some(chosen),
        ("config", which) => which.subcommand().map(|(_, chosen)| chosen),
        _ => None,
    }
}

/// Changes every command that has the settings of `serve`.
fn with_settings(
    command: clap::Command,
    change: impl Fn(clap::Command) -> clap::Command,
) -> clap::Command {
    command.mut_subcommands(|command| match command.get_name() {
        "serve" | "check-config" => change(command),
        "config" => command.mut_subcommands(&change),
        _ => command,
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve in front of one backend or several.
    Serve(Box<Serve>),
    /// Say whether `serve` would take these settings, without starting anything.
    CheckConfig(Box<Serve>),
    /// Show the settings.
    Config(ConfigCommand),
    /// List the streams of a running Streamweld, show or stop one.
    Streams(Streams),
    /// Move a stream of a running Streamweld to another backend.
    Migrate(Migrate),
    /// Have a running Streamweld leave: what it runs is handed over to other replicas.
    Drain(Drain),
    /// List the backends of a running Streamweld, drain or undrain one.
    Backends(BackendsCommand),
    /// Be a scriptable fake inference server.
    Mock(Box<Mock>),
    /// Show what it does: cut, resume, second reader, stop.
    Demo(Demo),
    /// Find out how answers that were cut can go on at a backend, or from one to another.
    Doctor(Box<Doctor>),
}

/// Show the settings.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    pub(crate) what: ConfigWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigWhat {
    /// Show what `serve` would use, and where each value stands, as a settings file.
    Show(Box<Serve>),
}

/// Serve in front of one backend or several.
#[derive(Debug, ClapArgs)]
#[command(after_help = OPTIONS)]
pub(crate) struct Serve {
    /// File with settings: TOML, with the names of the flags and `_` for `-`; flags and variables win over it
    #[arg(long, env = "STREAMWELD_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// An inference server, such as http://127.0.0.1:8000 (repeatable; options below)
    #[arg(
        long,
        env = "STREAMWELD_BACKEND",
        hide_env_values = true,
        value_name = "URL[,OPTION…]",
        required = true
    )]
    pub(crate) backend: Vec<Backends>,
    // Clients read it in errors, so it is never made from the address.
    /// What a single backend is called in errors, logs and states: 1 to 63 of A-Z a-z 0-9 - . _
    #[arg(long, env = "STREAMWELD_BACKEND_NAME", value_name = "NAME", default_value = "default", value_parser = backend_name)]
    pub(crate) backend_name: String,
    /// PEM file with certificates to trust for backends, besides the system's
    #[arg(long, env = "STREAMWELD_BACKEND_CA", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(certificates))]
    pub(crate) backend_ca: Option<PathBuf>,
    /// Speak HTTP/2 to backends, by prior knowledge when it is plain http
    #[arg(long, env = "STREAMWELD_BACKEND_HTTP2", value_name = "BOOL", value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, hide_default_value = true)]
    pub(crate) backend_http2: bool,
    /// Where clients connect
    #[arg(long, env = "STREAMWELD_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Where probes, scrapers and operators connect
    #[arg(long, env = "STREAMWELD_ADMIN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9090", value_parser = address)]
    pub(crate) admin_listen: SocketAddr,
    /// File with the admin token; without one /admin/* answers loopback only
    #[arg(long, env = "STREAMWELD_ADMIN_TOKEN_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(secret))]
    pub(crate) admin_token_file: Option<Secret>,

    /// PEM file with the certificate of the data listener, which then speaks TLS; read again when it changes
    #[arg(long, env = "STREAMWELD_TLS_CERT_FILE", value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// PEM file with the key to it
    #[arg(long, env = "STREAMWELD_TLS_KEY_FILE", value_name = "FILE")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// PEM file with the CA whose certificates clients need
    #[arg(long, env = "STREAMWELD_TLS_CLIENT_CA_FILE", value_name = "FILE")]
    pub(crate) tls_client_ca_file: Option<PathBuf>,
    /// PEM file with the certificate of the admin listener, which then speaks TLS; read again when it changes
    #[arg(long, env = "STREAMWELD_ADMIN_TLS_CERT_FILE", value_name = "FILE")]
    pub(crate) admin_tls_cert_file: Option<PathBuf>,
    /// PEM file with the key to it
    #[arg(long, env = "STREAMWELD_ADMIN_TLS_KEY_FILE", value_name = "FILE")]
    pub(crate) admin_tls_key_file: Option<PathBuf>,
    /// PEM file with the CA whose certificates are needed there, but for probes
    #[arg(long, env = "STREAMWELD_ADMIN_TLS_CLIENT_CA_FILE", value_name = "FILE")]
    pub(crate) admin_tls_client_ca_file: Option<PathBuf>,
    /// Connections of clients at once; others wait
    #[arg(long, env = "STREAMWELD_MAX_CONNECTIONS", value_name = "N", default_value = "32768", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,

    /// Where the journal is: memory, or redis://HOST:PORT/N (rediss:// for TLS), redis+unix:///PATH, redis+sentinel://HOST:PORT,…/SERVICE or redis+cluster://HOST:PORT,… to share it with other replicas [default: memory]
    #[arg(
        long,
        env = "STREAMWELD_JOURNAL",
        hide_env_values = true,
        value_name = "PLACE"
    )]
    pub(crate) journal: Option<JournalPlace>,
    /// File with the URL of the Redis, so that a password stands nowhere else
    #[arg(long, env = "STREAMWELD_JOURNAL_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(journal_file))]
    pub(crate) journal_file: Option<RedisUrl>,
    /// PEM file with certificates to trust for a Redis with TLS, besides the system's
    #[arg(long, env = "STREAMWELD_JOURNAL_CA_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(certificates))]
    pub(crate) journal_ca_file: Option<PathBuf>,
    /// File with the password of the Redis, read for each connection, so that it can be changed at any time
    #[arg(long, env = "STREAMWELD_JOURNAL_PASSWORD_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(password_file))]
    pub(crate) journal_password_file: Option<PathBuf>,
    /// When something is committed in a shared journal: async, replicated:N or fsync [default: async]
    #[arg(long, env = "STREAMWELD_JOURNAL_DURABILITY", value_name = "LEVEL")]
    pub(crate) journal_durability: Option<Level>,
    /// Do not start when the shared journal cannot be reached or is not set up as it has to be
    #[arg(long, env = "STREAMWELD_JOURNAL_REQUIRED", value_name = "BOOL", value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, hide_default_value = true)]
    pub(crate) journal_required: bool,
    /// Bytes of one generation in the journal; its oldest entries go first [default: 32MiB, or a smaller total]
    #[arg(long, env = "STREAMWELD_JOURNAL_PER_GENERATION", value_name = "SIZE", value_parser = journal_size)]
    pub(crate) journal_per_generation: Option<ByteSize>,
    /// Bytes of all generations in the journal; finished ones go first
    #[arg(long, env = "STREAMWELD_JOURNAL_TOTAL", value_name = "SIZE", default_value = "512MiB", value_parser = journal_size)]
    pub(crate) journal_total: ByteSize,
    /// How long a generation can be read after its end
    #[arg(long, env = "STREAMWELD_RETENTION", value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(crate) retention: Duration,
    /// How long another replica must be silent to be taken for dead; the same on all of them
    #[arg(long, env = "STREAMWELD_PRESENCE_LEASE", value_name = "TIME", default_value = "10s", value_parser = presence_lease)]
    pub(crate) presence_lease: Duration,

    /// Where other replicas ask for answers that are made here while Redis is away, with mutual TLS [default: nowhere]
    #[arg(long, env = "STREAMWELD_RELAY_LISTEN", value_name = "ADDR", value_parser = address)]
    pub(crate) relay_listen: Option<SocketAddr>,
    /// Where they reach that [default: where it listens]
    #[arg(long, env = "STREAMWELD_RELAY_ADVERTISE", value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) relay_advertise: Option<String>,
    /// The name that the certificates of all of them have [default: each has the host of its address]
    #[arg(long, env = "STREAMWELD_RELAY_NAME", value_name = "NAME", value_parser = certified_name)]
    pub(crate) relay_name: Option<String>,
    /// PEM file with the certificate that this replica shows to others, read for each connection
    #[arg(long, env = "STREAMWELD_RELAY_CERT", value_name = "FILE")]
    pub(crate) relay_cert: Option<PathBuf>,
    /// PEM file with the key to it
    #[arg(long, env = "STREAMWELD_RELAY_KEY", value_name = "FILE")]
    pub(crate) relay_key: Option<PathBuf>,
    /// PEM file with the CA that the certificates of all of them come from, and no others
    #[arg(long, env = "STREAMWELD_RELAY_CA", value_name = "FILE")]
    pub(crate) relay_ca: Option<PathBuf>,

    /// What happens when the last reader leaves: continue, cancel, cancel_after=TIME
    #[arg(long, env = "STREAMWELD_ORPHAN_POLICY", value_name = "POLICY", default_value = "continue", value_parser = orphan_policy)]
    pub(crate) orphan_policy: OrphanPolicy,
    /// Longest life of a generation
    #[arg(long, env = "STREAMWELD_MAX_DURATION", value_name = "TIME", default_value = "1h", value_parser = positive_duration)]
    pub(crate) max_duration: Duration,
    /// Largest event of a backend
    #[arg(long, env = "STREAMWELD_MAX_EVENT", value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    pub(crate) max_event: ByteSize,
    /// How long the answer to a lost client waits for the same request again
    #[arg(long, env = "STREAMWELD_RETRY_JOIN", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) retry_join: Duration,
    /// GET path whose event streams are made durable; a prefix when it ends in `*` (repeatable)
    #[arg(long, env = "STREAMWELD_DURABLE_GET", value_name = "PATH", value_delimiter = ',', value_parser = path_pattern)]
    pub(crate) durable_get: Vec<String>,
    /// Dialect of the event streams of a path, a prefix when it ends in `*`; `none` passes them through (repeatable)
    #[arg(long, env = "STREAMWELD_DIALECT", value_name = "PATH=NAME", value_delimiter = ',', value_parser = dialect_route)]
    pub(crate) dialect: Vec<DialectRoute>,
    /// Header field that carries a credential, beside the usual ones (repeatable)
    #[arg(long, env = "STREAMWELD_CREDENTIAL_HEADER", value_name = "NAME", value_delimiter = ',', value_parser = credential_header)]
    pub(crate) credential_header: Vec<http::HeaderName>,
    /// Header field in which the gateway says whom it has authenticated, in place of a credential; only the gateway may reach
    /// the data listener then
    #[arg(long, env = "STREAMWELD_TRUSTED_SUBJECT_HEADER", value_name = "NAME", value_parser = subject_header)]
    pub(crate) trusted_subject_header: Option<http::HeaderName>,
    /// File with keys, one on each line: what other replicas need of a request to go on with its answer is sealed with
    /// them in the journal. The first seals, all of them open
    #[arg(long, env = "STREAMWELD_REQUEST_KEY_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(signing_keys))]
    pub(crate) request_key_file: Option<SigningKeys>,
    /// Keep callers' credentials with it, so that another replica can show them to a backend (needs --request-key-file)
    #[arg(long, env = "STREAMWELD_KEEP_CREDENTIALS", value_name = "BOOL", value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, hide_default_value = true)]
    pub(crate) keep_credentials: bool,
    /// Origin whose pages may use this server, whatever the backend says, such as `https://app.example` (repeatable)
    #[arg(
        long,
        env = "STREAMWELD_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub(crate) cors_origin: Vec<PageOrigin>,
    /// File with keys, one on each line: heads then have URLs by which a page reads without a credential. The first signs
    #[arg(long, env = "STREAMWELD_URL_SIGNING_KEY_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(signing_keys))]
    pub(crate) url_signing_key_file: Option<SigningKeys>,
    /// How long such a URL is good [default: longest life and retention together]
    #[arg(long, env = "STREAMWELD_URL_LIFETIME", value_name = "TIME", value_parser = positive_duration)]
    pub(crate) url_lifetime: Option<Duration>,
    /// What an ingress takes off the front of paths, to stand in such a URL again
    #[arg(long, env = "STREAMWELD_URL_PREFIX", value_name = "PATH", value_parser = url_prefix)]
    pub(crate) url_prefix: Option<String>,

    /// A comment line is sent after this long without a byte
    #[arg(long, env = "STREAMWELD_HEARTBEAT", value_name = "TIME", default_value = "15s", value_parser = positive_duration)]
    pub(crate) heartbeat: Duration,
    /// Content codings that readers are sent when they ask for one, the preferred first: gzip, br, zstd (repeatable) [default: none]
    #[arg(
        long,
        env = "STREAMWELD_COMPRESS",
        value_name = "CODING",
        value_delimiter = ','
    )]
    pub(crate) compress: Vec<ContentCoding>,
    /// A connection that takes no byte for this long is closed
    #[arg(long, env = "STREAMWELD_WRITE_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = positive_duration)]
    pub(crate) write_timeout: Duration,
    /// How long a client may send nothing of a request body before its answer has begun
    #[arg(long, env = "STREAMWELD_BODY_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = positive_duration)]
    pub(crate) body_timeout: Duration,
    /// How long all waiting for one request body may take
    #[arg(long, env = "STREAMWELD_BODY_TIME", value_name = "TIME", default_value = "10m", value_parser = positive_duration)]
    pub(crate) body_time: Duration,
    /// Longest time that a read session holds its connection; the client comes back [default: no limit]
    #[arg(long, env = "STREAMWELD_SESSION_MAX_AGE", value_name = "TIME", value_parser = positive_duration)]
    pub(crate) session_max_age: Option<Duration>,
    /// Largest request body [default: no limit]
    #[arg(long, env = "STREAMWELD_MAX_REQUEST_BODY", value_name = "SIZE", value_parser = size)]
    pub(crate) max_request_body: Option<ByteSize>,
    /// Longest request body that is kept, to be sent to another backend or compared with an earlier one
    #[arg(long, env = "STREAMWELD_MAX_KEPT_BODY", value_name = "SIZE", default_value = "32MiB", value_parser = size)]
    pub(crate) max_kept_body: ByteSize,

    /// Requests for one answer before its first event, each to another backend
    #[arg(long, env = "STREAMWELD_ATTEMPTS", value_name = "N", default_value = "3", value_parser = attempts)]
    pub(crate) attempts: NonZeroU32,
    /// What a group of backends may do for an answer that one of them began: off, exact, prefill (repeatable) [default: exact]
    #[arg(
        long,
        env = "STREAMWELD_MIGRATION",
        value_name = "GROUP=POLICY",
        value_delimiter = ','
    )]
    pub(crate) migration: Vec<GroupPolicy>,
    /// A group whose backends are not examined: you vouch that they are what you say, and alike (repeatable)
    #[arg(
        long,
        env = "STREAMWELD_VOUCHED",
        value_name = "GROUP",
        value_delimiter = ','
    )]
    pub(crate) vouched: Vec<String>,
    /// How often one answer may move to another backend
    #[arg(long, env = "STREAMWELD_MIGRATIONS", value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(..=16))]
    pub(crate) migrations: u32,
    /// How long an answer that was cut waits for a backend to go on
    #[arg(long, env = "STREAMWELD_MIGRATION_WAIT", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) migration_wait: Duration,
    /// An attempt without a first event for so long has stalled [default: never]
    #[arg(long, env = "STREAMWELD_FIRST_TOKEN_TIMEOUT", value_name = "TIME", value_parser = positive_duration)]
    pub(crate) first_token_timeout: Option<Duration>,
    /// An attempt without a further event for so long has stalled [default: never]
    #[arg(long, env = "STREAMWELD_BETWEEN_TOKENS_TIMEOUT", value_name = "TIME", value_parser = positive_duration)]
    pub(crate) between_tokens_timeout: Option<Duration>,
    /// How often each backend is asked whether it is well
    #[arg(long, env = "STREAMWELD_HEALTH_EVERY", value_name = "TIME", default_value = "5s", value_parser = health_time)]
    pub(crate) health_every: Duration,
    /// How long it may take to say so
    #[arg(long, env = "STREAMWELD_HEALTH_TIMEOUT", value_name = "TIME", default_value = "3s", value_parser = health_time)]
    pub(crate) health_timeout: Duration,
    /// After so many times without a yes in a row it is down
    #[arg(long, env = "STREAMWELD_HEALTH_FAILURES", value_name = "N", default_value = "3", value_parser = times)]
    pub(crate) health_failures: NonZeroU32,
    /// After so many times yes in a row it is up again
    #[arg(long, env = "STREAMWELD_HEALTH_SUCCESSES", value_name = "N", default_value = "2", value_parser = times)]
    pub(crate) health_successes: NonZeroU32,

    /// How long connecting to the backend may take
    #[arg(long, env = "STREAMWELD_CONNECT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = positive_duration)]
    pub(crate) connect_timeout: Duration,
    /// How long the backend may take until the head of its answer [default: no limit]
    #[arg(long, env = "STREAMWELD_FIRST_BYTE_TIMEOUT", value_name = "TIME", value_parser = positive_duration)]
    pub(crate) first_byte_timeout: Option<Duration>,

    /// How long running generations may finish after SIGTERM
    #[arg(long, env = "STREAMWELD_SHUTDOWN_GRACE", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) shutdown_grace: Duration,
    /// Worker threads [default: one for each core]
    #[arg(long, env = "STREAMWELD_THREADS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Where spans are sent: the place of an OTLP collector by HTTP, such as http://127.0.0.1:4318; /v1/traces is put behind it [default: nowhere, or as OTEL_EXPORTER_OTLP_ENDPOINT says]
    #[arg(
        long,
        env = "STREAMWELD_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) otlp_endpoint: Option<Collector>,
    #[command(flatten)]
    pub(crate) log: Log,
}

/// What `streamweld serve --help` says of backends.
const OPTIONS: &str = "\
Options of a backend, behind its URL, with a comma before each:
  name=N                what it is called; each needs one where there are several
  engine=E              vllm, sglang, tgi, llama_cpp, trtllm, ollama, openai, anthropic, gemini, unknown
  family=F              openai, anthropic, gemini, unknown, where it is not that of the engine
  group=G               another of the same group may go on with what it began
  weight=W              its share of the requests, 1 to 1000
  dns                   one backend at each address that its host's name leads to
  credential-file=FILE  a key that it is shown in place of the caller's
  health=PATH           where it says whether it is well; off: it is not asked

Two that may take over from each other:
  --backend http://10.0.0.1:8000,name=a,engine=vllm,group=g \\
  --backend http://10.0.0.2:8000,name=b,engine=vllm,group=g";

/// What is logged.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Log {
    /// How log lines look
    #[arg(
        long,
        env = "STREAMWELD_LOG_FORMAT",
        value_enum,
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
    /// The least important lines that are logged
    #[arg(long, env = "STREAMWELD_LOG_LEVEL", value_enum, default_value = "info")]
    pub(crate) log_level: LogLevel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Be a scriptable fake inference server.
#[derive(Debug, ClapArgs)]
#[command(after_help = MEMBERS)]
pub(crate) struct Mock {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// What to do, as JSON; single members are easier by --set
    #[arg(long, value_name = "JSON", conflicts_with = "script_file", value_parser = script)]
    pub(crate) script: Option<Script>,
    /// A file with the script
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(script_file))]
    pub(crate) script_file: Option<Script>,
    /// A member of the script, such as tokens=50, pace=20ms or end=rst_after:10 (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<Member>,
}

/// What `streamweld mock --help` says of the script.
const MEMBERS: &str = "\
Members of a script that are needed most, as --set takes them (in a shell, in single quotes):
  tokens=50               how many words the answer has
  text=\"Hello there\"      what it says
  pace=20ms               time between two events
  head_delay=2s           time before the head of the answer
  first_token_delay=1s    time before the first word
  status=503              a plain error answer
  end=rst_after:10        how it ends: done, no_sentinel, no_finish, sentinel_only, torn_last:BYTES,
                          rst_after:N, fin_after:N, clean_after:N, error_after:N, abort_after:N
  marks=[{\"after\":5,\"do\":{\"pause\":\"30s\"}}]
                          what happens on the way: pause, stall, block, huge, bad_utf8, bad_chunk
  writes={\"bytes\":7}      how many bytes go into one write

docs/mock.md in the source has them all. A request can change the script for itself: with the
header field `x-mock-script: {\"tokens\":5}`, or with ?mock.tokens=5 in its path.";

/// Show what Streamweld does.
#[derive(Debug, ClapArgs)]
pub(crate) struct Demo {
    /// A real OpenAI-compatible server to demonstrate in front of [default: a mock of its own]
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<Url>,
    /// Two replicas of one Redis journal to demonstrate with, instead of a server of its own; says when to kill what
    #[arg(long, value_name = "ADDR,ADDR", conflicts_with = "backend", value_parser = two_addresses)]
    pub(crate) replicas: Option<[SocketAddr; 2]>,
    /// The model to ask for
    #[arg(long, value_name = "NAME", default_value = "mock")]
    pub(crate) model: String,
}

/// Find out how answers that were cut can go on at a backend, or from one to another.
#[derive(Debug, ClapArgs)]
#[command(after_help = CODES)]
pub(crate) struct Doctor {
    /// The inference server, such as http://127.0.0.1:8000
    #[arg(value_name = "URL")]
    pub(crate) backend: Url,
    /// Another that is to take over from it, and the other way round
    #[arg(value_name = "URL2")]
    pub(crate) other: Option<Url>,
    /// The engine that it is said to be: vllm, sglang, llama_cpp, or another that `serve` knows
    #[arg(long, value_name = "NAME", default_value_t = Engine::Unknown)]
    pub(crate) engine: Engine,
    /// File with the key that the server wants, both of them where there are two
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(credential))]
    pub(crate) credential_file: Option<Credential>,
    /// The model to ask for [default: the first that it lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How the answer looks
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Table,
    Json,
}

/// What `streamweld doctor --help` says of its end.
const CODES: &str = "\
Exit codes:
  0  an answer can go on by one method at least: there, or from each of the two at the other
  3  it cannot, or nobody could find out, or one is another engine than --engine says
  1  a server did not say what it is
  2  the command line is wrong

It asks for two short answers and for the rest of each, some two hundred tokens in all, and for what
engines tell for free. docs/doctor.md in the source says what each line means.";

#[cfg(test)]
mod tests;
