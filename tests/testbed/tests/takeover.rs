//! The engine is killed or replaced while clients work in a VDB: they wait and go on.

use anyhow::{Context, Result, ensure};
use offshoot_api::{Status, Survival};
use offshoot_demo::{Database, Writer};
use offshoot_os::process::{self, Sink};
use offshoot_os::{Clock, SystemClock};
use offshoot_testbed::{Testbed, in_database, with_log};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A client with one connection that must never fail.
struct Client {
    stop: Arc<AtomicBool>,
    /// The last commit that was acknowledged.
    acknowledged: Arc<AtomicI64>,
    thread: JoinHandle<Result<Duration>>,
}

impl Client {
    fn start(uri: String) -> Client {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicI64::new(0));
        let (stopped, last) = (stop.clone(), acknowledged.clone());
        let thread = std::thread::spawn(move || {
            let db = Database::connect(&uri)?;
            let mut longest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let value = last.load(Ordering::Relaxed) + 1;
                let began = SystemClock.elapsed();
                db.execute(&format!(
                    "BEGIN; INSERT INTO ticks VALUES ({value});
                     UPDATE tick_now SET value = {value}; COMMIT"
                ))?;
                longest = longest.max(SystemClock.elapsed() - began);
                last.store(value, Ordering::Relaxed);
            }
            Ok(longest)
        });
        Client { stop, acknowledged, thread }
    }

    fn last(&self) -> i64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits for the next commits; whether they came.
    fn goes_on(&self) -> bool {
        let (from, deadline) = (self.last(), SystemClock.elapsed() + Duration::from_secs(60));
        while self.last() < from + 3 && SystemClock.elapsed() < deadline {
            SystemClock.sleep(Duration::from_millis(10));
        }
        self.last() >= from + 3
    }

    /// Commits that were acknowledged, and the longest that one took.
    fn end(self) -> Result<(i64, Duration)> {
        self.stop.store(true, Ordering::Relaxed);
        let longest = self.thread.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
        Ok((self.acknowledged.load(Ordering::Relaxed), longest))
    }
}

/// Kills the engine `kills` times under load, and after each five kills replaces it while it runs.
fn replace(bed: &mut Testbed, kills: u32) -> Result<()> {
    bed.link("prod")?;
    bed.provision("base", "prod", &[])?;
    // With it, what the VDB was told before is durable: from here on it outlives the engine.
    bed.snapshot("base")?;
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.survival == Survival::Ready, "{:?}", status.survival);
    let db = bed.open("base")?;
    db.execute(Writer::EMPTY)?;
    let began = db.text("SELECT pg_postmaster_start_time()")?;
    let uri = bed.vdb("base")?.uri;
    let time = format!("--time={}", 3 * kills);
    let output = bed.scratch.path().join("pgbench.out");
    let load = bed.source.pgbench_on(&uri, &["--no-vacuum", "--client=4", &time]);
    let load = load.stdout(Sink::File(output.clone())).stderr(Sink::File(output.clone()));
    let mut load = load.die_with_parent(true).spawn()?;
    let client = Client::start(uri.clone());
    for kill in 1..=kills {
        ensure!(client.goes_on(), "kill {kill}: the client does not go on");
        // Another moment of the load each time.
        SystemClock.sleep(Duration::from_millis(200 + 130 * u64::from(kill % 7)));
        bed.engine.kill()?;
        bed.engine.restart().with_context(|| format!("kill {kill}"))?;
        if kill % 5 == 0 {
            ensure!(client.goes_on(), "kill {kill}: the client does not go on");
            bed.engine.take_over().with_context(|| format!("replaced after kill {kill}"))?;
        }
    }
    ensure!(client.goes_on(), "the client does not go on");
    let (commits, longest) = client.end()?;
    let ended = load.wait_timeout(Duration::from_secs(u64::from(60 + 3 * kills)))?;
    let said = process::last_lines(&output, 20).join("\n");
    ensure!(ended.is_some_and(|status| status.success()), "pgbench: {ended:?}\n{said}");
    ensure!(said.contains("number of failed transactions: 0 "), "{said}");
    // On the connection from before.
    ensure!(db.text("SELECT pg_postmaster_start_time()")? == began, "the server was restarted");
    verify(bed, &db, commits)?;
    println!("{kills} kills, {commits} commits, the longest took {} ms", longest.as_millis());
    println!("{said}");
    Ok(())
}

fn verify(bed: &Testbed, db: &Database, commits: i64) -> Result<()> {
    let rows = db.rows("SELECT max(value), count(*), (SELECT value FROM tick_now) FROM ticks")?;
    let wanted = commits.to_string();
    ensure!(rows[0].iter().all(|held| *held == wanted), "{commits} acknowledged, {rows:?} there");
    let balanced = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts)
        = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
    ensure!(db.text(balanced)? == "t", "pgbench's books do not balance");
    let uri = bed.vdb("base")?.uri;
    let check = bed.source.program("pg_amcheck");
    let check = check.args(["--all", "--install-missing", "--maintenance-db"]);
    let output = process::run(&check.arg(in_database(&uri, "postgres")), Duration::from_secs(300))?;
    ensure!(output.success(), "pg_amcheck: {} {}", output.stdout_text(), output.stderr_text());
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.faults.is_empty(), "faults: {:?}", status.faults);
    Ok(())
}

#[test]
fn clients_do_not_notice_that_the_engine_is_killed_or_replaced() {
    let kills = std::env::var("OFFSHOOT_TEST_KILLS").map_or(5, |text| text.parse().unwrap());
    let mut bed = Testbed::start().unwrap();
    let replaced = replace(&mut bed, kills);
    with_log(&bed.engine, replaced).unwrap();
    // What outlived engines is stopped as cleanly as anything else.
    assert_eq!(bed.engine.stop().unwrap(), 0);
    assert!(bed.servers().is_empty(), "left running: {:?}", bed.servers());
    assert!(bed.scratch.mounts().is_empty());
}
