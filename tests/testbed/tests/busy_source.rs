//! A source that keeps working while it is copied.
#![allow(clippy::unwrap_used)]

use anyhow::{Result, ensure};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{Testbed, with_log};
use std::sync::atomic::{AtomicBool, Ordering};

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
