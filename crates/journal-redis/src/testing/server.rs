//! One server, alone or as a replica.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::folder::Folder;
use super::process::Process;
use super::{PATIENCE, until};

/// How often an append-only file reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// Each second.
    EverySecond,
    /// Before each answer.
    Always,
}

/// What a server starts with.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    config: Vec<(String, String)>,
    password: Option<String>,
    socket: bool,
    room: Option<u32>,
}

impl Setup {
    /// A server that keeps everything in memory and lets everybody in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With an append-only file, so that it has its data again after a restart.
    #[must_use]
    pub fn append_only(self, fsync: Fsync) -> Self {
        let fsync = match fsync {
            Fsync::EverySecond => "everysec",
            Fsync::Always => "always",
        };
        self.config("appendonly", "yes")
            .config("appendfsync", fsync)
    }

    /// With a password for the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        // A replica has to log in at its primary, which in these tests has the same.
        self.config("requirepass", password)
            .config("masterauth", password)
    }

    pub(super) fn password_text(&self) -> Option<String> {
        self.password.clone()
    }

    /// As a replica.
    #[must_use]
    pub fn replica_of(self, primary: &Server) -> Self {
        self.config("replicaof", &format!("127.0.0.1 {}", primary.port))
    }

    /// With a limit of its memory, such as `2mb`, and a policy such as `noeviction`.
    #[must_use]
    pub fn max_memory(self, limit: &str, policy: &str) -> Self {
        self.config("maxmemory", limit)
            .config("maxmemory-policy", policy)
    }

    /// With a unix socket beside its port.
    #[must_use]
    pub fn unix_socket(mut self) -> Self {
        self.socket = true;
        self
    }

    /// With a disk that has room for files of at most so many KiB each, until [`Server::make_room`]. As on a full disk,
    /// a write is cut short there and the next one fails.
    #[must_use]
    pub fn room(mut self, kib: u32) -> Self {
        self.room = Some(kib);
        self
    }

    /// With a line of `redis.conf`.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn into_parts(self) -> (Vec<(String, String)>, Option<String>) {
        (self.config, self.password)
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Panics
    /// When `redis-server` is missing, or does not start.
    pub async fn start(self) -> Server {
        // Somebody else may take the port between its choice and its use.
        for _ in 0..PORTS {
            if let Some(server) = self.try_start().await {
                return server;
            }
        }
        panic!("no free port");
    }

    /// None when a port was taken.
    pub(super) async fn try_start(&self) -> Option<Server> {
        let mut server = Server::start(self, free_port());
        if server.answers_or_ends().await {
            return Some(server);
        }
        let log = server.log();
        let is_taken = ["Address already in use", "Failed listening on port"];
        assert!(
            is_taken.iter().any(|it| log.contains(it)),
            "redis-server does not start: {log}"
        );
        None
    }
}

/// What the program is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Data,
    Sentinel,
}

/// A server that runs. It is killed with its test.
#[derive(Debug)]
pub struct Server {
    // Before its folder, so that it is gone when that is removed.
    process: Option<Process>,
    mode: Mode,
    folder: Folder,
    port: u16,
    password: Option<String>,
    room: Option<u32>,
}

impl Server {
    /// A server with nothing set up.
    ///
    /// # Panics
    /// As [`Setup::start`].
    pub async fn new() -> Self {
        Setup::new().start().await
    }

    fn start(setup: &Setup, port: u16) -> Self {
        let mut config = vec![("port".to_owned(), port.to_string())];
        config.extend(DEFAULTS.map(|(key, value)| (key.to_owned(), value.to_owned())));
        if setup.socket {
            config.push(("unixsocket".to_owned(), SOCKET.to_owned()));
        }
        config.extend(setup.config.iter().cloned());
        let mut server = Self::prepare(Mode::Data, &config, port, setup.password.clone());
        server.room = setup.room;
        server.spawn();
        server
    }

    pub(super) fn run(
        mode: Mode,
        config: &[(String, String)],
        port: u16,
        password: Option<String>,
    ) -> Self {
        let mut server = Self::prepare(mode, config, port, password);
        server.spawn();
        server
    }

    fn prepare(
        mode: Mode,
        config: &[(String, String)],
        port: u16,
        password: Option<String>,
    ) -> Self {
        let folder = Folder::new();
        // In a file, because the list of processes shows arguments to everybody, and because it can change then.
        let lines: String = config
            .iter()
            .map(|(key, value)| match value.as_str() {
                "" => format!("{key} \"\"\n"),
                value => format!("{key} {value}\n"),
            })
            .collect();
        std::fs::write(folder.file(CONFIG), lines).expect("the folder is ours");
        Self {
            process: None,
            mode,
            folder,
            port,
            password,
            room: None,
        }
    }

    fn spawn(&mut self) {
        let mut arguments = vec![CONFIG.to_owned()];
        if self.mode == Mode::Sentinel {
            arguments.push("--sentinel".to_owned());
        }
        let process = Process::start(program(), &arguments, self.folder.path(), self.room);
        self.process = Some(process);
    }

    /// Its port at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of its process.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its URL, with its password.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.password {
            Some(password) => format!("redis://:{password}@{}/", self.address()),
            None => format!("redis://{}/", self.address()),
        }
    }

    /// Where its unix socket is, if it was set up.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.file(SOCKET)
    }

    /// What it works in: `redis.conf`, its log, and what it keeps.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.file(LOG)).unwrap_or_default()
    }

    /// Runs a command with `redis-cli`, and gives what it prints, without the last line end. An error of the server
    /// is printed too.
    ///
    /// # Panics
    /// When there is no answer.
    pub async fn cli(&self, command: &[&str]) -> String {
        let output = timeout(PATIENCE, self.command(command).output()).await;
        let output = output.unwrap_or_else(|_| panic!("{}: no answer", command.join(" ")));
        let output = output.expect("there is redis-cli");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() || !printed.is_empty(),
            "{}: {}",
            command.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        printed.trim_end_matches('\n').to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("redis-cli");
        command
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        command
    }

    /// Begins a command with `redis-cli` whose answer is not waited for; whoever drops it takes it back as far as that
    /// goes.
    ///
    /// # Panics
    /// When there is no `redis-cli`.
    pub fn begin(&self, command: &[&str]) -> tokio::process::Child {
        let mut command = self.command(command);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("there is redis-cli")
    }

    /// Gives a server with [`Setup::room`] all the room there is.
    ///
    /// # Panics
    /// When the system does not let it.
    pub fn make_room(&mut self) {
        self.room = None;
        if let Some(process) = &mut self.process {
            process.make_room();
        }
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// When it does not, or does not run.
    pub async fn wait_ended(&mut self) {
        let process = self.process.as_mut().expect("it runs");
        until("the server ends", async || process.ended().is_some()).await;
        self.process = None;
    }

    /// Whether it was started, and not killed since.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same port, with the same configuration and what it kept, and waits until it answers.
    /// It is killed first if it runs.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restart(&mut self) {
        self.kill();
        // Somebody else may hold the port for a moment: a connection goes out from any port that is free.
        for _ in 0..PORTS {
            let _ = std::fs::remove_file(self.folder.file(LOG));
            self.spawn();
            if self.answers_or_ends().await {
                return;
            }
        }
        panic!("redis-server does not start again: {}", self.log());
    }

    /// Asks it to save what it is configured to save, and to end; waits until it has.
    ///
    /// # Panics
    /// When it does not end, or does not run.
    pub async fn shut_down(&mut self) {
        self.process.as_ref().expect("it runs").signal("TERM");
        self.wait_ended().await;
    }

    /// Stops it in its tracks: its connections stay, and nothing answers.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pause(&self) {
        self.process.as_ref().expect("it runs").signal("STOP");
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        self.process.as_ref().expect("it runs").signal("CONT");
    }

    /// Waits until a replica has the data of its primary, and goes along.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn wait_replicating(&self) {
        until("the replica goes along", async || {
            let info = self.cli(&["INFO", "replication"]).await;
            info.contains("master_link_status:up")
        })
        .await;
    }

    /// Whether it says of itself that it is a replica. When sentinels tell it so, they cut off whoever asks it.
    pub async fn is_replica(&self) -> bool {
        let output = self.command(&["ROLE"]).output().await;
        output.is_ok_and(|output| output.stdout.starts_with(b"slave"))
    }

    /// Waits until it answers and has loaded its data, and says true; or until it has ended, and says false.
    pub(super) async fn answers_or_ends(&mut self) -> bool {
        let answer = timeout(PATIENCE, async {
            loop {
                if let Some(process) = &mut self.process {
                    if process.ended().is_some() {
                        return false;
                    }
                }
                if self.is_up().await {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let Ok(answer) = answer.await else {
            panic!("redis-server does not answer: {}", self.log());
        };
        answer
    }

    async fn is_up(&self) -> bool {
        let output = self.command(&["PING"]).output().await;
        let output =
            output.expect("redis-cli is installed, with redis-server (Debian: redis-server)");
        // On a full disk a server is up as well.
        output.stdout.starts_with(b"PONG") || output.stdout.starts_with(b"MISCONF")
    }
}

/// Another server than that of the system, such as a Valkey, when a variable names one.
pub(super) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        std::env::var("STREAMWELD_TEST_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
    })
}

/// A port that was free just now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
    listener.local_addr().expect("it is bound").port()
}

const CONFIG: &str = "redis.conf";
const LOG: &str = "log";
const SOCKET: &str = "socket";
pub(super) const PORTS: usize = 5;

pub(super) const DEFAULTS: [(&str, &str); 6] = [
    ("bind", "127.0.0.1"),
    ("daemonize", "no"),
    ("logfile", LOG),
    ("save", ""),
    // A replica gets its data without waiting for others to come.
    ("repl-diskless-sync-delay", "0"),
    // `DEBUG SLEEP` and the like; off by default since Redis 7.
    ("enable-debug-command", "local"),
];
