//! Servers of VDBs read blocks from shared memory (`offshoot serve --direct-size`).
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_os::process;
use offshoot_rig::{Database, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{
    PATIENCE, Testbed, binary, check_pages, kill_under_load, metrics, other_server, sample,
    wait_until, with_log,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Less than the VDBs have: blocks give way to others all the time.
const SIZE: &str = "32MiB";
/// How often an engine is killed under five VDBs.
const KILLS: u32 = 6;

fn bed(arguments: &[&str], bin_dir: PathBuf) -> Testbed {
    let mut options = EngineOptions::new(binary());
    options.arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir, scale: 5, settings: vec![] };
    let bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    bed
}

fn usual() -> Testbed {
    bed(&["--direct-size", SIZE], find_newest().unwrap())
}

/// Blocks that a VDB has read without asking; none if it asks for all.
fn reads(bed: &Testbed, vdb: &str) -> Option<f64> {
    let name = format!("offshoot_direct_reads_total{{vdb=\"{vdb}\"}}");
    sample(&metrics(bed, None).unwrap(), &name)
}

/// Runs pgbench on a VDB; no client may see an error.
fn load(bed: &Testbed, vdb: &str, more: &[&str]) -> Result<()> {
    let arguments: Vec<_> = ["--no-vacuum", "--client=4"].iter().chain(more).copied().collect();
    let output = process::run(&bed.source.pgbench_on(&bed.vdb(vdb)?.uri, &arguments), PATIENCE)?;
    let said = output.stdout_text() + &output.stderr_text();
    ensure!(output.success() && said.contains("failed transactions: 0 "), "{said}");
    Ok(())
}

/// All rows, in an order of their own.
fn sums(db: &Database) -> Result<String> {
    db.text(
        "SELECT sum(hashtext(a::text)::bigint)::text || ' ' || count(*) FROM pgbench_accounts a",
    )
}

/// The memory that a server has mapped, by its name: inodes with what may be done there.
fn mapped(db: &Database, name: &str) -> Result<BTreeSet<(String, String)>> {
    let pid = db.text("SELECT pg_backend_pid()")?;
    // The cell has process numbers of its own.
    let own = offshoot_os::process::ProcessId::all().filter(|process| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid));
        let inner = status.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.to_owned();
            line.split_whitespace().next_back().map(str::to_owned)
        });
        inner.as_deref() == Some(&pid)
            && process.arguments().first().is_some_and(|title| title.contains("postgres"))
    });
    let mut found = BTreeSet::new();
    for process in own {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid));
        for line in maps.unwrap_or_default().lines().filter(|line| line.contains(name)) {
            let words: Vec<_> = line.split_whitespace().collect();
            found.insert((words[4].to_owned(), words[1].to_owned()));
        }
    }
    Ok(found)
}

#[test]
fn a_vdb_reads_without_asking_what_it_and_its_like_have_read() {
    let bed = usual();
    let ran = (|| {
        for vdb in ["one", "two"] {
            bed.provision(vdb, "prod", &[])?;
        }
        let (one, two) = (bed.open("one")?, bed.open("two")?);
        let wanted = sums(&one)?;
        load(&bed, "one", &["--select-only", "--time=3"])?;
        load(&bed, "two", &["--time=3"])?;
        // A table that is scanned is read anew each time, past the server's own buffers.
        let written = sums(&two)?;
        ensure!(sums(&two)? == written, "two has read it differently");
        for vdb in ["one", "two"] {
            let read = reads(&bed, vdb).context("it reads directly")?;
            ensure!(read > 1_000.0, "{vdb} has read {read} blocks directly");
        }
        ensure!(sums(&one)? == wanted, "what one has read is not what it was");
        let balanced = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts)
            = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
        ensure!(two.text(balanced)? == "t", "the books of two do not balance");
        // Files come, go and become shorter.
        two.execute("VACUUM FULL pgbench_accounts")?;
        two.execute("TRUNCATE pgbench_history")?;
        two.execute(
            "CREATE TABLE more AS SELECT g, repeat('x', 500) AS t FROM generate_series(1, 20000) g",
        )?;
        two.execute("DELETE FROM more WHERE g > 100")?;
        two.execute("VACUUM more")?;
        ensure!(two.number("SELECT count(*) FROM more")? == 100, "rows of more");
        ensure!(two.number("SELECT pg_relation_size('more') / 8192")? < 20, "it became shorter");
        bed.engine.command(["vdb", "refresh", "two"])?;
        ensure!(sums(&bed.open("two")?)? == wanted, "a refreshed VDB is its parent");
        for vdb in ["one", "two"] {
            check_pages(&bed, &bed.vdb(vdb)?.uri)?;
        }
        bed.check_pool()
    })();
    with_log(&bed.engine, ran).unwrap();
}

#[test]
fn what_is_acknowledged_is_there_whenever_the_engine_is_killed() {
    let kills = std::env::var("OFFSHOOT_TEST_KILLS").map_or(4, |text| text.parse().unwrap());
    let mut bed = usual();
    bed.provision("dev", "prod", &[]).unwrap();
    let seen = kill_under_load(&mut bed, "dev", kills);
    with_log(&bed.engine, seen.map(|kills| println!("{kills:?}"))).unwrap();
    // The servers are still those of the first engine, and read by what the last one has put there.
    let before = reads(&bed, "dev").unwrap();
    let scan = || sums(&bed.open("dev").unwrap()).unwrap();
    assert_eq!(scan(), scan());
    let read = reads(&bed, "dev").unwrap();
    assert!(read > before + 1_000.0, "{before} blocks, then {read}");
    // An engine that is not asked for it ends it, and the server goes on.
    bed.engine.options.arguments.clear();
    bed.engine.take_over().unwrap();
    load(&bed, "dev", &["--time=1"]).unwrap();
    check_pages(&bed, &bed.vdb("dev").unwrap().uri).unwrap();
    assert_eq!(bed.engine.stop().unwrap(), 0);
    assert!(bed.servers().is_empty(), "left running: {:?}", bed.servers());
}

/// The next engine takes one after the other over. Those that go on use frames which the others still had before.
#[test]
fn each_server_of_a_group_reads_its_own_whenever_the_engine_is_killed() {
    const ROWS: i64 = 10_000;
    let mut bed = usual();
    let ran = (|| {
        let mut clients = Vec::new();
        for vdb in ["one", "two", "three", "four", "five"] {
            bed.provision(vdb, "prod", &["--set", "shared_buffers=1MB"])?;
            let db = bed.open(vdb)?;
            db.execute(&format!(
                "CREATE TABLE mine AS SELECT '{vdb}' AS vdb, repeat('x', 900) FROM generate_series(1, {ROWS})"
            ))?;
            db.execute("VACUUM ANALYZE mine")?;
            clients.push((db, format!("SELECT count(*) FROM mine WHERE vdb = '{vdb}'")));
        }
        let (stop, scans) = (AtomicBool::new(false), AtomicU64::new(0));
        let look = |(db, query): (Database, String)| {
            while !stop.load(Ordering::Relaxed) {
                let found = db.number(&query)?;
                ensure!(found == ROWS, "{query}: {found}");
                scans.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let look = &look;
            let running: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(move || look(client))).collect();
            let killed = (0..KILLS).try_for_each(|_| {
                let before = scans.load(Ordering::Relaxed);
                wait_until("all read", PATIENCE, || {
                    Ok(scans.load(Ordering::Relaxed) > before + 40
                        || running.iter().any(|client| client.is_finished()))
                })?;
                bed.engine.kill_and_restart().map(drop)
            });
            stop.store(true, Ordering::Relaxed);
            let ended = running.into_iter().map(|client| client.join().unwrap());
            ended.collect::<Result<Vec<()>>>()?;
            killed
        })?;
        ensure!(reads(&bed, "five").is_some_and(|read| read > 1_000.0), "it read directly");
        bed.check_pool()
    })();
    with_log(&bed.engine, ran).unwrap();
}

#[test]
fn only_vdbs_of_one_owner_on_one_dsource_share_memory_and_none_can_write_it() {
    let bed = usual();
    for name in ["ann", "bob"] {
        bed.engine
            .command(["user", "add", name, "--role", "developer", "--parent", "prod"])
            .unwrap();
    }
    let [a1, a2, b1] = [("a1", "ann"), ("a2", "ann"), ("b1", "bob")].map(|(vdb, owner)| {
        let token = bed.engine.command(["token", "create", "--user", owner]).unwrap();
        let file = bed.scratch.path().join(owner);
        std::fs::write(&file, token["token"].as_str().unwrap()).unwrap();
        let file = file.to_str().unwrap();
        // Only who owns it is told the password.
        let vdb = bed.provision(vdb, "prod", &["--token-file", file]).unwrap();
        let database = Database::connect(&vdb.uri).unwrap();
        ["frames", "table"]
            .map(|memory| mapped(&database, &format!("memfd:offshoot-{memory}")).unwrap())
    });
    let ([a1, t1], [a2, t2], [b1, _]) = (a1, a2, b1);
    assert_eq!(a1.len(), 1, "{a1:?}");
    assert_eq!(a1, a2);
    assert!(b1.len() == 1 && b1.is_disjoint(&a1), "{b1:?} {a1:?}");
    assert!(a1.iter().all(|(_, rights)| rights == "r--s"), "{a1:?}");
    assert!(!t1.is_empty() && t1.is_disjoint(&t2));
}

#[test]
fn servers_that_are_not_kept_apart_ask_for_all() {
    let bed = bed(&["--direct-size", SIZE, "--unconfined"], find_newest().unwrap());
    bed.provision("dev", "prod", &[]).unwrap();
    load(&bed, "dev", &["--select-only", "--time=1"]).unwrap();
    assert_eq!(mapped(&bed.open("dev").unwrap(), "memfd:offshoot").unwrap(), BTreeSet::new());
}

mod needs_postgres_16 {
    use super::*;

    #[test]
    fn version_16_reads_without_asking() {
        reads_without_asking(16);
    }
}

mod needs_postgres_18 {
    use super::*;

    /// It reads several blocks at a time, in processes of its own.
    #[test]
    fn version_18_reads_without_asking() {
        reads_without_asking(18);
    }
}

fn reads_without_asking(major: u32) {
    let bed = bed(&["--direct-size", SIZE], other_server(major));
    bed.provision("dev", "prod", &[]).unwrap();
    let wanted = sums(&bed.source.connect("postgres").unwrap()).unwrap();
    for _ in 0..3 {
        assert_eq!(sums(&bed.open("dev").unwrap()).unwrap(), wanted);
    }
    load(&bed, "dev", &["--time=2"]).unwrap();
    assert!(reads(&bed, "dev").unwrap() > 1_000.0);
    bed.check_pool().unwrap();
}
