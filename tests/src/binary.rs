//! The real binary, run as a process of its own.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use streamweld_journal_redis::testing::wait_stopped;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::client::{Client, patience};

/// A `streamweld` that runs. It is killed with its test.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: watch::Receiver<String>,
    reading: Arc<Reading>,
}

/// Whether its output is read. What it is told takes effect with the next line.
#[derive(Debug, Default)]
struct Reading {
    how: Mutex<Read>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Read {
    #[default]
    On,
    /// By nobody, who may come back.
    Held,
    /// Never again: its pipe is closed.
    Closed,
}

impl Process {
    /// `streamweld serve` with these arguments, on ports that the kernel gives.
    #[must_use]
    pub fn serve(arguments: &[&str]) -> Self {
        Self::run(&[&LISTEN[..], arguments].concat())
    }

    /// `streamweld` with these arguments.
    ///
    /// # Panics
    /// When it cannot be built or started.
    #[must_use]
    pub fn run(arguments: &[&str]) -> Self {
        Self::run_with(arguments, &[])
    }

    /// `streamweld` with these arguments, and with these variables and no others.
    ///
    /// # Panics
    /// As [`Process::run`].
    #[must_use]
    pub fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .env_clear()
            .envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// `streamweld serve` as [`Process::serve`], with these variables and no others.
    ///
    /// # Panics
    /// As [`Process::run`].
    #[must_use]
    pub fn serve_with(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::run_with(&[&LISTEN[..], arguments].concat(), variables)
    }

    /// `streamweld serve` as [`Process::serve`], with no more than so many descriptors.
    ///
    /// # Panics
    /// As [`Process::run`].
    #[must_use]
    pub fn serve_with_descriptors(most: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        // The shell becomes the process, so that its number is the number of that.
        command
            .args(["-c", &format!(r#"ulimit -n {most}; exec "$@""#), "sh"])
            .arg(binary())
            .args(LISTEN)
            .args(arguments)
            .env_clear();
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (append, output) = watch::channel(String::new());
        let reading = Arc::new(Reading::default());
        let stdout = child.stdout.take().expect("piped");
        follow(stdout, append.clone(), Arc::clone(&reading));
        let stderr = child.stderr.take().expect("piped");
        follow(stderr, append, Arc::clone(&reading));
        Self {
            child,
            output,
            reading,
        }
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has written.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.borrow().clone()
    }

    /// Waits until it has written this.
    ///
    /// # Panics
    /// When it never does.
    pub async fn wait_output(&mut self, text: &str) -> String {
        let seen = self.output.wait_for(|output| output.contains(text));
        let seen = patience(seen).await.map(|output| output.clone());
        seen.unwrap_or_else(|_| panic!("{text:?} did not come: {}", self.output()))
    }

    /// A client of its data listener.
    pub async fn client(&mut self) -> Client {
        Client::new(self.listener("data").await)
    }

    /// A client of its admin listener.
    pub async fn admin(&mut self) -> Client {
        Client::new(self.listener("admin").await)
    }

    async fn listener(&mut self, which: &str) -> SocketAddr {
        let line = format!("{which} listener on ");
        // The line is whole once its end is there.
        let output = self.wait_output("admin listener on http").await;
        let output = if output.ends_with('\n') {
            output
        } else {
            patience(self.output.wait_for(|output| output.ends_with('\n')))
                .await
                .expect("it runs")
                .clone()
        };
        let addr = output
            .lines()
            .find_map(|found| Some(found.split_once(&line)?.1.split_once("://")?.1.to_owned()));
        let addr = addr.expect("a listener");
        let end = addr.find(|c: char| !matches!(c, '0'..='9' | '.' | ':'));
        addr[..end.unwrap_or(addr.len())]
            .parse()
            .expect("an address")
    }

    /// Sends it a signal, such as `TERM`.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("a shell").success());
        if name == "STOP" {
            wait_stopped(self.child.id());
        }
    }

    /// Reads what it writes no further, so that its pipes fill.
    pub fn hold_output(&self) {
        self.reading.set(Read::Held);
    }

    /// Reads on.
    pub fn read_output(&self) {
        self.reading.set(Read::On);
    }

    /// Closes its pipes, with its next line.
    pub fn close_output(&self) {
        self.reading.set(Read::Closed);
    }

    /// Waits until it has ended, and gives how and everything that it wrote.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait().expect("it is ours") {
                    return status;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        let status = patience(ended).await;
        self.read_output();
        // Both ends of its output are closed then, and so are the threads that follow them.
        while patience(self.output.changed()).await.is_ok() {}
        (status, self.output())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reading {
    fn set(&self, how: Read) {
        let mut set = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        // What is closed stays so.
        if *set != Read::Closed {
            *set = how;
        }
        self.changed.notify_all();
    }

    /// Waits while nobody reads. Says whether it goes on.
    fn goes_on(&self) -> bool {
        let how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        let how = self.changed.wait_while(how, |how| *how == Read::Held);
        *how.unwrap_or_else(PoisonError::into_inner) == Read::On
    }
}

fn follow(
    pipe: impl io::Read + Send + 'static,
    append: watch::Sender<String>,
    reading: Arc<Reading>,
) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while reading.goes_on() {
            let Ok(1..) = pipe.read_line(&mut line) else {
                return;
            };
            append.send_modify(|output| output.push_str(&line));
            line.clear();
        }
    });
}

const LISTEN: [&str; 3] = [
    "serve",
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
];

/// The binary that belongs to this test: built in the same target folder and profile, once.
fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // …/target/<profile>/deps/<test>
        let test = std::env::current_exe().expect("the test has a path");
        let folder = test.ancestors().nth(2).expect("it lies in deps");
        let target = folder.parent().expect("it lies in target");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args([
                "build",
                "--quiet",
                "--package=streamweld",
                "--profile",
                profile,
            ])
            .arg("--target-dir")
            .arg(target)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .status();
        let binary = folder.join("streamweld");
        let built = built.is_ok_and(|status| status.success());
        assert!(built && binary.is_file(), "the binary cannot be built");
        binary
    })
}
