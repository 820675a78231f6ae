//! How the demonstration speaks: a tour for people, one document for scripts.

use crate::report::{Check, Report, StepTime};
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};

/// Prints the tour on stdout, or with `--json` nothing but the document.
pub(super) struct Voice {
    json: bool,
}

impl Voice {
    pub(super) fn new(json: bool) -> Self {
        Voice { json }
    }

    /// A line of the tour.
    pub(super) fn say(&self, line: &str) {
        if !self.json {
            println!("{line}");
        }
    }

    pub(super) fn heading(&self, title: &str) {
        self.say(&format!("\n{title}"));
    }

    /// A command as a user would type it.
    pub(super) fn command(&self, command: &str) {
        self.say(&format!("  $ {command}"));
    }

    /// What stopped the demonstration; on stderr, so that stdout has only the document.
    pub(super) fn fail(&self, message: &str) {
        eprintln!("offshoot demo: {message}");
    }

    /// Runs a step and says how long it took.
    pub(super) fn timed<T>(
        &self,
        report: &mut Report,
        name: &str,
        step: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let began = SystemClock.elapsed();
        let result = step()?;
        let ms = (SystemClock.elapsed() - began).as_millis() as u64;
        report.steps.push(StepTime { name: name.to_owned(), ms });
        self.say(&format!("  {ms:>6} ms  {name}"));
        Ok(result)
    }

    /// Records a fact and says whether it holds.
    pub(super) fn check(&self, report: &mut Report, name: &str, ok: bool, seen: String) {
        self.say(&format!("  {} {name}: {seen}", if ok { "ok    " } else { "WRONG " }));
        report.checks.push(Check { name: name.to_owned(), ok, seen });
    }

    /// The document.
    pub(super) fn document(&self, report: &Report) {
        if self.json {
            match serde_json::to_string_pretty(report) {
                Ok(text) => println!("{text}"),
                Err(error) => eprintln!("offshoot demo: {error}"),
            }
        }
    }
}
