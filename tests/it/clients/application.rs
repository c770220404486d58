//! An application on a client library, run as a process of its own, that is given jobs and tells what it saw of each.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use super::program::{Language, command, complaints, name_of};

/// How long anything may take that an application does, its start included. A large library, for which an interpreter
/// takes seconds by itself, takes minutes on a machine that builds and tests as well.
const DEADLINE: Duration = Duration::from_secs(300);

/// A running application. It is killed when it is dropped.
pub(super) struct Application {
    /// Its client as `docs/clients.md` names it.
    pub(super) client: String,
    process: Child,
    input: Mutex<ChildStdin>,
    runs: AtomicUsize,
    told: watch::Receiver<Told>,
    complaints: Arc<Mutex<String>>,
}

/// All that it told.
#[derive(Debug, Default)]
struct Told {
    client: Option<Value>,
    runs: HashMap<usize, Saw>,
    /// A line that is none of ours, or that was torn.
    nonsense: Option<String>,
    /// It has ended.
    over: bool,
}

/// How a request looked to the application.
#[derive(Clone, Debug, Default)]
pub(super) struct Saw {
    /// The stream id in the head, where the application can see heads.
    pub(super) id: Option<String>,
    /// What its client gave it, whole and in order.
    pub(super) objects: Vec<Value>,
    /// The text in that.
    pub(super) text: String,
    pub(super) end: End,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// It is still going on.
    #[default]
    None,
    /// A proper one, with this finish reason.
    Whole(Option<String>),
    Raised {
        class: String,
        message: String,
    },
}

/// A request under way.
pub(super) struct Run<'a> {
    application: &'a Application,
    number: usize,
}

impl Application {
    /// Starts the program of this name.
    pub(super) async fn start(name: &str) -> Self {
        let language = Language::of(name);
        let mut process = command(name)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name} cannot be run ({error}): `make test` installs what it needs")
            });
        let complaints = complaints(&mut process);
        let input = Mutex::new(process.stdin.take().expect("piped"));
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (tell, told) = watch::channel(Told::default());
        std::thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap_or_default();
                tell.send_modify(|told: &mut Told| match serde_json::from_str(&line) {
                    Ok(value) => told.line(value),
                    Err(_) => told.nonsense = Some(line),
                });
            }
            tell.send_modify(|told| told.over = true);
        });
        let mut application = Self {
            client: name.to_owned(),
            process,
            input,
            runs: AtomicUsize::new(0),
            told,
            complaints,
        };
        let first = application.wait(|told| told.client.clone()).await;
        application.client = name_of(&first, language);
        application
    }

    /// Asks in this way, for so many choices, below this URL.
    pub(super) fn ask(&self, way: &str, base: &str, choices: usize) -> Run<'_> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let job = json!({ "run": number, "way": way, "base": base, "n": choices });
        let mut input = self.input.lock().expect("nobody panics with it");
        writeln!(input, "{job}")
            .and_then(|()| input.flush())
            .unwrap_or_else(|error| panic!("{self:?} takes no job: {error}"));
        Run {
            application: self,
            number,
        }
    }

    async fn wait<T>(&self, find: impl Fn(&Told) -> Option<T>) -> T {
        let mut told = self.told.clone();
        let mut found = None;
        let waited = timeout(
            DEADLINE,
            told.wait_for(|told| {
                found = find(told);
                found.is_some() || told.over || told.nonsense.is_some()
            }),
        )
        .await
        .map(|told| told.ok().and_then(|told| told.nonsense.clone()));
        match (found, waited) {
            (_, Ok(Some(nonsense))) => panic!("{self:?} said {nonsense:?}"),
            (Some(found), _) => found,
            (None, Ok(None)) => panic!("{self:?} has ended too early"),
            (None, Err(_)) => panic!("{self:?} has not come so far in {DEADLINE:?}"),
        }
    }
}

impl Run<'_> {
    /// What it has seen once that is enough, or all that there was.
    pub(super) async fn until(&self, enough: impl Fn(&Saw) -> bool) -> Saw {
        self.application
            .wait(|told| {
                let saw = told.runs.get(&self.number)?;
                (saw.end != End::None || enough(saw)).then(|| saw.clone())
            })
            .await
    }

    /// Everything that it saw.
    pub(super) async fn ended(&self) -> Saw {
        self.until(|_| false).await
    }
}

impl Told {
    fn line(&mut self, mut line: Value) {
        let Some(run) = line["run"].as_u64() else {
            self.client.get_or_insert(line);
            return;
        };
        let saw = self.runs.entry(run as usize).or_default();
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        if line.get("head").is_some() {
            saw.id = text("head");
        } else if let Some(part) = text("text") {
            saw.text.push_str(&part);
        } else if line.get("whole").is_some() {
            saw.end = End::Whole(text("whole"));
        } else if let Some(class) = text("raised") {
            let message = text("message").unwrap_or_default();
            saw.end = End::Raised { class, message };
        } else if line.get("object").is_some() {
            saw.objects.push(line["object"].take());
        }
    }
}

impl std::fmt::Debug for Application {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let complaints = self.complaints.lock().expect("nobody panics with it");
        write!(f, "{}, which complained {complaints:?},", self.client)
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
