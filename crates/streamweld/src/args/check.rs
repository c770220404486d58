//! What a value alone does not show: how settings go together.

mod backends;
mod relay;
mod tls;

use std::net::{IpAddr, SocketAddr};

use streamweld_journal_redis::RedisUrl;
use streamweld_server::config::DialectRoute;

use super::{Admin, Command, ConfigCommand, ConfigWhat, Origin, Serve, StreamsList};
use crate::journal::Place;
use crate::traces;
use crate::values::show_size;

/// Every fault, each naming the settings that it is about and what to do.
pub(super) fn faults(command: &Command, origin: &Origin<'_>) -> Vec<String> {
    match command {
        Command::Serve(args)
        | Command::CheckConfig(args)
        | Command::Config(ConfigCommand {
            what: ConfigWhat::Show(args),
        }) => serve(args, origin),
        Command::Mock(_) => Vec::new(),
        Command::Demo(args) => args
            .backend
            .iter()
            .filter_map(|url| url.checked().err())
            .map(|error| backends::bad_url(&origin.name("backend"), &error))
            .collect(),
        Command::Doctor(args) => [("URL", Some(&args.backend)), ("URL2", args.other.as_ref())]
            .into_iter()
            .filter_map(|(name, url)| Some(backends::bad_url(name, &url?.checked().err()?)))
            .collect(),
        Command::Streams(args) => {
            let mut faults = admin(&args.admin, origin);
            let filtered = args.list != StreamsList::default();
            if filtered && args.what.is_some() {
                faults.push(
                    "filters stand behind `list`; write `streamweld streams list --status done`"
                        .to_owned(),
                );
            }
            faults
        }
        Command::Migrate(args) => admin(&args.admin, origin),
        Command::Drain(args) => {
            let mut faults = admin(&args.admin, origin);
            if args.wait.is_some_and(|wait| wait <= args.after) {
                faults.push(
                    "--after takes up all of --wait; wait for longer, or begin earlier".to_owned(),
                );
            }
            faults
        }
        Command::Backends(args) => admin(&args.admin, origin),
    }
}

/// The URL of the admin listener is not repeated either.
fn admin(args: &Admin, origin: &Origin<'_>) -> Vec<String> {
    let fault = args.admin.checked().err();
    let fault = fault.map(|error| backends::bad_url(&origin.name("admin"), &error));
    fault.into_iter().collect()
}

fn serve(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(backends::faults(args, origin));
    if clash(args.listen, args.admin_listen) {
        faults.push(format!(
            "{} ({}) and {} ({}) are the same place; give each a port of its own",
            origin.name("listen"),
            args.listen,
            origin.name("admin_listen"),
            args.admin_listen,
        ));
    }
    faults.extend(unreachable_dialects(args, origin));
    faults.extend(journal(args, origin));
    faults.extend(in_memory(args, origin));
    faults.extend(relay::faults(args, origin));
    faults.extend(tls::faults(args, origin));
    faults.extend(resume_urls(args, origin));
    faults.extend(spans(args, origin));
    if args.keep_credentials && args.request_key_file.is_none() {
        faults.push(format!(
            "{} would write callers' credentials into the journal as they are; seal them with keys from {}",
            origin.name("keep_credentials"),
            origin.name("request_key_file"),
        ));
    }
    let (total, one) = (args.journal_total, args.per_generation());
    if total < one {
        faults.push(format!(
            "{} ({}) is below {} ({}), so the journal could not hold one whole answer; raise the first or lower \
             the second",
            origin.name("journal_total"),
            show_size(total.as_u64()),
            origin.name("journal_per_generation"),
            show_size(one.as_u64()),
        ));
    }
    faults
}

/// Neither the URL nor what a variable says is repeated.
fn spans(args: &Serve, origin: &Origin<'_>) -> Option<String> {
    let told = args.otlp_endpoint.as_ref();
    match told.and_then(|endpoint| endpoint.checked().err()) {
        Some(fault) => Some(backends::bad_url(&origin.name("otlp_endpoint"), &fault)),
        None => traces::config(args).err().map(|bad| bad.to_string()),
    }
}

/// The first route that matches a path counts, so a later one may be left with none.
fn unreachable_dialects(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let fault = |(at, later): (usize, &DialectRoute)| {
        let earlier = args.dialect[..at]
            .iter()
            .find(|earlier| earlier.covers(later))?;
        Some(format!(
            "{} names {} behind {}, which matches the same paths and counts; write it before that, or leave it out",
            origin.name("dialect"),
            later.path,
            earlier.path,
        ))
    };
    args.dialect.iter().enumerate().filter_map(fault).collect()
}

/// The URL itself is never repeated: people write passwords there.
fn journal(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let name = origin.name("journal");
    if args.journal.is_some() && args.journal_file.is_some() {
        return vec![format!(
            "{name} and {} both say where the journal is; leave one of them out",
            origin.name("journal_file"),
        )];
    }
    match args.place() {
        Err(error) => vec![format!(
            "{name} is refused: {error}; write it as memory, redis://HOST:PORT/N, rediss://HOST:PORT/N, \
             redis+unix:///PATH, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE or redis+cluster://HOST:PORT,HOST:PORT",
        )],
        Ok(Place::Memory) => [
            ("journal_ca_file", args.journal_ca_file.is_some()),
            ("journal_password_file", args.journal_password_file.is_some()),
        ]
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(setting, _)| {
            format!(
                "{} has no use while the journal is in memory; name a Redis by {name}, or leave the file out",
                origin.name(setting),
            )
        })
        .collect(),
        Ok(Place::Redis(url)) => around_the_journal(args, &url, origin),
    }
}

fn around_the_journal(args: &Serve, url: &RedisUrl, origin: &Origin<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let by_file = args.journal_password_file.is_some();
    // A user alone is no secret when the password is in a file.
    let is_confided = url.is_secret() || (url.has_credential() && !by_file);
    if args.journal_file.is_none() && is_confided && origin.is_flag("journal") {
        faults.push(format!(
            "{} has a user or a password, which everybody on this machine can read there; put the URL into a file \
             and name it by --journal-file",
            origin.name("journal"),
        ));
    }
    if by_file && url.has_password() {
        faults.push(format!(
            "{} is not the only password: the URL of the journal has one too; leave one of them out",
            origin.name("journal_password_file"),
        ));
    }
    if args.journal_ca_file.is_some() && !url.is_tls() {
        faults.push(format!(
            "{} has no use while the journal is spoken to without TLS; write rediss there, or leave the certificates \
             out",
            origin.name("journal_ca_file"),
        ));
    }
    faults
}

/// What is asked of a shared journal, though there is none.
fn in_memory(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    if !matches!(args.place(), Ok(Place::Memory)) {
        return Vec::new();
    }
    let asked = [
        ("journal_durability", args.journal_durability.is_some()),
        ("journal_required", args.journal_required),
    ];
    let fault = |(setting, _): (&str, bool)| {
        format!(
            "{} has no use while the journal is in memory, which ends with this process; name a Redis by --journal or \
             --journal-file, or leave it out",
            origin.name(setting),
        )
    };
    asked
        .into_iter()
        .filter(|(_, is_asked)| *is_asked)
        .map(fault)
        .collect()
}

/// URLs that nobody signs, or that outlive what they are for.
fn resume_urls(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    if args.url_signing_key_file.is_none() {
        return [
            ("url_lifetime", args.url_lifetime.is_some()),
            ("url_prefix", args.url_prefix.is_some()),
        ]
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(setting, _)| {
            format!(
                "{} has no use without keys to sign URLs with; name them by {}, or leave it out",
                origin.name(setting),
                origin.name("url_signing_key_file"),
            )
        })
        .collect();
    }
    let longest = args.longest();
    let show = |time| humantime::format_duration(time);
    args.url_lifetime
        .filter(|lifetime| *lifetime > longest)
        .iter()
        .map(|lifetime| {
            format!(
                "{} ({}) is above {} and {} together ({}), after which there is nothing left to read; lower it",
                origin.name("url_lifetime"),
                show(*lifetime),
                origin.name("max_duration"),
                origin.name("retention"),
                show(longest),
            )
        })
        .collect()
}

/// Whether two listeners cannot both be had.
fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    // `[::]` takes the port of IPv4 too, as systems are set up.
    let covers = |all: IpAddr, one: IpAddr| {
        all.is_unspecified() && (all.is_ipv6() || all.is_ipv4() == one.is_ipv4())
    };
    one.port() != 0 && one.port() == other.port() && (a == b || covers(a, b) || covers(b, a))
}
