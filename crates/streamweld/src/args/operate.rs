//! The commands that ask a running Streamweld, by its admin listener.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use streamweld_journal::StreamId;
use streamweld_server::config::Secret;

use crate::values::{
    Url, backend_member, certificates, drain_time, positive_duration, secret, stream_id,
};

/// Where it is, and how its answers are shown.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Admin {
    /// Its admin listener
    #[arg(
        long,
        global = true,
        env = "STREAMWELD_ADMIN",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:9090"
    )]
    pub(crate) admin: Url,
    /// File with its admin token
    #[arg(long, global = true, env = "STREAMWELD_ADMIN_TOKEN_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(secret))]
    pub(crate) admin_token_file: Option<Secret>,
    /// PEM file with certificates to trust for it, besides the system's
    #[arg(long, global = true, env = "STREAMWELD_ADMIN_CA_FILE", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(certificates))]
    pub(crate) admin_ca_file: Option<PathBuf>,
    /// PEM file with a certificate to show it
    #[arg(
        long,
        global = true,
        env = "STREAMWELD_ADMIN_CERT_FILE",
        value_name = "FILE",
        requires = "admin_key_file"
    )]
    pub(crate) admin_cert_file: Option<PathBuf>,
    /// PEM file with the key to that
    #[arg(
        long,
        global = true,
        env = "STREAMWELD_ADMIN_KEY_FILE",
        value_name = "FILE",
        requires = "admin_cert_file"
    )]
    pub(crate) admin_key_file: Option<PathBuf>,
    /// For people, or what it has answered
    #[arg(long, global = true, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

/// List the streams of a running Streamweld, show or stop one.
#[derive(Debug, ClapArgs)]
pub(crate) struct Streams {
    #[command(flatten)]
    pub(crate) admin: Admin,
    #[command(flatten)]
    pub(crate) list: StreamsList,
    #[command(subcommand)]
    pub(crate) what: Option<StreamsWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StreamsWhat {
    /// Those that run and those that are retained, newest first; the default
    List(StreamsList),
    /// One of them
    Show {
        /// Its id
        #[arg(value_name = "ID", value_parser = stream_id)]
        id: StreamId,
    },
    /// End one
    Stop {
        /// Its id
        #[arg(value_name = "ID", value_parser = stream_id)]
        id: StreamId,
    },
}

/// Which streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct StreamsList {
    /// Those that are streaming, done, error or stopped
    #[arg(long, value_name = "STATUS", value_parser = ["streaming", "done", "error", "stopped"])]
    pub(crate) status: Option<String>,
    /// Those of this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Those that are, or were last, at this backend
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Those that began at least so long ago
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub(crate) older_than: Option<Duration>,
    /// At most so many [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: Option<u16>,
}

/// Move a stream of a running Streamweld to another backend.
#[derive(Debug, ClapArgs)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) admin: Admin,
    /// Its id
    #[arg(value_name = "ID", value_parser = stream_id)]
    pub(crate) id: StreamId,
    /// Only say whether it would move, and what keeps it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Have a running Streamweld leave: nothing new begins there, and what it runs is handed over to other replicas.
#[derive(Debug, ClapArgs)]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) admin: Admin,
    /// Wait until nothing runs there any more, and for so long at most [default: 30s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "30s", value_parser = drain_time)]
    pub(crate) wait: Option<Duration>,
    /// Begin so much later, within the time of --wait: until whoever leads clients here has heard that it leaves
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = drain_time)]
    pub(crate) after: Duration,
}

/// List the backends of a running Streamweld, drain or undrain one.
#[derive(Debug, ClapArgs)]
pub(crate) struct Backends {
    #[command(flatten)]
    pub(crate) admin: Admin,
    #[command(subcommand)]
    pub(crate) what: Option<BackendsWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackendsWhat {
    /// All of them; the default
    List,
    /// Give it nothing new, and move what it has to others
    Drain {
        /// Which one
        #[arg(value_name = "NAME", value_parser = backend_member)]
        name: String,
        /// How long to wait until nothing is left there
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = drain_time)]
        timeout: Duration,
    },
    /// Take a drain back
    Undrain {
        /// Which one
        #[arg(value_name = "NAME", value_parser = backend_member)]
        name: String,
    },
}
