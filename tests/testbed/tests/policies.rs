//! Policies, bookmarks and timeflows with a real source: what is promised opens, the rest is freed,
//! and what a bookmark names stays.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{
    Bookmark, BookmarkList, Dsource, Policy, Snapshot, SnapshotKind, SnapshotList, TimeflowList,
    Vdb,
};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, wait_until, with_log};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// A second of log, and of the past nothing but what that needs.
const STRICT: [&str; 8] =
    ["--log", "1s", "--keep-all", "none", "--hourly", "none", "--daily", "none"];

#[test]
fn what_is_promised_opens_and_the_rest_is_given_back() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let mut bed = Testbed::with(options).unwrap();
    let past = with_log(&bed.engine, make_history(&bed)).unwrap();
    // Staging moves its restart point on when it stops; and bookmarks outlive the engine.
    assert_eq!(bed.engine.stop().unwrap(), 0);
    bed.engine.restart().unwrap();
    let kept = keeps_what_is_promised(&mut bed, &past);
    with_log(&bed.engine, kept).unwrap();
    with_log(&bed.engine, goes_back_to_a_bookmark(&bed)).unwrap();
    with_log(&bed.engine, leaves_nothing(&bed)).unwrap();
}

/// What was before the last snapshot.
struct Past {
    linked: Snapshot,
    /// A position that no bookmark names.
    unmarked: String,
}

fn flushed(source: &Database) -> Result<String> {
    source.text("SELECT pg_current_wal_flush_lsn()")
}

/// Rows 1 to 3, the moment of 2 with a bookmark, then log that holds nothing else.
fn make_history(bed: &Testbed) -> Result<Past> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE rows AS SELECT 1 AS n")?;
    let dsource: Dsource = bed.link("prod")?;
    let linked = dsource.snapshots.first().context("a link ends in a snapshot")?.clone();
    bed.wait_ready(&linked)?;
    source.execute("INSERT INTO rows VALUES (2)")?;
    let marked = flushed(&source)?;
    source.execute("INSERT INTO rows VALUES (3)")?;
    let unmarked = flushed(&source)?;
    let create = ["bookmark", "create", "release", "--on", "prod", "--lsn", &marked];
    let bookmark: Bookmark = bed.engine.ask(create)?;
    ensure!(bookmark.object == "prod" && bookmark.snapshot != linked.id, "{bookmark:?}");
    ensure!(bed.refused(&create).code == "already_exists");
    for _ in 0..3 {
        source.execute(
            "CREATE TABLE filler AS SELECT md5(random()::text) FROM generate_series(1, 150000)",
        )?;
        source.execute("DROP TABLE filler")?;
        source.execute("SELECT pg_switch_wal()")?;
    }
    source.execute("CHECKPOINT")?;
    bed.engine.command(["dsource", "sync", "prod"])?;
    Ok(Past { linked, unmarked })
}

fn keeps_what_is_promised(bed: &mut Testbed, past: &Past) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    bed.engine.command(["dsource", "sync", "prod"])?;
    let newest = snapshots(bed, "prod")?.pop().context("a sync takes a snapshot")?;
    ensure!(newest.kind == SnapshotKind::Policy, "{newest:?}");
    bed.wait_ready(&newest)?;
    source.execute("INSERT INTO rows VALUES (4)")?;
    let after = flushed(&source)?;
    source.execute("INSERT INTO rows VALUES (5)")?;
    wait_until("the snapshot is older than the window", LIMIT, || {
        let old = format!("SELECT now() > timestamptz '{}' + interval '2 s'", newest.time);
        Ok(source.text(&old)? == "t")
    })?;
    let files = log_files(bed)?;
    // What a commit is about to replace does not count.
    let mut live = 0;
    wait_until("the pool is at rest", LIMIT, || {
        SystemClock.sleep(Duration::from_secs(1));
        let before = std::mem::replace(&mut live, bed.pool()?.live_bytes);
        Ok(before.abs_diff(live) < 64 << 10)
    })?;
    retention_crashes(bed)?;
    let policy: Policy = bed.engine.ask(["policy", "show", "prod"])?;
    ensure!(policy.log_ms == 1000 && policy.keep_all_ms == 0, "{policy:?}");
    wait_until("retention gives up what is not promised", LIMIT, || {
        let gone = snapshots(bed, "prod")?.iter().all(|one| one.id != past.linked.id);
        Ok(gone && log_files(bed)?.len() + 3 <= files.len())
    })?;
    // Files of 16 MiB, of which little else than random text was written.
    wait_until("the pool gets their space back", LIMIT, || {
        Ok(bed.pool()?.live_bytes + (6 << 20) < live)
    })?;

    let history: TimeflowList = bed.engine.ask(["timeflow", "show", "prod"])?;
    let now = history.timeflows.iter().find(|one| one.current).context("one goes on")?;
    ensure!(now.ranges.len() == 1 && now.gaps.is_empty(), "{now:?}");
    ensure!(Some(&now.ranges[0].from.lsn) == newest.lsn.as_ref(), "{now:?} begins at {newest:?}");
    ensure!(now.bookmarks == ["release"], "{now:?}");
    let first = now.ranges[0].from.lsn.clone();
    opens_with(bed, &["--lsn", &first], 3)?;
    opens_with(bed, &["--lsn", &after], 4)?;
    opens_with(bed, &["--latest"], 5)?;
    opens_with(bed, &["--bookmark", "release"], 2)?;
    let asked = ["vdb", "provision", "no", "--from", "prod", "--lsn", &past.unmarked];
    let refused = bed.refused(&asked);
    ensure!(refused.code == "moment_unavailable" && refused.message.contains(&first), "{refused}");
    let at = past.linked.time.to_string();
    let refused = bed.refused(&["vdb", "provision", "no", "--from", "prod", "--at", &at]);
    ensure!(refused.message.contains(&now.ranges[0].from.time.to_string()), "{refused}");

    let bookmark = bookmarks(bed)?.pop().context("the bookmark is there")?;
    let refused = bed.refused(&["snapshot", "delete", &bookmark.snapshot.to_string()]);
    ensure!(refused.hint.contains("bookmark delete release"), "{refused}");
    bed.engine.command(["bookmark", "delete", "release"])?;
    let made = snapshots(bed, "prod")?.into_iter().find(|one| one.id == bookmark.snapshot);
    ensure!(made.is_none(), "what was made for a bookmark goes with it: {made:?}");
    Ok(())
}

/// Sets the strict policy; the engine dies when the snapshots are given up, and its next one when the log is.
fn retention_crashes(bed: &mut Testbed) -> Result<()> {
    ensure!(bed.engine.stop()? == 0);
    for step in ["snapshots", "log"] {
        bed.restart_to_crash(&format!("retention/{step}:after"))?;
        if step == "snapshots" {
            let mut set = vec!["policy", "set", "prod"];
            set.extend(STRICT);
            // The answer may be lost with the engine.
            let _ = bed.engine.command(set);
        }
        ensure!(bed.engine.wait_end(LIMIT), "retention never came to its {step}");
    }
    bed.engine.options.env.clear();
    bed.engine.restart()
}

fn goes_back_to_a_bookmark(bed: &Testbed) -> Result<()> {
    bed.provision("dev", "prod", &["--latest"])?;
    let refused = bed.refused(&["policy", "set", "dev", "--log", "1h"]);
    ensure!(refused.code == "invalid_input", "{refused}");
    let bookmark: Bookmark = bed.engine.ask(["bookmark", "create", "seeded", "--on", "dev"])?;
    bed.open("dev")?.execute("DELETE FROM rows")?;
    bed.engine.command(["vdb", "rewind", "dev", "--bookmark", "seeded"])?;
    ensure!(rows(&bed.vdb("dev")?)? == 5, "the rewind went back to the bookmark");
    let undone: Vdb = bed.engine.ask(["vdb", "rewind", "dev", "--undo"])?;
    ensure!(rows(&undone)? == 0, "the undo went forth again");
    ensure!(undone.timings.start_ms > 0 && undone.timings.clone_ms == 0, "{:?}", undone.timings);
    let history: TimeflowList = bed.engine.ask(["timeflow", "show", "dev"])?;
    let states: Vec<_> = history.timeflows.iter().map(|one| (one.current, one.kept)).collect();
    ensure!(states == [(true, false), (false, true)], "{history:?}");
    let refused =
        bed.refused(&["vdb", "provision", "no", "--from", "prod", "--bookmark", "seeded"]);
    ensure!(refused.hint.contains("--from dev"), "{refused}");
    bed.provision("branch", "dev", &["--bookmark", "seeded"])?;
    ensure!(rows(&bed.vdb("branch")?)? == 5, "a branch of the bookmark");

    // By policy a changed VDB is snapshotted; what the bookmark names stays whatever the policy says.
    let set = ["policy", "set", "dev", "--snapshot-every", "1s", "--keep-all", "none"];
    let policy: Policy = bed.engine.ask(set)?;
    ensure!(policy.snapshot_every_ms == Some(1000), "{policy:?}");
    bed.open("dev")?.execute("INSERT INTO rows VALUES (9)")?;
    wait_until("a snapshot by policy", LIMIT, || {
        Ok(snapshots(bed, "dev")?.iter().any(|one| one.id > bookmark.snapshot))
    })?;
    ensure!(snapshots(bed, "dev")?.iter().any(|one| one.id == bookmark.snapshot), "it is named");
    Ok(())
}

fn leaves_nothing(bed: &Testbed) -> Result<()> {
    for name in ["dev", "branch"] {
        bed.engine.command(["vdb", "delete", name])?;
    }
    bed.engine.command(["dsource", "unlink", "prod"])?;
    ensure!(bookmarks(bed)?.is_empty(), "bookmarks go with what they are on");
    bed.assert_no_trace()
}

fn snapshots(bed: &Testbed, of: &str) -> Result<Vec<Snapshot>> {
    let list: SnapshotList = bed.engine.ask(["snapshot", "list", of])?;
    Ok(list.snapshots)
}

fn bookmarks(bed: &Testbed) -> Result<Vec<Bookmark>> {
    let list: BookmarkList = bed.engine.ask(["bookmark", "list"])?;
    Ok(list.bookmarks)
}

fn rows(vdb: &Vdb) -> Result<i64> {
    Database::connect(&vdb.uri)?.number("SELECT count(*) FROM rows")
}

fn opens_with(bed: &Testbed, moment: &[&str], expected: i64) -> Result<()> {
    let found = rows(&bed.provision("proof", "prod", moment)?)?;
    ensure!(found == expected, "{moment:?} has {found} rows, not {expected}");
    bed.engine.command(["vdb", "delete", "proof"]).map(drop).map_err(Into::into)
}

/// The files of received log in the pool.
fn log_files(bed: &Testbed) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for mount in std::fs::read_dir(bed.engine.pool().join("run/mnt"))? {
        // Only a log dataset has this directory.
        let Ok(entries) = std::fs::read_dir(mount?.path().join("wal")) else { continue };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        files.extend(names.collect::<Result<Vec<_>>>()?);
    }
    Ok(files)
}
