//! Real engines that die in mid-answer (`make test-engines`).
//!
//! Every answer must be exactly the one that it would have been, or end with one error that names a gate. The run
//! fails on the first kind of anything else, and when more is refused than is promised; it prints what became of all.

mod answer;
mod chance;
mod engine;
mod figures;
mod judged;
mod round;
mod tasks;

use std::env;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::SystemTime;

use streamweld_upstream::fleet;

use self::answer::Answer;
use self::chance::Chance;
use self::engine::{Engine, Pool};
use self::figures::Figures;
use self::judged::{Expected, Outcome, judge};
use self::round::{Manner, Round, round, undisturbed};
use self::tasks::{MESSAGE_TASKS, TASKS, Task};

/// The most that may be refused where nothing is drawn, in percent.
const REFUSED_AT_MOST: f64 = 5.0;
/// Where tokens are drawn: warm enough that no two answers are alike.
const WARM: f32 = 0.8;

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let what = arguments.next().expect("what the engines are");
    let command: Vec<String> = arguments.collect();
    let seed = given("SEED").unwrap_or_else(from_clock);
    say(format!("## {what}, SEED={seed}\n"));

    // One token of a prompt at a time: then the sums of an engine do not depend on what it was given at once.
    let one_by_one = [&command[..], &["1".to_owned()]].concat();
    let mut run = Run::begin(&one_by_one, seed).await;
    let kills_and_cuts = [
        (Manner::Kill, times("KILLS", 100)),
        (Manner::Cut, times("CUTS", 200)),
    ];
    let exact = run
        .greedy(&TASKS, |whole| Expected::This(whole), &kills_and_cuts)
        .await;
    say(format!(
        "### Temperature 0, sums that do not depend on the batch\n\n{exact}"
    ));
    let kills_and_cuts = [
        (Manner::Kill, times("MESSAGES", 60) / 3),
        (Manner::Cut, times("MESSAGES", 60) * 2 / 3),
    ];
    let messages = run
        .greedy(
            &MESSAGE_TASKS,
            |whole| Expected::This(whole),
            &kills_and_cuts,
        )
        .await;
    say(format!("### Messages of Anthropic\n\n{messages}"));
    let drawn = run.drawn(times("DRAWN", 100)).await;
    say(format!("### Temperature {WARM}\n\n{drawn}"));
    let mut sigterm = Ok(Outcome::DoneBefore);
    for _ in 0..times("TERMS", 1) {
        sigterm = run.told_to_end().await;
    }
    drop(run);

    let mut batched = Figures::default();
    let cuts = times("BATCHED", 100);
    if cuts > 0 {
        let mut run = Run::begin(&command, seed).await;
        batched = run
            .greedy(
                &TASKS,
                |whole| Expected::Near(whole),
                &[(Manner::Cut, cuts)],
            )
            .await;
        say(format!(
            "### Temperature 0, the engine as it is by default\n\n{batched}"
        ));
    }

    let wrong = exact.wrong() + messages.wrong() + batched.wrong() + drawn.wrong();
    let refused = exact.refused_percent().max(messages.refused_percent());
    if wrong == 0 && sigterm.is_ok() && refused <= REFUSED_AT_MOST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

struct Run {
    pool: Pool,
    chance: Chance,
    /// The uninterrupted answer to each task, and how many events it has before its last; to those about messages behind
    /// the others.
    wholes: Vec<(Answer, usize)>,
}

impl Run {
    async fn begin(command: &[String], seed: u64) -> Self {
        let mut pool = Pool::new(command.to_vec(), kind());
        let [first, second] = pool.two().await;
        let mut wholes = Vec::new();
        for task in TASKS.iter().chain(&MESSAGE_TASKS) {
            wholes.push(undisturbed(&first, task).await);
        }
        pool.put(first);
        pool.put(second);
        Self {
            pool,
            chance: Chance::new(seed),
            wholes,
        }
    }

    /// Nothing is drawn: what comes is known to the character.
    async fn greedy(
        &mut self,
        tasks: &[Task],
        expected: fn(&Answer) -> Expected<'_>,
        times: &[(Manner, u64)],
    ) -> Figures {
        let mut figures = Figures::default();
        let each = times
            .iter()
            .flat_map(|(manner, times)| (0..*times).map(|_| *manner));
        for manner in each {
            let task = &tasks[self.chance.below(tasks.len())];
            let (whole, events) = self.whole(task);
            let mut after = vec![1 + self.chance.below(events)];
            // Whoever was cut off may be asked again, whoever was killed may not, and two are all there are.
            if manner == Manner::Cut && self.chance.below(3) == 0 {
                after.push(after[0] + 1 + self.chance.below(events));
            }
            let (_, outcome) = self
                .round(task, 0.0, &after, manner, expected(&whole))
                .await;
            figures.add(task, manner, &outcome);
            progress(&figures);
        }
        figures
    }

    fn whole(&self, task: &Task) -> (Answer, usize) {
        let mut all = TASKS.iter().chain(&MESSAGE_TASKS);
        let at = all.position(|other| other.name() == task.name());
        self.wholes[at.expect("one of them")].clone()
    }

    /// Every token is drawn: what comes is known by nobody.
    async fn drawn(&mut self, times: u64) -> Figures {
        let mut figures = Figures::default();
        for _ in 0..times {
            let task = &TASKS[self.chance.below(TASKS.len())];
            let after = [1 + self.chance.below(30)];
            let (_, outcome) = self
                .round(task, WARM, &after, Manner::Cut, Expected::Whole)
                .await;
            figures.add(task, Manner::Cut, &outcome);
            progress(&figures);
        }
        figures
    }

    /// An engine that is told to end keeps its connections for half a minute and says nothing, but for its comments.
    async fn told_to_end(&mut self) -> Result<Outcome, String> {
        let (whole, _) = self.wholes[1].clone();
        let (round, outcome) = self
            .round(&TASKS[1], 0.0, &[10], Manner::Term, Expected::This(&whole))
            .await;
        say(format!(
            "SIGTERM in mid-answer: {outcome:?}, the longest silence {:.1} s\n",
            round.silence.as_secs_f32()
        ));
        outcome
    }

    async fn round(
        &mut self,
        task: &Task,
        temperature: f32,
        after: &[usize],
        manner: Manner,
        expected: Expected<'_>,
    ) -> (Round, Result<Outcome, String>) {
        let engines = self.pool.two().await;
        let round = round(&engines, task, temperature, after, manner).await;
        let [a, b] = engines;
        let (gone, stays): (Engine, Engine) = if round.victim == 0 { (a, b) } else { (b, a) };
        self.pool.put(stays);
        if manner == Manner::Cut {
            self.pool.put(gone);
        } else {
            drop(gone);
            self.pool.replace();
        }
        let outcome = judge(&round, expected);
        tell(task, after, manner, &round, expected, &outcome);
        (round, outcome)
    }
}

/// What went wrong, was refused or became another answer, so that somebody can find out why.
fn tell(
    task: &Task,
    after: &[usize],
    manner: Manner,
    round: &Round,
    expected: Expected<'_>,
    outcome: &Result<Outcome, String>,
) {
    let how = format!("{} {manner:?} behind {after:?}", task.name());
    let (shown, before) = (&round.shown.text, &round.before);
    match outcome {
        Ok(Outcome::Moved(_) | Outcome::DoneBefore) => {}
        Ok(Outcome::Another) => say(format!(
            "became another: {how}, {before:?}\n  expected {expected:?}\n  seen {shown:?}"
        )),
        Ok(Outcome::Refused(_)) => say(format!("refused: {how}, {shown:?}: {:?}", round.refused)),
        Err(why) => say(format!(
            "WRONG, {why}: {how}, moved {:?}, refused {:?}\n  expected {expected:?}\n  seen {:?} {:?} {:?}\n  before {before:?}\n  bytes {:?}",
            round.moves,
            round.refused,
            round.shown,
            round.own,
            round.end,
            String::from_utf8_lossy(&round.body),
        )),
    }
}

/// Something to see while it lasts.
fn progress(figures: &Figures) {
    if figures.answers() % 25 == 0 {
        say(format!("{} answers", figures.answers()));
    }
}

/// How often something is done, if the caller does not say so.
fn times(name: &str, usual: u64) -> u64 {
    given(name).unwrap_or(usual)
}

fn given(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number")))
}

/// What the engines are: `ENGINE`, as in a backend's option.
fn kind() -> fleet::Engine {
    let name = env::var("ENGINE").unwrap_or_else(|_| "llama_cpp".to_owned());
    name.parse()
        .unwrap_or_else(|error| panic!("ENGINE: {error}"))
}

fn from_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

#[expect(clippy::print_stdout, reason = "it is what this program is for")]
fn say(what: impl Display) {
    println!("{what}");
}
