//! The demonstration itself.

mod checks;
mod interrupt;
mod masking;
mod takeover;
mod voice;

use crate::report::{MadeVdb, Report, Space};
use anyhow::{Context, Result, bail};
use interrupt::Interrupt;
use jiff::Timestamp;
use offshoot_api::{PoolStatus, Vdb};
use offshoot_rig::{
    Database, Engine, EngineOptions, Scratch, Source, SourceOptions, Writer, find_newest,
};
use serde::Deserialize;
use std::time::Duration;
use takeover::TakenOver;
use voice::Voice;

/// What `offshoot demo` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoOptions {
    /// Clean up and end once everything was shown, instead of waiting for Ctrl-C.
    pub exit: bool,
    /// The scale of the pgbench data, about 15 MiB each.
    pub scale: u32,
    /// Print one JSON document instead of the tour.
    pub json: bool,
}

impl Default for DemoOptions {
    fn default() -> Self {
        DemoOptions { exit: false, scale: 20, json: false }
    }
}

/// Runs the demonstration and returns the exit code: 0 only if every check held.
///
/// The engine is this same binary started again as `offshoot serve`. Everything is in one scratch
/// directory, which is removed at the end in any case.
pub fn run(options: DemoOptions) -> i32 {
    let voice = Voice::new(options.json);
    let interrupt = Interrupt::listen();
    let mut report = Report::default();
    let result = show(&options, &voice, &interrupt, &mut report);
    report.ok = result.is_ok() && report.all_held();
    if let Err(error) = &result {
        report.error = Some(format!("{error:#}"));
        voice.fail(&format!("{error:#}"));
    }
    // Each step was printed before it ran; a failure is printed here.
    if result.is_err() || options.exit {
        voice.document(&report);
    }
    if report.ok { 0 } else { 1 }
}

/// Everything that lives while the demonstration runs. The order of the fields is the order in which
/// they end: writes before their source, processes before the directory they work in.
struct Stage {
    writer: Writer,
    /// Which the engine sends to, once it is there.
    second: Option<Engine>,
    engine: Engine,
    source: Source,
    scratch: Scratch,
}

impl Stage {
    fn second(&self) -> Result<&Engine> {
        self.second.as_ref().context("the second engine")
    }
}

fn show(
    options: &DemoOptions,
    voice: &Voice,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<()> {
    let mut stage = set_the_stage(options, voice, report)?;
    interrupt.check()?;
    let first = provision(&stage, voice, report, "first", "sample", None)?;
    interrupt.check()?;
    let (moment, value) = earlier_second(&stage)?;
    let at = moment.to_string();
    let second = provision(&stage, voice, report, "second", "sample", Some(&at))?;
    checks::source_copies(&stage, voice, report, &first, &second, (moment, value))?;
    interrupt.check()?;
    Database::connect(&first.uri)?.execute(
        "CREATE TABLE only_in_first AS SELECT 1 AS one; DELETE FROM ticks WHERE value <= 3",
    )?;
    let branch = provision(&stage, voice, report, "branch", "first", None)?;
    checks::branch(&stage, voice, report, [&first, &second, &branch])?;
    interrupt.check()?;
    show_space(&stage, voice, report)?;
    interrupt.check()?;
    let masked = masking::show(&stage, voice, report)?;
    interrupt.check()?;
    let taken_over = takeover::show(&mut stage, voice, interrupt, report)?;
    show_ways(&stage, voice, report, [&second, &branch, &masked], &taken_over)?;
    if !options.exit {
        report.ok = report.all_held();
        voice.document(report);
        voice.say("\nCtrl-C ends the demonstration and removes everything.");
        interrupt.wait();
    }
    voice.timed(report, "clean up", || clean_up(stage))
}

fn set_the_stage(options: &DemoOptions, voice: &Voice, report: &mut Report) -> Result<Stage> {
    let binary = std::env::current_exe().context("finding this binary")?;
    let scratch = Scratch::new("demo")?;
    voice.heading("A production database");
    let source = voice.timed(report, "sample PostgreSQL with pgbench data", || {
        let bin_dir = find_newest()?;
        Source::start(&scratch, SourceOptions { bin_dir, scale: options.scale, settings: vec![] })
    })?;
    masking::fill(&source)?;
    let writer = source.start_writes(Duration::from_millis(50));
    voice.heading("Offshoot");
    let engine = voice.timed(report, "engine on a fresh pool", || {
        Engine::start(&scratch, EngineOptions::new(binary))
    })?;
    voice.command(&format!("offshoot dsource link sample --source {}", source.link_uri()));
    voice.timed(report, "link: copy the source and follow its log", || {
        let arguments = [
            "dsource",
            "link",
            "sample",
            "--connector",
            "postgres",
            "--source",
            &source.link_uri(),
        ];
        let password = [("PGPASSWORD", source.link_password())];
        engine.command_within(arguments, &password, Duration::from_secs(1_800))?;
        Ok(())
    })?;
    Ok(Stage { writer, second: None, engine, source, scratch })
}

fn provision(
    stage: &Stage,
    voice: &Voice,
    report: &mut Report,
    name: &str,
    from: &str,
    at: Option<&str>,
) -> Result<Vdb> {
    provision_on(&stage.engine, voice, report, name, from, at)
}

fn provision_on(
    engine: &Engine,
    voice: &Voice,
    report: &mut Report,
    name: &str,
    from: &str,
    at: Option<&str>,
) -> Result<Vdb> {
    let mut arguments = vec!["vdb", "provision", name, "--from", from];
    let shown = match at {
        Some(at) => {
            arguments.extend(["--at", at]);
            format!("offshoot vdb provision {name} --from {from} --at '{at}'")
        }
        None => format!("offshoot vdb provision {name} --from {from}"),
    };
    voice.command(&shown);
    let vdb: Vdb = voice.timed(report, &format!("provision {name}"), || engine.ask(arguments))?;
    let timings = &vdb.timings;
    voice.say(&format!(
        "        in the engine {} ms: clone {}, mount {}, recover {}, start {}",
        timings.total_ms, timings.clone_ms, timings.mount_ms, timings.recover_ms, timings.start_ms
    ));
    let made = MadeVdb { name: name.into(), uri: vdb.uri.clone(), provision_ms: timings.total_ms };
    report.vdbs.push(made);
    Ok(vdb)
}

/// A moment some seconds ago and the value the source held then.
fn earlier_second(stage: &Stage) -> Result<(Timestamp, i64)> {
    // The moment must be after the copy was complete, and writes must have followed it.
    let from = stage.writer.history().last_value();
    if !stage.writer.wait_for(from + 40, Duration::from_secs(60)) {
        bail!("the sample source takes no writes; its log is {}", stage.source.log().display());
    }
    let history = stage.writer.history();
    (from + 5..from + 40)
        .find_map(|value| Some((history.moment_of(value)?, value)))
        .context("no moment between two writes")
}

fn show_space(stage: &Stage, voice: &Voice, report: &mut Report) -> Result<()> {
    let pool: PoolStatus = stage.engine.ask(["pool", "status"])?;
    report.space = Space {
        pool_bytes: pool.used_bytes,
        four_copies_bytes: 4 * stage.source.data_bytes(),
        cache_hits: pool.cache.hits,
        cache_misses: pool.cache.misses,
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    voice.heading("Space and memory");
    voice.say(&format!(
        "  pool: {:.0} MiB for the copy, its log and three VDBs; four physical copies: {:.0} MiB",
        mib(pool.used_bytes),
        mib(report.space.four_copies_bytes)
    ));
    voice.say(&format!(
        "  shared cache: {} blocks, {} hits, {} misses ({:.0} % of reads)",
        pool.cache.blocks,
        pool.cache.hits,
        pool.cache.misses,
        pool.cache.hit_ratio * 100.0
    ));
    Ok(())
}

/// How to use what is there at the end.
fn show_ways(
    stage: &Stage,
    voice: &Voice,
    report: &mut Report,
    vdbs: [&Vdb; 3],
    TakenOver { first, latest }: &TakenOver,
) -> Result<()> {
    voice.heading("Connect");
    for vdb in vdbs.into_iter().chain([first, latest]) {
        voice.say(&format!("  {:<7} psql '{}'", vdb.name, vdb.uri));
    }
    // It is another server than the one that was made first.
    for made in report.vdbs.iter_mut().filter(|made| made.name == first.name) {
        made.uri.clone_from(&first.uri);
    }
    let (pool, second) = (stage.engine.pool().display(), stage.second()?.pool().display());
    voice.say(&format!(
        "  second  offshoot status --pool {second}     # with first, latest, and sample"
    ));
    voice.say(&format!("  engine  offshoot status --pool {pool}"));
    show_console(stage, voice, report)
}

/// What the engine tells of a link to its console.
#[derive(Deserialize)]
struct Link {
    url: String,
}

fn show_console(stage: &Stage, voice: &Voice, report: &mut Report) -> Result<()> {
    let Link { url } = stage.engine.ask(["console"])?;
    voice.say(&format!("  console {url}"));
    let pool = stage.engine.pool().display();
    voice.say(&format!(
        "          signs in once, within ten minutes; another link: offshoot console --pool {pool}"
    ));
    report.console = url;
    Ok(())
}

fn clean_up(stage: Stage) -> Result<()> {
    let Stage { writer, second, engine, mut source, scratch } = stage;
    writer.stop();
    for mut engine in second.into_iter().chain([engine]) {
        let code = engine.stop()?;
        anyhow::ensure!(
            code == 0,
            "an engine ended with exit code {code}:\n{}",
            engine.log_end(10)
        );
    }
    source.stop_server()?;
    let left = scratch.processes().len() + scratch.mounts().len();
    anyhow::ensure!(
        left == 0,
        "{left} processes or mounts are left below {}",
        scratch.path().display()
    );
    Ok(())
}
