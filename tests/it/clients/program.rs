//! A client program under test, run as a process of its own.
//!
//! It tells what it sees, one JSON object on each line of its standard output. It is killed when it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// How long a program may run in all. Starting an interpreter with a large library takes long on a machine that builds
/// and tests as well; and a client that reconnects for ever has something to say for ever.
const DEADLINE: Duration = Duration::from_secs(240);

/// What a program is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
}

/// A running program.
pub(super) struct Program {
    /// Its client as `docs/clients.md` names it.
    pub(super) client: String,
    process: Child,
    started: Instant,
    lines: mpsc::Receiver<Value>,
    /// Everything that it said.
    told: Vec<Value>,
    complaints: Arc<Mutex<String>>,
}

impl Language {
    /// That of the program of this name.
    pub(super) fn of(name: &str) -> Self {
        match name.rsplit_once('.') {
            Some((_, "py")) => Self::Python,
            _ => Self::JavaScript,
        }
    }

    fn folder(self) -> PathBuf {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
        clients.join(match self {
            Self::Python => "python",
            Self::JavaScript => "node",
        })
    }

    fn interpreter(self) -> PathBuf {
        let (interpreter, sign) = match self {
            Self::Python => {
                let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients/venv");
                let python = venv.join("bin/python");
                (python.clone(), python)
            }
            Self::JavaScript => ("node".into(), self.folder().join("node_modules")),
        };
        assert!(
            sign.exists(),
            "the {self:?} clients are not installed: `make test` installs them (scripts/setup-test.sh)"
        );
        interpreter
    }
}

impl Program {
    /// Starts `name` with `args`, its requests going to `to`.
    pub(super) async fn start(name: &str, to: SocketAddr, args: &[&str]) -> Self {
        Self::start_with(name, to, args, &[]).await
    }

    /// The same with further variables in its environment.
    pub(super) async fn start_with(
        name: &str,
        to: SocketAddr,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let language = Language::of(name);
        let mut process = command(name)
            .args(args)
            .env("BASE_URL", format!("http://{to}"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name} cannot be run ({error}): `make test` installs what it needs")
            });
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let complaints = complaints(&mut process);
        let (tx, lines) = mpsc::channel(1024);
        std::thread::spawn(move || {
            for line in output.lines() {
                let line = line.expect("UTF-8");
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if tx.blocking_send(value).is_err() {
                    return;
                }
            }
        });
        let mut program = Self {
            client: name.to_owned(),
            process,
            started: Instant::now(),
            lines,
            told: Vec::new(),
            complaints,
        };
        let first = program.line().await;
        program.client = name_of(&first, language);
        program
    }

    /// The next line.
    pub(super) async fn line(&mut self) -> Value {
        match self.next().await {
            Some(line) => line,
            None => panic!("{self:?} ended too early"),
        }
    }

    /// Reads up to a line with this member.
    pub(super) async fn until(&mut self, member: &str) -> Value {
        loop {
            let line = self.line().await;
            if line.get(member).is_some() {
                return line;
            }
        }
    }

    /// Waits until the program has ended by itself, and gives all that it said.
    pub(super) async fn ended(mut self) -> Vec<Value> {
        while self.next().await.is_some() {}
        let status = self.process.wait().expect("it was started");
        assert!(status.success(), "{self:?} ended with {status}");
        std::mem::take(&mut self.told)
    }

    async fn next(&mut self) -> Option<Value> {
        match timeout_at(self.started + DEADLINE, self.lines.recv()).await {
            Ok(line) => {
                self.told.extend(line.clone());
                line
            }
            Err(_) => panic!("{self:?} has not come to its end in {DEADLINE:?}"),
        }
    }
}

/// How a program is run.
pub(crate) fn command(name: &str) -> Command {
    let language = Language::of(name);
    let mut command = Command::new(language.interpreter());
    command
        .arg(language.folder().join(name))
        .env("NO_PROXY", "127.0.0.1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a program writes to its standard error, once it has closed that.
pub(super) fn complaints(process: &mut Child) -> Arc<Mutex<String>> {
    let mut errors = process.stderr.take().expect("piped");
    let complaints: Arc<Mutex<String>> = Arc::default();
    let complained = Arc::clone(&complaints);
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read up to a failure is shown all the same.
        let _ = errors.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        *complained.lock().expect("nobody panics with it") = text;
    });
    complaints
}

/// The client that the first line of a program names, as `docs/clients.md` does.
pub(super) fn name_of(first: &Value, language: Language) -> String {
    format!(
        "{} {} ({language:?})",
        first["client"].as_str().expect("its client comes first"),
        first["version"].as_str().expect("a version")
    )
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, which said", self.client)?;
        for line in &self.told {
            write!(f, "\n  {line}")?;
        }
        let complaints = self.complaints.lock().expect("nobody panics with it");
        write!(f, "\n{complaints}\nand")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
