//! Shows long work on stderr while a command waits for it: a bar on a terminal, lines elsewhere.

use crate::output::{size, word};
use indicatif::{ProgressBar, ProgressStyle};
use offshoot_api::{Job, StepState};
use std::io::IsTerminal;

/// A line is printed each time this many more percent are done.
const LINE_EVERY_PERCENT: u64 = 10;

/// Shows one job.
pub struct Progress {
    look: Look,
    /// How many of the job's notes were shown.
    notes: usize,
}

enum Look {
    /// A bar that is drawn over and over.
    Bar(ProgressBar),
    /// A line at each change worth one.
    Lines {
        /// The last step and tenth of it that had a line.
        last: Option<(String, u64)>,
    },
    /// Nothing: stderr is no terminal and the caller is a program.
    Silent,
}

impl Progress {
    /// What suits the place stderr goes to. `quiet` for callers who read documents, not lines.
    pub fn new(quiet: bool) -> Self {
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            bar.set_style(style(false));
            return Progress { look: Look::Bar(bar), notes: 0 };
        }
        let look = if quiet { Look::Silent } else { Look::Lines { last: None } };
        Progress { look, notes: 0 }
    }

    /// Shows how a job stands.
    pub fn show(&mut self, job: &Job) {
        self.show_notes(job);
        match &mut self.look {
            Look::Silent => {}
            Look::Bar(bar) => {
                bar.set_style(style(job.progress.unit == "bytes" && job.progress.total.is_some()));
                bar.set_length(job.progress.total.unwrap_or(0).max(job.progress.done).max(1));
                bar.set_position(job.progress.done);
                bar.set_message(describe(job));
            }
            Look::Lines { last } => {
                let tenth = percent(job).filter(|_| !job.state.is_final()).unwrap_or(0);
                let now = (step(job), tenth / LINE_EVERY_PERCENT);
                if last.as_ref() != Some(&now) {
                    eprintln!("{}: {}", job.id, describe(job));
                    *last = Some(now);
                }
            }
        }
    }

    /// Shows how much of something of that many bytes was sent.
    pub fn show_sent(&mut self, what: &str, done: u64, total: u64) {
        let tenth = done.saturating_mul(100).checked_div(total).unwrap_or(100) / LINE_EVERY_PERCENT;
        match &mut self.look {
            Look::Silent => {}
            Look::Bar(bar) => {
                bar.set_style(style(true));
                bar.set_length(total.max(done));
                bar.set_position(done);
                bar.set_message(format!("{what} ({} of {})", size(done), size(total)));
            }
            Look::Lines { last } => {
                let now = (what.to_owned(), tenth);
                if last.as_ref() != Some(&now) {
                    eprintln!(
                        "{what}: {} of {}, {} %",
                        size(done),
                        size(total),
                        tenth * LINE_EVERY_PERCENT
                    );
                    *last = Some(now);
                }
            }
        }
    }

    /// Each note is shown once, to programs too: it is not on stdout.
    fn show_notes(&mut self, job: &Job) {
        for note in job.notes.iter().skip(self.notes) {
            let line = || eprintln!("{}: {note}", job.id);
            match &self.look {
                Look::Bar(bar) => bar.suspend(line),
                _ => line(),
            }
        }
        self.notes = job.notes.len();
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Look::Bar(bar) = &self.look {
            bar.finish_and_clear();
        }
    }
}

/// What the bar looks like; for bytes, with the rate and the remaining time.
fn style(bytes: bool) -> ProgressStyle {
    let template = match bytes {
        true => "{bar:30} {msg}, {binary_bytes_per_sec}, {eta} left",
        false => "{bar:30} {msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn describe(job: &Job) -> String {
    let mut text = format!("{} {}: {}", job.kind.replace('_', " "), job.object, step(job));
    // What a job has counted says nothing once it has ended: it may have had less to do than it thought.
    // Nor does nothing, before the first of it is counted.
    let counted = !job.state.is_final() && job.progress.done > 0;
    if let Some(amount) = amount(job).filter(|_| counted) {
        text.push_str(&format!(" ({amount})"));
    }
    text
}

/// The running step, or the state of the job if there is none.
fn step(job: &Job) -> String {
    let at_work = job.steps.iter().find(|step| step.state == StepState::Running);
    match at_work {
        Some(step) if !job.state.is_final() => step.name.replace('_', " "),
        _ => word(&job.state),
    }
}

/// How much is done, in the unit that is counted.
pub fn amount(job: &Job) -> Option<String> {
    let progress = &job.progress;
    let show = |count: u64| match progress.unit.as_str() {
        "bytes" => size(count),
        _ => count.to_string(),
    };
    let unit = if progress.unit == "bytes" { "" } else { progress.unit.as_str() };
    let text = match (progress.total, percent(job)) {
        (Some(total), Some(percent)) => {
            format!("{} of {} {unit}", show(progress.done), show(total)).trim_end().to_owned()
                + &format!(", {percent} %")
        }
        _ if progress.done > 0 => format!("{} {unit}", show(progress.done)).trim_end().to_owned(),
        _ => return None,
    };
    Some(text)
}

fn percent(job: &Job) -> Option<u64> {
    let total = job.progress.total.filter(|total| *total > 0)?;
    let percent = u128::from(job.progress.done) * 100 / u128::from(total);
    u64::try_from(percent.min(100)).ok()
}
