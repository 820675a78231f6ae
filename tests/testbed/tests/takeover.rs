//! The engine is killed or replaced while clients work in a VDB: they wait and continue.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Status, Survival};
use offshoot_os::cgroup::Group;
use offshoot_os::process::{self, Sink};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, EngineOptions, SourceOptions, Writer, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, check_pages, wait_until, with_log};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How much more memory the engine may take when memory is short, in bytes.
const SHORT_OF: u64 = 4 << 20;

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

    /// Waits for the next commits; returns whether they came.
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

/// Runs `act` while a VDB is under load for at least as many seconds, and checks that no client noticed.
fn under_load(
    bed: &mut Testbed,
    seconds: u32,
    act: impl FnOnce(&mut Testbed, &Client) -> Result<()>,
) -> Result<()> {
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
    let time = format!("--time={seconds}");
    let output = bed.scratch.path().join("pgbench.out");
    let load = bed.source.pgbench_on(&uri, &["--no-vacuum", "--client=4", &time]);
    let load = load.stdout(Sink::File(output.clone())).stderr(Sink::File(output.clone()));
    let mut load = load.die_with_parent(true).spawn()?;
    let client = Client::start(uri.clone());
    act(bed, &client)?;
    ensure!(client.goes_on(), "the client does not go on");
    let (commits, longest) = client.end()?;
    let ended = load.wait_timeout(Duration::from_secs(u64::from(60 + seconds)))?;
    let said = process::last_lines(&output, 20).join("\n");
    ensure!(ended.is_some_and(|status| status.success()), "pgbench: {ended:?}\n{said}");
    ensure!(said.contains("number of failed transactions: 0 "), "{said}");
    // On the connection from before.
    ensure!(db.text("SELECT pg_postmaster_start_time()")? == began, "the server was restarted");
    verify(bed, &db, commits)?;
    println!("{commits} commits, the longest took {} ms", longest.as_millis());
    println!("{said}");
    Ok(())
}

/// As [`with_log`], with what the VDB's server logged.
fn with_logs(bed: &Testbed, ran: Result<()>) -> Result<()> {
    with_log(&bed.engine, ran).map_err(|error| {
        let log = bed.engine.command(["vdb", "logs", "base"]);
        let log = log.map_or_else(
            |error| error.to_string(),
            |log| log["text"].as_str().unwrap_or("").into(),
        );
        error.context(format!("the VDB's log ends:\n{log}\n"))
    })
}

/// Kills the engine `kills` times, and after each five kills replaces it while it runs.
fn replace(bed: &mut Testbed, client: &Client, kills: u32) -> Result<()> {
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
    println!("{kills} kills");
    Ok(())
}

/// Makes the kernel kill the engine `times` times, because it needs more memory than its control group
/// allows.
fn run_short(bed: &mut Testbed, client: &Client, group: &Group, times: u32) -> Result<()> {
    for time in 1..=times {
        ensure!(client.goes_on(), "shortage {time}: the client does not go on");
        let killed = group.killed()?;
        // What it has counts for the group it was in: more than the limit on top of that is too much.
        group.add(bed.engine.pid().context("an engine that runs")?)?;
        ensure!(bed.engine.wait_end(PATIENCE), "shortage {time}: the engine needs no more memory");
        ensure!(group.killed()? > killed, "shortage {time}: it was not the kernel that ended it");
        bed.engine.restart().with_context(|| format!("shortage {time}"))?;
    }
    println!("{times} shortages of memory");
    Ok(())
}

/// Nothing of what outlived engines is left when the last one stops.
fn assert_ends(bed: &mut Testbed) {
    assert_eq!(bed.engine.stop().unwrap(), 0);
    assert!(bed.servers().is_empty(), "left running: {:?}", bed.servers());
    assert!(bed.scratch.mounts().is_empty());
}

fn verify(bed: &Testbed, db: &Database, commits: i64) -> Result<()> {
    let rows = db.rows("SELECT max(value), count(*), (SELECT value FROM tick_now) FROM ticks")?;
    let wanted = commits.to_string();
    ensure!(rows[0].iter().all(|held| *held == wanted), "{commits} acknowledged, {rows:?} there");
    let balanced = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts)
        = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
    ensure!(db.text(balanced)? == "t", "pgbench's books do not balance");
    check_pages(bed, &bed.vdb("base")?.uri)?;
    bed.check_pool()
}

#[test]
fn clients_do_not_notice_that_the_engine_is_killed_or_replaced() {
    let kills = std::env::var("OFFSHOOT_TEST_KILLS").map_or(5, |text| text.parse().unwrap());
    let mut bed = Testbed::start().unwrap();
    let replaced = under_load(&mut bed, 3 * kills, |bed, client| replace(bed, client, kills));
    with_logs(&bed, replaced).unwrap();
    assert_ends(&mut bed);
}

/// A page that is not there while the engine is being killed would be an I/O error in the VDB.
#[test]
fn requests_are_read_into_memory_that_is_there() {
    let mut bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    bed.provision("base", "prod", &[]).unwrap();
    let pid = bed.engine.pid().unwrap();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let threads = threads.map(|thread| thread.unwrap().path());
    let mut held = 0;
    for reader in threads.filter(|thread| reads_requests(thread)) {
        let mut buffer = None;
        // Those of the mounts of jobs end.
        wait_until("a thread waits for requests", PATIENCE, || {
            let call = std::fs::read_to_string(reader.join("syscall")).unwrap_or_default();
            buffer = waits_with(&call);
            Ok(buffer.is_some() || !reader.exists())
        })
        .unwrap();
        if let Some(buffer) = buffer {
            let bytes = held_from(pid, buffer);
            assert!(bytes >= 128 << 10, "{reader:?}: {bytes} bytes");
            held += 1;
        }
    }
    assert!(held >= 4, "{held} threads");
    assert_ends(&mut bed);
}

fn reads_requests(thread: &Path) -> bool {
    std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("fuser-"))
}

/// The address of the buffer with which a thread waits in `read`: the call, its descriptor, address and length.
fn waits_with(call: &str) -> Option<u64> {
    let mut words = call.split_whitespace().skip(2);
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let (address, length) = (number(words.next()?)?, number(words.next()?)?);
    (length > 1 << 20).then_some(address)
}

/// How many bytes from this address on are locked in the memory of a process.
fn held_from(pid: i32, address: u64) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut held = 0;
    let mut lines = maps.lines();
    while let Some(line) = lines.find(|line| range(line).is_some_and(|map| map.contains(&address)))
    {
        let end = range(line).unwrap().end;
        let locked = lines.find_map(|line| line.strip_prefix("Locked:")).unwrap();
        if locked.trim() != "0 kB" {
            held = end - address;
        }
    }
    held
}

/// `START-END …`
fn range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// Neither the pool's lock nor a port that stays the same are in its way.
#[test]
fn an_engine_started_at_once_waits_for_the_end_of_the_one_that_was_killed() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = EngineOptions::new(binary());
    // What the kernel has to take back keeps the old one.
    (options.cache_size, options.listen) =
        ("512MiB".into(), free.local_addr().unwrap().to_string());
    drop(free);
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 10, settings: vec![] };
    let mut bed = Testbed::with_engine(source, options).unwrap();
    let ran = under_load(&mut bed, 20, |bed, client| {
        for kill in 1..=5 {
            ensure!(client.goes_on(), "kill {kill}: the client does not go on");
            SystemClock.sleep(Duration::from_millis(1500 + 130 * kill));
            let took = bed.engine.kill_and_restart().with_context(|| format!("kill {kill}"))?;
            println!("kill {kill}: ready after {} ms", took.as_millis());
        }
        Ok(())
    });
    with_logs(&bed, ran).unwrap();
    assert_ends(&mut bed);
}

mod needs_memory_groups {
    use super::*;

    /// The keeper and the databases, in groups of their own as under a service manager, are not killed.
    #[test]
    #[ignore = "needs root and memory control groups"]
    fn clients_do_not_notice_that_the_engine_is_killed_for_want_of_memory() {
        let times =
            std::env::var("OFFSHOOT_TEST_SHORTAGES").map_or(2, |text| text.parse().unwrap());
        let name = format!("testbed-{}", std::process::id());
        let group = Group::create(&name).expect("a control group of its own");
        group.limit_memory(SHORT_OF).expect("a limit of memory");
        // A kernel that has none cannot forbid it either.
        let _ = group.forbid_swap();
        let mut bed = Testbed::start().unwrap();
        let ran =
            under_load(&mut bed, 5 * times, |bed, client| run_short(bed, client, &group, times));
        with_logs(&bed, ran).unwrap();
        assert_ends(&mut bed);
        // The kernel takes a moment to see that it is empty.
        wait_until("the group is removed", PATIENCE, || Ok(group.remove().is_ok())).unwrap();
    }
}

mod needs_older_binary {
    use super::*;
    use serde_json::Value;

    /// What a team makes with an engine.
    const MADE: [&str; 8] = [
        "bookmark create seeded --on base",
        "policy set base --keep-all 7d",
        "template create ci --from prod --expires 1d --label team=checkout",
        "user add eve --role developer --parent prod",
        "webhook add pager --url http://127.0.0.1:9/ --faults",
        "vdb set base --label team=checkout",
        "vdb set base --refresh-keeps settings",
        "snapshot take prod",
    ];
    /// Where it is seen.
    const LISTS: [&str; 8] = [
        "dsource list",
        "vdb list",
        "snapshot list",
        "bookmark list",
        "template list",
        "user list",
        "token list",
        "webhook list",
    ];

    /// An engine of an older version, not used yet.
    fn older_engine() -> Testbed {
        let older = std::env::var_os("OFFSHOOT_TEST_OLDER").expect("OFFSHOOT_TEST_OLDER: a binary");
        let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
        Testbed::with_engine(source, EngineOptions::new(older)).unwrap()
    }

    fn command(bed: &Testbed, line: &str) -> Result<Value> {
        Ok(bed.engine.command(line.split(' '))?)
    }

    /// As [`command`]; none where the version does not know it yet.
    fn command_if_known(bed: &Testbed, line: &str) -> Result<Option<Value>> {
        let unknown = ["unrecognized subcommand", "unexpected argument"];
        match bed.engine.command(line.split(' ')) {
            Err(error) if unknown.iter().any(|said| error.message.contains(said)) => Ok(None),
            answered => Ok(Some(answered?)),
        }
    }

    /// Makes what [`LISTS`] show, and a hook; returns a user's token.
    fn make_all(bed: &Testbed) -> Result<String> {
        for line in MADE {
            command_if_known(bed, line)?;
        }
        let hook = bed.scratch.path().join("after.sql");
        std::fs::write(&hook, "CREATE TABLE hooked AS SELECT 7 AS n")?;
        command(bed, &format!("vdb set base --hook after-refresh={}", hook.display()))?;
        let token = command(bed, "token create --user eve --expires 1d")?;
        token["token"].as_str().map(str::to_owned).context("a token")
    }

    /// The name or number of each object in each list, below the list's name.
    fn held(bed: &Testbed) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for list in LISTS {
            let Some(shown) = command_if_known(bed, list)? else { continue };
            let fields = shown.as_object().context("an object")?.values();
            let entries: Vec<&Value> = fields.filter_map(Value::as_array).flatten().collect();
            for entry in entries {
                let named = ["name", "id"].map(|field| &entry[field]);
                let named = named.iter().find(|field| !field.is_null());
                all.push(format!("{list}: {}", named.with_context(|| format!("{list}: {entry}"))?));
            }
        }
        ensure!(all.len() >= LISTS.len(), "{all:?}");
        Ok(all)
    }

    /// Nothing of what was made is gone, and all of it is of use.
    fn check_all(bed: &Testbed, made: &[String], token: &str) -> Result<()> {
        let held = held(bed)?;
        let lost: Vec<_> = made.iter().filter(|object| !held.contains(object)).collect();
        ensure!(lost.is_empty(), "lost: {lost:?}");
        let base = bed.vdb("base")?;
        ensure!(base.labels.get("team").is_some_and(|team| team == "checkout"), "{base:?}");
        offshoot_testbed::metrics(bed, Some(token))?;
        bed.provision("again", "base", &["--bookmark", "seeded"])?;
        bed.open("again")?.number("SELECT count(*) FROM pgbench_accounts")?;
        if made.contains(&"template list: \"ci\"".to_owned()) {
            command(bed, "vdb provision branch --template ci")?;
        }
        command(bed, "dsource sync prod")?;
        command(bed, "vdb refresh base")?;
        ensure!(bed.open("base")?.number("SELECT n FROM hooked")? == 7);
        bed.check_pool()
    }

    #[test]
    #[ignore = "needs an older binary"]
    fn clients_do_not_notice_an_upgrade_and_what_was_made_is_there() {
        let mut bed = older_engine();
        let mut made = (Vec::new(), String::new());
        let ran = under_load(&mut bed, 20, |bed, client| {
            let token = make_all(bed)?;
            made = (held(bed)?, token);
            bed.engine.options.binary = binary();
            bed.engine.take_over().context("the upgrade")?;
            ensure!(client.goes_on(), "the client does not go on");
            replace(bed, client, 5)
        });
        let ran = ran.and_then(|()| check_all(&bed, &made.0, &made.1));
        with_logs(&bed, ran).unwrap();
        assert_ends(&mut bed);
    }

    #[test]
    #[ignore = "needs an older binary"]
    fn what_an_older_version_left_when_it_was_stopped_is_there() {
        let mut bed = older_engine();
        bed.link("prod").unwrap();
        bed.provision("base", "prod", &[]).unwrap();
        let token = make_all(&bed).unwrap();
        let made = held(&bed).unwrap();
        assert_eq!(bed.engine.stop().unwrap(), 0);
        bed.engine.options.binary = binary();
        bed.engine.restart().unwrap();
        wait_until("it runs", PATIENCE, || Ok(bed.open("base").is_ok())).unwrap();
        let checked = check_all(&bed, &made, &token);
        with_logs(&bed, checked).unwrap();
        assert_ends(&mut bed);
    }
}
