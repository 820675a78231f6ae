//! A source that does not answer: what was received of it opens, and users are told how old that is.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Job, JobAccepted, JobList, JobState};
use offshoot_os::process::{ProcessId, Signal};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, with_log};
use std::time::Duration;

/// Every process of a source, stopped until this value ends.
struct Frozen(Vec<ProcessId>);

impl Frozen {
    fn all_of(bed: &Testbed) -> Frozen {
        let data = bed.source.data_dir();
        let of_source = |process: &ProcessId| process.cwd().is_some_and(|cwd| cwd == data);
        let frozen = Frozen(bed.scratch.processes().into_iter().filter(of_source).collect());
        frozen.signal(Signal::Stop);
        frozen
    }

    fn signal(&self, signal: Signal) {
        for process in &self.0 {
            // One of them may have ended.
            let _ = process.signal(signal);
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal(Signal::Continue);
    }
}

/// Runs a command in the background; returns its job when it has told something or ended, and how long that took.
fn first_word(bed: &Testbed, command: &[&str]) -> Result<(Job, Duration)> {
    let began = SystemClock.elapsed();
    let job: JobAccepted = bed.engine.ask([command, &["--detach"]].concat())?;
    let id = job.job.to_string();
    loop {
        let job: Job = bed.engine.ask(["job", "show", &id])?;
        let waited = SystemClock.elapsed() - began;
        ensure!(waited < PATIENCE, "not a word: {job:?}");
        if job.state.is_final() || !job.notes.is_empty() {
            return Ok((job, waited));
        }
        SystemClock.sleep(Duration::from_millis(20));
    }
}

fn tells_and_gives(bed: &Testbed, command: &[&str]) -> Result<()> {
    let (job, waited) = first_word(bed, command)?;
    println!("{command:?}: told after {} ms: {:?}", waited.as_millis(), job.notes);
    let note = job.notes.first().with_context(|| format!("no word of its age: {job:?}"))?;
    ensure!(note.contains(" ago: ") && note.contains("'prod'"), "{note}");
    ensure!(waited < Duration::from_secs(3), "told after {waited:?}");
    let id = job.id.to_string();
    let ended: Job = bed.engine.ask(["job", "watch", &id])?;
    ensure!(ended.state == JobState::Done && ended.notes.len() == 1, "{ended:?}");
    Ok(())
}

fn rows(bed: &Testbed, vdb: &str) -> Result<i64> {
    bed.open(vdb)?.number("SELECT count(*) FROM rows")
}

#[test]
fn a_source_that_does_not_answer_is_not_waited_for() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let mut bed = Testbed::with(options).unwrap();
    let told = give_what_there_is(&bed);
    with_log(&bed.engine, told).unwrap();
    bed.source.stop_server().unwrap();
    // Refused connections, and a dSource that is paused, are told as well.
    let refused = tells_and_gives(&bed, &["vdb", "refresh", "dev"])
        .and_then(|()| Ok(bed.engine.command(["dsource", "pause", "prod"]).map(drop)?))
        .and_then(|()| tells_and_gives(&bed, &["vdb", "refresh", "dev"]));
    with_log(&bed.engine, refused).unwrap();
}

fn give_what_there_is(bed: &Testbed) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE rows AS SELECT 1 AS n")?;
    bed.link("prod")?;
    source.execute("INSERT INTO rows VALUES (2)")?;
    bed.provision("dev", "prod", &["--latest"])?;
    ensure!(rows(bed, "dev")? == 2);
    let frozen = Frozen::all_of(bed);
    ensure!(frozen.0.len() > 4, "the source's processes: {}", frozen.0.len());
    tells_and_gives(bed, &["vdb", "provision", "late", "--from", "prod"])?;
    ensure!(rows(bed, "late")? == 2);
    tells_and_gives(bed, &["vdb", "refresh", "dev"])?;
    ensure!(rows(bed, "dev")? == 2);
    drop(frozen);

    // All that was acknowledged is in there once it answers, and nothing is to be told.
    source.execute("INSERT INTO rows VALUES (3)")?;
    bed.engine.command(["vdb", "refresh", "dev"])?;
    ensure!(rows(bed, "dev")? == 3);
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    let refresh = jobs.jobs.iter().find(|job| job.kind == "vdb_refresh").context("the job")?;
    ensure!(refresh.notes.is_empty(), "{refresh:?}");
    Ok(())
}
