//! Real engines, each a process group of its own, of which two are always ready.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use streamweld_upstream::fleet;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

/// One engine. It is killed with this.
pub(crate) struct Engine {
    pub(crate) addr: SocketAddr,
    pub(crate) kind: fleet::Engine,
    child: Child,
}

/// How long a model may take to load, on a machine that does much else.
const LOADING: Duration = Duration::from_secs(600);

impl Engine {
    /// Runs `command`, which loads a model and then writes its address in one line.
    fn start(command: &[String], kind: fleet::Engine) -> Self {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            // It ends when this pipe does, however this process goes.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("the engine can be run");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        let read = BufReader::new(output).read_line(&mut line);
        let addr = line.trim().rsplit('/').next().unwrap_or_default().parse();
        let (Ok(_), Ok(addr)) = (read, addr) else {
            panic!("the engine did not say where it is: {line:?}");
        };
        Self { addr, kind, child }
    }

    /// Sends a signal, such as `KILL`, to all that belongs to it.
    pub(crate) fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        let sent = Command::new("kill")
            .args(["-s", name, "--", &group])
            .status();
        assert!(sent.expect("kill can be run").success());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Fails where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As many engines as it takes to kill one and have two at once.
pub(crate) struct Pool {
    command: Vec<String>,
    kind: fleet::Engine,
    ready: VecDeque<Engine>,
    starting: JoinSet<Engine>,
}

impl Pool {
    pub(crate) fn new(command: Vec<String>, kind: fleet::Engine) -> Self {
        let mut pool = Self {
            command,
            kind,
            ready: VecDeque::new(),
            starting: JoinSet::new(),
        };
        for _ in 0..3 {
            pool.replace();
        }
        pool
    }

    /// Two that are ready.
    pub(crate) async fn two(&mut self) -> [Engine; 2] {
        while self.ready.len() < 2 {
            let started = timeout(LOADING, self.starting.join_next()).await;
            let engine = started.expect("it loads").expect("three are there");
            self.ready.push_back(engine.expect("it starts"));
        }
        let mut next = || self.ready.pop_front().expect("two are ready");
        [next(), next()]
    }

    /// Takes one back.
    pub(crate) fn put(&mut self, engine: Engine) {
        self.ready.push_back(engine);
    }

    /// Starts another one in place of one that is gone.
    pub(crate) fn replace(&mut self) {
        let (command, kind) = (self.command.clone(), self.kind);
        self.starting.spawn(async move {
            spawn_blocking(move || Engine::start(&command, kind))
                .await
                .expect("runs")
        });
    }
}
