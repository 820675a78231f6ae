//! Every flush of the store, omitted or late: a simulation that does not notice proves nothing.

use crate::course::Plan;
use crate::log_course;
use crate::trial::attempt;
use offshoot_os::disk::sim::{Flush, Weakness};

/// Seeds tried before a weakness counts as unnoticed.
const SEEDS_MAX: u64 = 400;
/// The same for the log alone.
const LOG_SEEDS_MAX: u64 = 20_000;
/// Losses of power for each.
const CRASHES: u64 = 24;

/// What shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Runs of a store.
    Store,
    /// Openings of the intent log alone.
    Log,
}

/// A flush of the code and the rule it keeps.
pub struct Step {
    /// What shows it.
    pub course: Course,
    /// Where it is.
    pub place: &'static str,
    /// The rule: see `docs/on-disk-format.md`.
    pub rule: &'static str,
    /// What is taken away from it.
    pub weakness: Weakness,
}

/// What became of a weakness.
pub struct Outcome {
    /// The seed and operation at which it showed, and how; `None`: it never did.
    pub noticed: Option<(u64, u64, String)>,
    /// Losses of power tried.
    pub crashes: u64,
    /// Flushes that were weakened.
    pub weakened: u64,
}

const fn file(prefix: &'static str, suffix: &'static str) -> Flush {
    Flush::File { prefix, suffix }
}

const fn names(dir: &'static str, suffix: &'static str) -> Flush {
    Flush::Names { dir, suffix }
}

const fn header(len: usize) -> Flush {
    Flush::Header { prefix: "log/", len }
}

const fn step(place: &'static str, rule: &'static str, weakness: Weakness) -> Step {
    Step { course: Course::Store, place, rule, weakness }
}

const fn log_step(place: &'static str, rule: &'static str, weakness: Weakness) -> Step {
    Step { course: Course::Log, place, rule, weakness }
}

/// All of them. If one is omitted, what was acknowledged is lost; if late, only the order is.
pub const STEPS: &[Step] = &[
    step("segments: blocks", "1", Weakness::Ignored(file("segments/", ".seg"))),
    step("segments: blocks", "1", Weakness::Late(file("segments/", ".seg"))),
    step("segments: names", "1", Weakness::Ignored(names("segments", ".seg"))),
    step("segments: names", "1", Weakness::Late(names("segments", ".seg"))),
    step("table: log", "2", Weakness::Ignored(file("table/", ".log"))),
    step("table: log", "2", Weakness::Late(file("table/", ".log"))),
    step("table: names of logs", "2", Weakness::Ignored(names("table", ".log"))),
    step("table: names of logs", "2", Weakness::Late(names("table", ".log"))),
    step("table: checkpoint", "2", Weakness::Ignored(file("table/", ".checkpoint"))),
    step("table: checkpoint", "2", Weakness::Late(file("table/", ".checkpoint"))),
    step("table: names of checkpoints", "2", Weakness::Ignored(names("table", ".checkpoint"))),
    step("table: names of checkpoints", "2", Weakness::Late(names("table", ".checkpoint"))),
    step("root", "3", Weakness::Ignored(file("root.", ""))),
    step("root", "4", Weakness::Late(file("root.", ""))),
    step("intent log: records", "5", Weakness::Ignored(Flush::Rest { prefix: "log/" })),
    log_step("intent log: records", "R1", Weakness::Ignored(Flush::Rest { prefix: "log/" })),
    log_step("intent log: file by file", "R3", Weakness::Late(Flush::Rest { prefix: "log/" })),
    log_step("intent log: a generation", "R2", Weakness::Ignored(header(1024))),
    log_step("intent log: header of a used file", "R6", Weakness::Ignored(header(4096))),
    step("creation: label", "last", Weakness::Ignored(file("label", ""))),
    step("creation: name of the label", "last", Weakness::Ignored(names("", "label"))),
    step("creation: names of the roots", "last", Weakness::Ignored(names("", "root.0"))),
    step("creation: names of the intent log", "last", Weakness::Ignored(names("log", ".log"))),
];

/// Tries a weakness until it shows.
pub fn try_out(step: &Step) -> Outcome {
    match step.course {
        Course::Store => try_stores(step.weakness),
        Course::Log => try_logs(step.weakness),
    }
}

fn try_stores(weakness: Weakness) -> Outcome {
    let mut outcome = Outcome { noticed: None, crashes: 0, weakened: 0 };
    for seed in 1..=SEEDS_MAX {
        let plan = Plan::new(seed);
        for index in 0..CRASHES {
            let at = 1 + (plan.operations * index + seed % plan.operations) / CRASHES;
            outcome.crashes += 1;
            let noticed = attempt(|| plan.crash_at(at, &|disk| disk.weaken(weakness)).weakened);
            match noticed {
                Ok(weakened) => outcome.weakened += weakened,
                Err(why) => {
                    outcome.noticed = Some((seed, at, why));
                    return outcome;
                }
            }
        }
    }
    outcome
}

fn try_logs(weakness: Weakness) -> Outcome {
    let mut outcome = Outcome { noticed: None, crashes: 0, weakened: 0 };
    for seed in 1..=LOG_SEEDS_MAX {
        let noticed = attempt(|| log_course::run_seed(seed, &|disk| disk.weaken(weakness)));
        match noticed {
            Ok(tally) => {
                outcome.weakened += tally.weakened;
                outcome.crashes += tally.crashes;
            }
            Err(why) => {
                outcome.noticed = Some((seed, 0, why));
                return outcome;
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests;
