//! `streamweld serve`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use streamweld_generation::{HealBounds, OrphanPolicy};
use streamweld_server::config::{
    EdgeConfig, GenerationConfig, JournalConfig, MigrationConfig, PageOrigin, ResumeUrlConfig,
};
use streamweld_server::{Config, Server};
use streamweld_tls::Listener;
use streamweld_upstream::fleet::{Credential, HealthCheck, Reach};
use streamweld_upstream::{Protocol, UpstreamConfig, fleet};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::args::{Serve, Setting};
use crate::journal::Place;
use crate::reload::Reload;
use crate::signals::Signals;
use crate::values::show_size;
use crate::{journal, logging, relay, supervisor, traces};

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(
    args: Serve,
    line: Vec<OsString>,
    settings: Vec<Setting>,
) -> anyhow::Result<ExitCode> {
    let level = logging::start(&args.log)?;
    logging::tell_panics();
    let (config, journal) = (config(&args)?, journal(&args)?);
    let runtime = runtime(args.threads)?;
    let relay = relay::settings(&args);
    let code = runtime.block_on(async {
        let reload = Reload::new(line, settings, level)?;
        serve(config, journal, relay, reload).await
    })?;
    // Nothing is waited for any more: a blocking name lookup must not hold the exit up.
    runtime.shutdown_background();
    Ok(code)
}

/// What the command line asks for.
pub(crate) fn config(args: &Serve) -> anyhow::Result<Config> {
    let [tls, admin_tls] = crate::tls::listeners(args)?;
    Ok(Config {
        listen: args.listen,
        admin_listen: args.admin_listen,
        backends: args
            .listed()
            .map(|listed| listed.spec(&args.backend_name))
            .collect(),
        fleet: fleet::Config {
            probe_every: args.health_every,
            probe_timeout: args.health_timeout,
            probe_failures: args.health_failures,
            probe_successes: args.health_successes,
            ..fleet::Config::default()
        },
        migration: migration(args),
        upstream: UpstreamConfig {
            connect_timeout: args.connect_timeout,
            first_byte_timeout: args.first_byte_timeout,
            protocol: if args.backend_http2 {
                Protocol::Http2
            } else {
                Protocol::Auto
            },
            extra_ca_file: args.backend_ca.clone(),
            ..UpstreamConfig::default()
        },
        journal: JournalConfig {
            per_generation: bytes(args.per_generation().as_u64()),
            total: args.journal_total.as_u64(),
            retention: args.retention,
            request_keys: args.request_key_file.clone().unwrap_or_default(),
            keep_credentials: args.keep_credentials,
            ..JournalConfig::default()
        },
        generation: GenerationConfig {
            orphan_policy: args.orphan_policy,
            max_duration: args.max_duration,
            max_event: bytes(args.max_event.as_u64()),
            retry_join: args.retry_join,
            durable_get: args.durable_get.clone(),
            dialects: args.dialect.clone(),
            credential_headers: args
                .credential_header
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect(),
            trusted_subject_header: args
                .trusted_subject_header
                .as_ref()
                .map(|name| name.as_str().to_owned()),
            ..GenerationConfig::default()
        },
        edge: EdgeConfig {
            heartbeat: args.heartbeat,
            write_timeout: args.write_timeout,
            body_timeout: args.body_timeout,
            body_time: args.body_time,
            max_connections: usize::try_from(args.max_connections).unwrap_or(usize::MAX),
            session_max_age: args.session_max_age,
            max_request_body: args.max_request_body.map(|size| size.as_u64()),
            max_kept_body: bytes(args.max_kept_body.as_u64()),
            cors_origins: args.cors_origin.clone(),
            resume_urls: ResumeUrlConfig {
                keys: args.url_signing_key_file.clone().unwrap_or_default(),
                lifetime: args.url_lifetime.unwrap_or_else(|| args.longest()),
                prefix: args.url_prefix.clone().unwrap_or_default(),
            },
            compress: args.compress.clone(),
            ..EdgeConfig::default()
        },
        admin_token: args.admin_token_file.clone(),
        tls,
        admin_tls,
        shutdown_grace: args.shutdown_grace,
        traces: traces::config(args)?,
    })
}

/// What is tried when a backend fails.
fn migration(args: &Serve) -> MigrationConfig {
    let groups = args.migration.iter().cloned();
    MigrationConfig {
        attempts: args.attempts,
        moves: args.migrations,
        wait: args.migration_wait,
        groups: groups.map(|of| (of.group, of.policy)).collect(),
        vouched: args.vouched.iter().cloned().collect(),
        first_token: args.first_token_timeout,
        between_tokens: args.between_tokens_timeout,
    }
}

/// Where its journal is to be.
pub(crate) fn journal(args: &Serve) -> anyhow::Result<journal::Settings> {
    Ok(journal::Settings {
        place: args.place()?,
        ca_file: args.journal_ca_file.clone(),
        password_file: args.journal_password_file.clone(),
        level: args.journal_durability.unwrap_or_default(),
        required: args.journal_required,
        lease: args.presence_lease,
    })
}

async fn serve(
    config: Config,
    journal: journal::Settings,
    relay: Option<streamweld_relay::Config>,
    reload: Reload,
) -> anyhow::Result<ExitCode> {
    show(&config, &journal);
    warn_of_credentials(&config, &journal);
    show_relay(relay.as_ref());
    warn_of(&config);
    show_traces(&config);
    let schemes = [&config.tls, &config.admin_tls].map(scheme);
    let mut signals = Signals::new()?;
    let relay = relay::bind(relay).await?;
    let asked = relay.as_ref().map(|(relay, _)| relay.clone());
    let journal = journal::open(&journal, &config.journal, asked).await?;
    let mut heal = HealBounds::default();
    heal.total = heal.total.min(bytes(config.journal.total));
    let server = Server::bind_with(config, journal, heal).await?;
    let server = server.count_dropped_lines(logging::dropped);
    info!("data listener on {}://{}", schemes[0], server.data_addr()?);
    if let Some((relay, listener)) = &relay {
        relay::show(relay, &server);
        info!("relay listener on {}", listener.addr()?);
    }
    info!(
        "admin listener on {}://{}",
        schemes[1],
        server.admin_addr()?
    );
    let control = server.control();
    let mut reload = pin!(reload.run(control.clone()));
    let mut lives = pin!(supervisor::lives(server.admin_addr()?));
    supervisor::serves();
    let (begin, begun) = oneshot::channel::<()>();
    let owned = server.owned();
    let running = server.run(async { drop(begun.await) });
    let mut running = pin!(async {
        match relay {
            // Its connections end with the server, whose readers have their ends then.
            Some((_, listener)) => tokio::select! {
                () = running => {}
                () = relay::run(listener, owned) => {}
            },
            None => running.await,
        }
    });
    tokio::select! {
        () = &mut running => return Ok(ExitCode::SUCCESS),
        never = &mut reload => match never {},
        never = &mut lives => match never {},
        _ = signals.next() => drop(begin),
    }
    supervisor::leaves(control.shutdown_grace());
    // The first signal is taken before the shutdown begins, so whoever sees it begin can send the second.
    tokio::select! {
        () = &mut running => Ok(ExitCode::SUCCESS),
        // The grace time may be made longer or shorter for the next; this one has begun. Credentials change all the same.
        never = &mut reload => match never {},
        never = &mut lives => match never {},
        code = signals.next() => Ok(ExitCode::from(code)),
    }
}

/// Between replicas, what was asked for with a caller's credential moves only where that is kept. Whoever has set up groups
/// for it should not learn that from the first replica that dies.
fn warn_of_credentials(config: &Config, journal: &journal::Settings) {
    if matches!(journal.place, Place::Memory) || config.journal.keep_credentials {
        return;
    }
    let callers = config.backends.iter().filter(|backend| {
        backend.group.is_some() && matches!(backend.credential, Credential::PassThrough)
    });
    let names: Vec<&str> = callers.map(|backend| &*backend.name).collect();
    if !names.is_empty() {
        warn!(
            backends = names.join(", "),
            "these are shown the caller's credential, which is not kept for other replicas: a request that has one goes on \
             at no other replica (gate credential); give the backends a credential of their own (credential_file), or set \
             --keep-credentials and --request-key-file"
        );
    }
}

fn scheme(tls: &Option<Listener>) -> &'static str {
    match tls {
        Some(_) => "https",
        None => "http",
    }
}

/// What may be meant, and is told all the same.
fn warn_of(config: &Config) {
    for (listener, tls) in [("data", &config.tls), ("admin", &config.admin_tls)] {
        let expires = tls.as_ref().and_then(Listener::expires);
        if expires.is_some_and(|at| at <= SystemTime::now()) {
            warn!(
                listener,
                "its certificate has expired; clients that look will not connect"
            );
        }
    }
    let is_vouched = config.tls.as_ref().is_some_and(Listener::asks);
    if config.generation.trusted_subject_header.is_some()
        && !config.listen.ip().to_canonical().is_loopback()
        && !is_vouched
    {
        warn!(
            listen = %config.listen,
            "whoever reaches the data listener can be anybody by trusted-subject-header; let nobody but the gateway reach it, \
             or have it show a certificate (tls-client-ca-file)"
        );
    }
}

/// Where other replicas ask, if they may.
fn show_relay(relay: Option<&streamweld_relay::Config>) {
    let Some(relay) = relay else { return };
    info!(
        listen = %relay.listen,
        advertise = relay.advertise.as_deref().unwrap_or("where it listens"),
        name = relay.name.as_deref().unwrap_or("the host of each"),
        "relay"
    );
}

/// The effective configuration, one line for each part; never a secret.
fn show(config: &Config, journal: &journal::Settings) {
    let limit = |size: Option<u64>| size.map_or_else(|| "none".to_owned(), show_size);
    let time = |time| humantime::format_duration(time).to_string();
    let policy = |policy: OrphanPolicy| policy.to_string();
    let perhaps = |span: Option<Duration>| span.map_or_else(|| "none".to_owned(), time);
    for backend in &config.backends {
        info!(
            name = backend.name,
            tls = backend.url.is_tls(),
            engine = backend.engine.as_str(),
            family = backend.family.as_str(),
            group = backend.group.as_deref().unwrap_or("none"),
            weight = backend.weight,
            dns = backend.reach == Reach::EveryAddress,
            credential = match backend.credential {
                Credential::PassThrough => "the caller's",
                Credential::Owned(_) => "its own",
            },
            health = match &backend.health {
                HealthCheck::Engine => backend.engine.health_path().unwrap_or("off"),
                // People write keys into queries.
                HealthCheck::Path(path) => path.path(),
                HealthCheck::Off => "off",
            },
            "backend"
        );
    }
    info!(
        every = time(config.fleet.probe_every),
        timeout = time(config.fleet.probe_timeout),
        failures = config.fleet.probe_failures,
        successes = config.fleet.probe_successes,
        "health of backends"
    );
    let migration = &config.migration;
    let groups = config.backends.iter();
    let groups = groups.filter_map(|backend| backend.group.as_deref());
    // Of each that there is, also where the policy is the default.
    let groups: BTreeMap<_, _> = groups
        .map(|group| (group, migration.policy(Some(group)).as_str()))
        .collect();
    info!(
        attempts = migration.attempts,
        migrations = migration.moves,
        wait = time(migration.wait),
        first_token_timeout = perhaps(migration.first_token),
        between_tokens_timeout = perhaps(migration.between_tokens),
        ?groups,
        vouched = ?migration.vouched,
        "migration"
    );
    info!(
        connect_timeout = time(config.upstream.connect_timeout),
        first_byte_timeout = perhaps(config.upstream.first_byte_timeout),
        "connections to backends"
    );
    let (place, level) = match &journal.place {
        Place::Memory => ("memory".to_owned(), "none".to_owned()),
        Place::Redis(url) => (url.to_string(), journal.level.to_string()),
    };
    info!(
        place,
        level,
        required = journal.required,
        per_generation = show_size(config.journal.per_generation as u64),
        total = show_size(config.journal.total),
        retention = time(config.journal.retention),
        presence_lease = time(journal.lease),
        "journal"
    );
    info!(
        orphan_policy = policy(config.generation.orphan_policy),
        max_duration = time(config.generation.max_duration),
        max_event = show_size(config.generation.max_event as u64),
        retry_join = time(config.generation.retry_join),
        durable_get = ?config.generation.durable_get,
        dialects = ?config.generation.dialects.iter().map(ToString::to_string).collect::<Vec<_>>(),
        credential_headers = ?config.generation.credential_headers,
        trusted_subject_header = config.generation.trusted_subject_header.as_deref().unwrap_or("none"),
        "generations"
    );
    info!(
        heartbeat = time(config.edge.heartbeat),
        compress = ?config.edge.compress,
        write_timeout = time(config.edge.write_timeout),
        body_timeout = time(config.edge.body_timeout),
        body_time = time(config.edge.body_time),
        max_connections = config.edge.max_connections,
        session_max_age = perhaps(config.edge.session_max_age),
        max_request_body = limit(config.edge.max_request_body),
        max_kept_body = show_size(config.edge.max_kept_body as u64),
        admin_token = if config.admin_token.is_some() {
            "set"
        } else {
            "none"
        },
        shutdown_grace = time(config.shutdown_grace),
        "edge"
    );
    let urls = &config.edge.resume_urls;
    info!(
        cors_origins = ?config.edge.cors_origins.iter().map(PageOrigin::as_str).collect::<Vec<_>>(),
        url_signing_keys = urls.keys.count(),
        url_lifetime = time(urls.lifetime),
        url_prefix = urls.prefix,
        "pages"
    );
}

/// Where spans go. Neither the path there nor the fields that are sent along: both may be secrets.
fn show_traces(config: &Config) {
    let Some(traces) = &config.traces else { return };
    info!(
        collector = traces.endpoint.host_and_port(),
        tls = traces.endpoint.is_tls(),
        "traces"
    );
    if let Some(asked) = traces::other_protocol() {
        warn!(
            asked,
            "OTEL_EXPORTER_OTLP_PROTOCOL asks for another protocol than http/protobuf, which is spoken all the same"
        );
    }
}

/// A runtime with as many workers as asked for. One worker needs no thread pool.
pub(crate) fn runtime(threads: Option<u16>) -> anyhow::Result<Runtime> {
    let mut builder = match threads {
        Some(1) => Builder::new_current_thread(),
        Some(threads) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads.into());
            builder
        }
        None => Builder::new_multi_thread(),
    };
    builder
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
