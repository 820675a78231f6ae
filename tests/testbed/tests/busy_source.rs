//! A source that keeps working while it is copied.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{Line, Sink, Spec};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, with_log};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Then the copy's control file is newer than its `backup_label`, whose position recovery starts at.
#[test]
fn a_source_that_makes_checkpoints_while_it_is_copied_can_be_linked() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 20, settings: vec![] };
    let bed = Testbed::with(options).unwrap();
    with_log(&bed.engine, link_during_checkpoints(&bed)).unwrap();
}

fn link_during_checkpoints(bed: &Testbed) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE rows (n int)")?;
    let ended = AtomicBool::new(false);
    let (linked, checkpoints) = std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| -> Result<u32> {
            let source = bed.source.connect("postgres")?;
            for number in 1.. {
                source.execute(&format!("INSERT INTO rows VALUES ({number})"))?;
                source.execute("SELECT pg_switch_wal()")?;
                source.execute("CHECKPOINT")?;
                if ended.load(Ordering::Relaxed) {
                    return Ok(number);
                }
            }
            unreachable!("it counts until the link has ended")
        });
        let linked = bed.link("prod");
        ended.store(true, Ordering::Relaxed);
        let counted = checkpoints.join();
        (linked, counted.unwrap_or_else(|_| anyhow::bail!("the checkpoints panicked")))
    });
    let (dsource, checkpoints) = (linked?, checkpoints?);
    ensure!(checkpoints > 5, "only {checkpoints} checkpoints during the link");
    bed.wait_ready(&dsource.snapshots[0])?;
    let vdb = bed.provision("copy", "prod", &["--latest"])?;
    ensure!(vdb.uri.starts_with("postgresql://"), "{vdb:?}");
    let rows = bed.open("copy")?.number("SELECT count(*) FROM rows")?;
    ensure!(rows == i64::from(checkpoints), "{rows} of {checkpoints} rows");
    bed.engine.command(["vdb", "delete", "copy"])?;
    bed.engine.command(["dsource", "unlink", "prod"])?;
    bed.assert_no_trace()
}

/// A user who waits sees how far it is: how much is received, then how much is replayed.
#[test]
fn opening_the_latest_moment_of_a_busy_source_shows_its_progress() {
    let settings = vec![("max_wal_size".to_owned(), "4GB".to_owned())];
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 20, settings };
    let bed = Testbed::with(options).unwrap();
    with_log(&bed.engine, watch_a_provision(&bed)).unwrap();
}

/// Two lines of the command as it is typed, no more than this apart.
const SILENCE_MAX: Duration = Duration::from_secs(5);

fn watch_a_provision(bed: &Testbed) -> Result<()> {
    bed.link("prod")?;
    bed.engine.command(["policy", "set", "prod", "--snapshot-every", "1d"])?;
    let load = ["--client=4", "--jobs=2", "--time=60", "--no-vacuum"];
    let mut load = bed.source.pgbench(&load).stdout(Sink::Null).stderr(Sink::Null).spawn()?;
    SystemClock.sleep(Duration::from_secs(20));
    let command = Spec::new(offshoot_testbed::binary())
        .args(["vdb", "provision", "copy", "--from", "prod", "--latest", "--pool"])
        .arg(bed.engine.pool())
        .stderr(Sink::Pipe);
    let began = SystemClock.elapsed();
    let mut child = command.spawn()?;
    let lines = child.take_stderr_lines().context("its lines")?;
    let (mut said, mut last, mut longest) = (Vec::new(), began, Duration::ZERO);
    loop {
        let line = lines.next_within(PATIENCE);
        let now = SystemClock.elapsed();
        longest = longest.max(now - last);
        last = now;
        match line {
            Line::Text(text) => said.push(format!("{:5.1} s {text}", (now - began).as_secs_f64())),
            Line::Nothing => anyhow::bail!("it says nothing: {said:?}"),
            Line::End => break,
        }
    }
    load.kill_group();
    let all = said.join("\n");
    println!("{all}");
    let shown = said.iter().filter(|line| line.contains("recover (")).count();
    ensure!(shown >= 2, "replay shows how far it is:\n{all}");
    ensure!(!all.contains(" 0 %"), "it never seems to stand at its beginning:\n{all}");
    ensure!(longest < SILENCE_MAX, "{} ms without a word:\n{all}", longest.as_millis());
    Ok(())
}
