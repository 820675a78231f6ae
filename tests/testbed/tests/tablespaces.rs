//! Tablespaces that a source makes after it was linked: they lie on its host, where no server of the engine
//! may touch anything.

use anyhow::{Context, Result, ensure};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{Testbed, with_log};
use std::path::Path;

fn files_below(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path.display().to_string()),
        }
    }
    files.sort();
    files
}

/// It is said what happened and what helps; a new copy has the tablespace, and a VDB that drops it leaves
/// production's alone.
#[test]
fn production_s_tablespaces_stay_its_own() -> Result<()> {
    let bed = Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] })?;
    bed.link("prod")?;
    let place = bed.source.make_directory("place")?;
    let source = bed.source.connect("postgres")?;
    source.execute(&format!("CREATE TABLESPACE place LOCATION '{}'", place.display()))?;
    source
        .execute("CREATE TABLE placed TABLESPACE place AS SELECT generate_series(1, 1000) AS n")?;
    source.execute("CHECKPOINT")?;
    let before = files_below(&place);
    ensure!(!before.is_empty());

    let refused = bed.engine.command(["dsource", "sync", "prod"]).err().context("it synced")?;
    ensure!(refused.code == "source_refused" && refused.hint.contains("tablespace"), "{refused}");
    bed.engine.command(["dsource", "unlink", "prod"])?;
    bed.link("prod")?;
    bed.provision("dev", "prod", &["--superuser"])?;
    let dev = bed.open("dev")?;
    ensure!(dev.number("SELECT count(*) FROM placed")? == 1000);
    let dropped = dev.execute("DROP TABLE placed; CHECKPOINT");
    let dropped = dropped.and_then(|()| dev.execute("DROP TABLESPACE place"));
    with_log(&bed.engine, dropped)?;
    ensure!(files_below(&place) == before, "a VDB deleted files of production");
    ensure!(source.number("SELECT count(*) FROM placed")? == 1000);
    Ok(())
}
