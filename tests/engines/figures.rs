//! What became of all answers, as a table.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::judged::Outcome;
use crate::round::Manner;
use crate::tasks::Task;

/// The outcomes of one run.
#[derive(Default)]
pub(crate) struct Figures {
    rows: BTreeMap<(&'static str, &'static str), Row>,
    gates: BTreeMap<String, u32>,
    kills: u32,
    cuts: u32,
}

#[derive(Default)]
struct Row {
    moved: u32,
    another: u32,
    before: u32,
    refused: u32,
    wrong: u32,
}

impl Figures {
    pub(crate) fn add(&mut self, task: &Task, manner: Manner, outcome: &Result<Outcome, String>) {
        match manner {
            Manner::Kill | Manner::Term => self.kills += 1,
            Manner::Cut => self.cuts += 1,
        }
        let row = self.rows.entry((task.kind, task.path)).or_default();
        match outcome {
            Ok(Outcome::Moved(_)) => row.moved += 1,
            Ok(Outcome::Another) => row.another += 1,
            Ok(Outcome::DoneBefore) => row.before += 1,
            Ok(Outcome::Refused(gates)) => {
                row.refused += 1;
                *self.gates.entry(gates.join(", ")).or_default() += 1;
            }
            Err(_) => row.wrong += 1,
        }
    }

    /// How many there are.
    pub(crate) fn answers(&self) -> u32 {
        self.kills + self.cuts
    }

    fn sum(&self, of: fn(&Row) -> u32) -> u32 {
        self.rows.values().map(of).sum()
    }

    pub(crate) fn wrong(&self) -> u32 {
        self.sum(|row| row.wrong)
    }

    /// Of those whose engine went away in time.
    pub(crate) fn refused_percent(&self) -> f64 {
        let refused = self.sum(|row| row.refused);
        let all = refused + self.sum(|row| row.moved + row.another);
        100.0 * f64::from(refused) / f64::from(all.max(1))
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} by `kill -9`, {} by a cut connection.\n",
            self.kills, self.cuts
        )?;
        writeln!(
            f,
            "| text | route | went on | became another | refused | done before | wrong |"
        )?;
        writeln!(f, "|---|---|--:|--:|--:|--:|--:|")?;
        let mut row = |text: &str, path: &str, row: &Row| {
            let Row {
                moved,
                another,
                before,
                refused,
                wrong,
            } = row;
            writeln!(
                f,
                "| {text} | {path} | {moved} | {another} | {refused} | {before} | {wrong} |"
            )
        };
        for ((kind, path), figures) in &self.rows {
            row(kind, &format!("`{path}`"), figures)?;
        }
        let all = Row {
            moved: self.sum(|row| row.moved),
            another: self.sum(|row| row.another),
            before: self.sum(|row| row.before),
            refused: self.sum(|row| row.refused),
            wrong: self.sum(|row| row.wrong),
        };
        row("all", "", &all)?;
        writeln!(f, "\nRefused: {:.1} %", self.refused_percent())?;
        for (gates, count) in &self.gates {
            writeln!(f, "- {count} by `{gates}`")?;
        }
        Ok(())
    }
}
