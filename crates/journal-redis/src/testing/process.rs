//! One process of Redis, which does not outlive this one.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program of Redis with a folder to work in, whose files may have `room` KiB.
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        folder: &Path,
        room: Option<u32>,
    ) -> Self {
        // A POSIX shell counts in halves of them.
        let blocks = room.map_or_else(String::new, |kib| (kib * 2).to_string());
        let child = Command::new("sh")
            .args(["-c", WATCHED, "sh"])
            .args([folder.as_os_str(), blocks.as_ref()])
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        Self { child }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `STOP`.
    pub(super) fn signal(&self, name: &str) {
        // It was not waited for, so its number is still its own.
        let kill = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("there is a shell").success(), "kill -{name}");
        if name == "STOP" {
            wait_stopped(self.child.id());
        }
    }

    /// Takes the limit of its files away.
    pub(super) fn make_room(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let limit = format!("prlimit --pid {} --fsize=unlimited:", self.child.id());
        let made = Command::new("sh").args(["-c", &limit]).status();
        assert!(made.expect("there is a shell").success(), "{limit}");
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is ours")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.child.stdin.take() {
            // Before its number is free for another. Fails where the watcher is gone, which is as well.
            let _ = watcher.write_all(b"\n");
        }
        // Fails where it has ended. It works on a stopped process too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shell becomes the server, so that its number is the server's. Before that it leaves a watcher behind: not
/// its child, which the server would wonder about. A line lets the watcher go; the end of the pipe without one means
/// that the test process is gone, however that came.
const WATCHED: &str = r#"
folder=$1
blocks=$2
shift 2
exec 3<&0 </dev/null
( (read -r line <&3 || { kill -KILL $$; rm -rf "$folder"; }) >/dev/null 2>&1 & )
if [ -n "$blocks" ]; then
  # What the system would end a process for is an error of a write then.
  trap '' XFSZ
  ulimit -S -f "$blocks"
fi
exec "$@" 3<&-
"#;

/// Waits until a process that was told to stop has: its threads run on for a moment.
///
/// # Panics
/// When it does not.
pub fn wait_stopped(process: u32) {
    let is_stopped = |stat: &str| {
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next());
        matches!(state, Some("T" | "t"))
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
        let all_stopped = threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat"));
            stat.is_ok_and(|stat| is_stopped(&stat))
        });
        if all_stopped {
            return;
        }
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::yield_now();
    }
}
