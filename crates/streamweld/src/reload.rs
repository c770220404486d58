//! Settings that change while `serve` runs: the settings file, and files that settings name (protocol.md 13.2).
//!
//! SIGHUP has them read again, and so has a change of one of the files. The whole of it goes through the parser of the command
//! line: what that refuses changes nothing.

mod files;
mod live;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context;
use streamweld_server::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use self::files::Files;
pub(crate) use self::live::is_live;
use crate::args::{Args, Command, Setting};
use crate::logging::Level;
use crate::serve;

/// How often the files are looked at. A mounted secret takes longer than this to arrive.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Reads the settings again, for as long as the server runs.
pub(crate) struct Reload {
    line: Vec<OsString>,
    settings: Vec<Setting>,
    files: Files,
    level: Level,
    hangup: Signal,
}

impl Reload {
    /// For a server that was started with this command line, which said `settings`.
    ///
    /// # Errors
    /// Signals cannot be listened for. From here on SIGHUP ends nothing.
    pub(crate) fn new(
        line: Vec<OsString>,
        settings: Vec<Setting>,
        level: Level,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            files: Files::of(&settings),
            line,
            settings,
            level,
            hangup: signal(SignalKind::hangup()).context("cannot listen for signals")?,
        })
    }

    /// Does so for ever.
    pub(crate) async fn run(mut self, control: Control) -> std::convert::Infallible {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let was_asked = tokio::select! {
                _ = self.hangup.recv() => true,
                _ = look.tick() => false,
            };
            // Looked at before they are read, so that what changes meanwhile is seen the next time.
            if self.files.have_changed() || was_asked {
                self.read(&control).await;
            }
        }
    }

    async fn read(&mut self, control: &Control) {
        let line = self.line.clone();
        // Files may lie on a file system that does not answer.
        let read = tokio::task::spawn_blocking(move || Args::read(line)).await;
        let Ok(read) = read else { return };
        let args = match read {
            Ok(args) => args,
            Err(refused) => return refuse(control, &in_short(&refused.to_string())),
        };
        let Args {
            command: Command::Serve(serve),
            settings,
        } = args
        else {
            return;
        };
        let changed = serve::config(&serve).and_then(|config| Ok(control.change(config)?));
        if let Err(refused) = changed {
            return refuse(control, &format!("{refused:#}"));
        }
        self.level.set(serve.log.log_level);
        let (live, not): (Vec<_>, Vec<_>) = changes(&self.settings, &settings)
            .into_iter()
            .partition(|name| is_live(name));
        info!(changed = ?live, "the settings were read again");
        if !not.is_empty() {
            warn!(settings = ?not, "these have changed, and hold from the next start on");
        }
        self.files.follow(&settings);
        self.settings = settings;
    }
}

fn refuse(control: &Control, why: &str) {
    control.refused();
    error!(
        why,
        "the settings were read again and are refused; those from before hold"
    );
}

/// The names of those whose values differ.
fn changes<'a>(before: &[Setting], now: &'a [Setting]) -> Vec<&'a str> {
    let both = before.iter().zip(now);
    both.filter(|(before, now)| before.values != now.values)
        .map(|(_, now)| now.name.as_str())
        .collect()
}

/// What the parser says, on one line and without its advice on usage.
fn in_short(said: &str) -> String {
    let fault = said.split("\n\n").next().unwrap_or_default();
    let fault = fault.strip_prefix("error: ").unwrap_or(fault);
    let lines: Vec<&str> = fault.lines().map(str::trim).collect();
    lines.join("; ")
}
