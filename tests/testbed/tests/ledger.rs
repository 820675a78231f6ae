//! Deletion in an awkward order against what the ledger said before, until the pool is empty.

use anyhow::{Context, Result, ensure};
use offshoot_api::{Ledger, LedgerEntry, LedgerKind, Snapshot, SnapshotList};
use offshoot_os::{Clock, SystemClock};
use offshoot_testbed::{Testbed, wait_until, with_log};
use std::time::Duration;

/// The most by which deleting changes the directory of datasets itself, in bytes.
const DIRECTORY_BYTES: u64 = 8 << 10;

/// What the table's log and the catalog's keep for later.
const KEPT_BYTES_MAX: u64 = 5 << 18;

/// Longer than what was written waits for its commit.
const REST: Duration = Duration::from_secs(7);

#[test]
fn deleting_in_any_order_gives_back_what_the_ledger_says() -> Result<()> {
    let bed = Testbed::start()?;
    let made = with_log(&bed.engine, make(&bed))?;
    with_log(&bed.engine, shows(&bed, &made))?;
    with_log(&bed.engine, deletes(&bed, &made))?;
    with_log(&bed.engine, is_empty_again(&bed))
}

/// `prod` with two snapshots between which much changed; `a` of the first, `b` of `a`, `c` of the second.
struct Made {
    first: Snapshot,
    second: Snapshot,
}

fn make(bed: &Testbed) -> Result<Made> {
    bed.link("prod")?;
    let source = bed.source.connect("postgres")?;
    source
        .execute("CREATE TABLE old AS SELECT n, md5(n::text) FROM generate_series(1, 20000) n")?;
    let first = bed.snapshot("prod")?;
    bed.wait_ready(&first)?;
    source.execute("DROP TABLE old")?;
    source.execute(
        "CREATE TABLE new AS SELECT n, md5(n::text) || 'x' FROM generate_series(1, 9000) n",
    )?;
    let second = bed.snapshot("prod")?;
    bed.wait_ready(&second)?;
    bed.provision("a", "prod", &["--snapshot", &first.id.to_string()])?;
    bed.open("a")?
        .execute("CREATE TABLE of_a AS SELECT md5(n::text) FROM generate_series(1, 7000) n")?;
    bed.provision("b", "a", &[])?;
    bed.open("b")?.execute(
        "CREATE TABLE of_b AS SELECT sha512(n::text::bytea) FROM generate_series(1, 5000) n",
    )?;
    bed.provision("c", "prod", &["--snapshot", &second.id.to_string()])?;
    // From here on nothing changes on its own.
    let list: SnapshotList = bed.engine.ask(["snapshot", "list"])?;
    list.snapshots.iter().try_for_each(|snapshot| bed.wait_ready(snapshot))?;
    bed.engine.command(["dsource", "pause", "prod"])?;
    for name in ["a", "b", "c"] {
        bed.engine.command(["vdb", "stop", name])?;
    }
    let (clock, mut live, mut since) = (SystemClock, 0, Duration::ZERO);
    wait_until("the pool comes to rest", Duration::from_secs(120), || {
        let before = std::mem::replace(&mut live, settled_live(bed)?);
        if before != live {
            since = clock.elapsed();
        }
        let at_rest = clock.elapsed() - since > REST;
        Ok(at_rest && ledger(bed, &[])?.objects.iter().all(|entry| entry.current))
    })?;
    Ok(Made { first, second })
}

fn ledger(bed: &Testbed, arguments: &[&str]) -> Result<Ledger> {
    bed.engine.ask(["pool", "ledger"].iter().chain(arguments))
}

/// Live bytes once everything that was deleted before is freed.
fn settled_live(bed: &Testbed) -> Result<u64> {
    bed.engine.command(["pool", "reclaim"])?;
    Ok(bed.pool()?.live_bytes)
}

fn shows(bed: &Testbed, made: &Made) -> Result<()> {
    let all = ledger(bed, &[])?;
    let entry = |name: &str| -> Result<&LedgerEntry> {
        all.objects.iter().find(|one| one.object == name).with_context(|| name.to_owned())
    };
    for one in &all.objects {
        let sum = one.exclusive_bytes.zip(one.shared_bytes).zip(one.pinned_bytes);
        let sum = sum.map(|((exclusive, shared), pinned)| exclusive + shared + pinned);
        ensure!(sum.is_some() && sum == one.stored_bytes, "{one:?}");
        ensure!(one.logical_bytes > 0 && one.current, "{one:?}");
    }
    let (prod, a, first) = (entry("prod")?, entry("a")?, entry(&made.first.id.to_string())?);
    ensure!(prod.pinned_bytes > Some(0), "the log and what was dropped are its past: {prod:?}");
    ensure!(a.shared_bytes > a.freed_if_deleted_bytes, "most of a clone is shared: {a:?}");
    ensure!(a.pinned_bytes.is_some(), "{a:?}");
    ensure!(first.kind == LedgerKind::Snapshot && first.of.as_deref() == Some("prod"), "{first:?}");
    let shown = (Some(bed.dsource("prod")?.stored_bytes), Some(bed.vdb("a")?.unique_bytes));
    let said = (prod.stored_bytes, a.freed_if_deleted_bytes);
    ensure!(shown == said, "one figure everywhere: {shown:?} and {said:?}");
    let of_a = ledger(bed, &["a"])?.objects;
    ensure!(of_a.iter().all(|one| one.object == "a" || one.of.as_deref() == Some("a")), "{of_a:?}");
    // Together they free more than each alone: what only the two share.
    let id = made.first.id.to_string();
    let both = ledger(bed, &["--delete", "a", &id])?.freed_if_deleted_bytes;
    let alone = a.freed_if_deleted_bytes.zip(first.freed_if_deleted_bytes).map(|(a, b)| a + b);
    ensure!(both >= alone, "{both:?} against {alone:?}");
    bed.refused(&["pool", "ledger", "nobody"]);
    bed.refused(&["pool", "ledger", "--delete", "a", "nobody"]);
    Ok(())
}

/// Deletes objects one after the other; together they must free what the ledger said.
fn delete(bed: &Testbed, names: &[&str], commands: &[&[&str]]) -> Result<()> {
    let before = settled_live(bed)?;
    let arguments: Vec<&str> = ["--delete"].into_iter().chain(names.iter().copied()).collect();
    let said = ledger(bed, &arguments)?.freed_if_deleted_bytes.context("a figure")?;
    for command in commands {
        bed.engine.command(*command)?;
    }
    let given_back = before.checked_sub(settled_live(bed)?).context("nothing else is written")?;
    println!("{names:?}: said {said}, given back {given_back} of {before}");
    ensure!(given_back.abs_diff(said) <= DIRECTORY_BYTES, "{names:?}: {said}, but {given_back}");
    Ok(())
}

fn deletes(bed: &Testbed, made: &Made) -> Result<()> {
    let (first, second) = (made.first.id.to_string(), made.second.id.to_string());
    // The snapshot that `a` was made of, then `a`, the parent of `b`, then the source of all.
    delete(bed, &[&first], &[&["snapshot", "delete", &first]])?;
    delete(bed, &["a"], &[&["vdb", "delete", "a"]])?;
    delete(bed, &["prod", &second], &[&["dsource", "unlink", "prod"]])?;
    for (name, table, rows) in
        [("b", "of_b", 5000), ("b", "of_a", 7000), ("b", "old", 20_000), ("c", "new", 9000)]
    {
        let vdb = bed.vdb(name)?;
        if vdb.state != offshoot_api::VdbState::Running {
            bed.engine.command(["vdb", "start", name])?;
        }
        let held = bed.open(name)?.number(&format!("SELECT count(*) FROM {table}"))?;
        ensure!(held == rows, "{name} lives on: {held} rows in {table}");
    }
    for name in ["b", "c"] {
        bed.engine.command(["vdb", "stop", name])?;
    }
    wait_until("what they wrote is in the pool", Duration::from_secs(30), || {
        Ok(ledger(bed, &["--delete", "b", "c"])?.objects.iter().all(|entry| entry.current))
    })?;
    delete(bed, &["b", "c"], &[&["vdb", "delete", "c"], &["vdb", "delete", "b"]])
}

fn is_empty_again(bed: &Testbed) -> Result<()> {
    bed.assert_no_trace()?;
    wait_until("the pool is as empty as it was", Duration::from_secs(30), || {
        bed.engine.command(["pool", "reclaim"])?;
        let (taken, empty) = (bed.taken_bytes()?, bed.empty_bytes);
        ensure!(
            taken <= empty + KEPT_BYTES_MAX,
            "the pool takes {taken} bytes, {empty} when it was empty"
        );
        Ok(true)
    })
}
