//! VDBs of several sources at one moment: all of them, or none.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use offshoot_api::{Group, Vdb, VdbGroup, VdbList, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Source, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, wait_until, with_log};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn options() -> SourceOptions {
    SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] }
}

/// Two servers that are sources, as a group.
struct Pair {
    bed: Testbed,
    other: Source,
}

fn start() -> Pair {
    let bed = Testbed::with(options()).unwrap();
    let other = Source::start(&bed.scratch, options()).unwrap();
    bed.link("shop").unwrap();
    bed.link_as("orders", &other.link_uri(), other.link_password()).unwrap();
    bed.engine.command(["group", "create", "release", "--members", "shop,orders"]).unwrap();
    Pair { bed, other }
}

/// Writes 1, 2, 3, … to the first source and then to the second: at every moment the first shows the same, or one more.
struct Counter {
    stop: Arc<AtomicBool>,
    last: Arc<AtomicI64>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Counter {
    fn start(pair: &Pair) -> Counter {
        let (stop, last) = (Arc::new(AtomicBool::default()), Arc::new(AtomicI64::default()));
        let (told, written) = (stop.clone(), last.clone());
        let uris = [&pair.bed.source, &pair.other].map(|one| one.superuser_uri("postgres"));
        let thread = std::thread::spawn(move || count(&uris, &told, &written));
        Counter { stop, last, thread: Some(thread) }
    }

    /// Waits until a value is in both sources.
    fn wait_for(&self, value: i64) -> Result<()> {
        wait_until(
            "a value is written",
            PATIENCE,
            || Ok(self.last.load(Ordering::Acquire) >= value),
        )
    }

    fn last(&self) -> i64 {
        self.last.load(Ordering::Acquire)
    }

    fn end(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.take().context("a thread")?.join();
        ended.map_err(|_| anyhow::anyhow!("the writer panicked"))?
    }
}

fn count(uris: &[String; 2], stop: &AtomicBool, last: &AtomicI64) -> Result<()> {
    let sources = [Database::connect(&uris[0])?, Database::connect(&uris[1])?];
    let mut value = last.load(Ordering::Acquire);
    while !stop.load(Ordering::Acquire) {
        value += 1;
        for source in &sources {
            source.execute(&format!("UPDATE tick_now SET value = {value}"))?;
        }
        last.store(value, Ordering::Release);
        SystemClock.sleep(Duration::from_millis(3));
    }
    Ok(())
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemClock.now()).unwrap()
}

fn value(vdb: &Vdb) -> Result<i64> {
    Database::connect(&vdb.uri)?.number("SELECT value FROM tick_now")
}

/// What the VDBs show, which must be of one moment: the clocks of both sources are one.
fn of_one_moment(group: &VdbGroup) -> Result<i64> {
    let [shop, orders] = &group.vdbs[..] else { anyhow::bail!("two VDBs: {group:?}") };
    ensure!((shop.parent.as_str(), orders.parent.as_str()) == ("shop", "orders"), "{group:?}");
    let (first, second) = (value(shop)?, value(orders)?);
    ensure!((0..=1).contains(&(first - second)), "{first} and {second} at {:?}", group.moment);
    Ok(second)
}

fn vdb_names(bed: &Testbed) -> Result<Vec<String>> {
    let list: VdbList = bed.engine.ask(["vdb", "list"])?;
    Ok(list.vdbs.into_iter().map(|vdb| vdb.name).collect())
}

fn group(bed: &Testbed, command: &[&str]) -> Result<VdbGroup> {
    bed.engine.ask([&["group"], command].concat())
}

#[test]
fn vdbs_of_a_group_are_of_one_moment() {
    let pair = start();
    let counter = Counter::start(&pair);
    with_log(&pair.bed.engine, one_moment(&pair.bed, &counter)).unwrap();
    counter.end().unwrap();
}

fn one_moment(bed: &Testbed, counter: &Counter) -> Result<()> {
    counter.wait_for(20)?;
    let before = counter.last();
    let dev = group(bed, &["provision", "dev", "--group", "release", "--memory", "256MiB"])?;
    ensure!(of_one_moment(&dev)? >= before, "the latest has what was acknowledged before");
    ensure!(dev.vdbs.iter().map(|vdb| vdb.name.as_str()).eq(["dev-shop", "dev-orders"]));
    ensure!(dev.vdbs.iter().all(|vdb| vdb.memory_bytes == Some(256 << 20)), "{dev:?}");
    let moment = dev.moment.context("a moment")?;
    for ago in [400, 150] {
        let at = (moment - Duration::from_millis(ago)).to_string();
        let name = format!("past-{ago}");
        let past = group(bed, &["provision", &name, "--group", "release", "--at", &at])?;
        ensure!(of_one_moment(&past)? <= of_one_moment(&dev)?, "{past:?}");
        bed.engine.command(["group", "delete", &name])?;
    }
    clocks_and_passwords(bed)?;
    refusals(bed)?;
    midway(bed)?;
    let marked = of_one_moment(&dev)?;
    bed.engine.command(["group", "bookmark", "dev", "--as", "then"])?;
    counter.wait_for(counter.last() + 20)?;
    let later = group(bed, &["refresh", "dev", "--latest"])?;
    ensure!(of_one_moment(&later)? > marked && later.moment > dev.moment, "{later:?}");
    for vdb in &later.vdbs {
        Database::connect(&vdb.uri)?.execute("UPDATE tick_now SET value = -1")?;
    }
    let back = group(bed, &["rewind", "dev", "--bookmark", "then"])?;
    ensure!(of_one_moment(&back)? == marked && back.moment.is_none(), "{back:?}");
    let stopped = group(bed, &["stop", "dev"])?;
    ensure!(stopped.vdbs.iter().all(|vdb| vdb.state == VdbState::Stopped), "{stopped:?}");
    ensure!(of_one_moment(&group(bed, &["start", "dev"])?)? == marked);
    bed.engine.command(["group", "delete", "dev"])?;
    ensure!(vdb_names(bed)?.is_empty(), "{:?}", vdb_names(bed)?);
    bed.engine.command(["group", "delete", "release"])?;
    bed.engine.command(["dsource", "unlink", "orders"])?;
    Ok(())
}

/// One VDB cannot be opened when another one is open already: both are what they were.
fn midway(bed: &Testbed) -> Result<()> {
    let before = group(bed, &["show", "dev"])?;
    let shown = of_one_moment(&before)?;
    let stopped = group(bed, &["stop", "dev"])?;
    let taken = TcpListener::bind(("127.0.0.1", stopped.vdbs[1].port))?;
    let refused = bed.refused(&["group", "refresh", "dev"]);
    ensure!(
        refused.message.contains("dev-orders") || refused.message.contains("port"),
        "{refused}"
    );
    drop(taken);
    let same = group(bed, &["show", "dev"])?;
    ensure!(same.vdbs.iter().all(|vdb| vdb.state == VdbState::Stopped), "{same:?}");
    ensure!(same.moment == before.moment, "{same:?}");
    ensure!(of_one_moment(&group(bed, &["start", "dev"])?)? == shown);
    Ok(())
}

fn clocks_and_passwords(bed: &Testbed) -> Result<()> {
    let shown: Group = bed.engine.ask(["group", "show", "release"])?;
    for member in &shown.members {
        let skew = member.clock_skew_ms.with_context(|| format!("a skew: {member:?}"))?;
        // It is the same clock; the machine may be busy.
        ensure!(skew.abs() < 1_000, "{member:?}");
    }
    ensure!(shown.warnings.is_empty() && shown.latest.is_some(), "{shown:?}");
    let dev = group(bed, &["show", "dev"])?;
    ensure!(dev.members.iter().all(|one| one.clock_skew_ms.is_some()), "{dev:?}");
    let listed = bed.engine.command(["group", "list"])?.to_string();
    for vdb in &dev.vdbs {
        let password = vdb.uri.split(['@']).next().and_then(|login| login.rsplit(':').next());
        let password = password.context("a password")?;
        ensure!(password.len() > 8 && !listed.contains(password), "{listed}");
    }
    Ok(())
}

fn refusals(bed: &Testbed) -> Result<()> {
    let alone = bed.refused(&["vdb", "delete", "dev-shop"]);
    ensure!(alone.hint.contains("offshoot group delete dev"), "{alone}");
    let member = bed.refused(&["dsource", "unlink", "shop"]);
    ensure!(member.message.contains("'release'"), "{member}");
    for taken in ["release", "dev", "dev-shop", "shop"] {
        let refused = bed.refused(&["group", "create", taken, "--members", "shop,orders"]);
        ensure!(refused.code == "already_exists", "{refused}");
        let refused = bed.refused(&["vdb", "provision", taken, "--from", "shop"]);
        ensure!(refused.code == "already_exists", "{refused}");
    }
    let unknown = bed.refused(&["group", "create", "more", "--members", "shop,nothing"]);
    ensure!(unknown.message.contains("'nothing'"), "{unknown}");
    let few = bed.refused(&["group", "create", "more", "--members", "shop"]);
    ensure!(few.code == "invalid_input", "{few}");
    let old = bed.refused(&[
        "group",
        "provision",
        "old",
        "--group",
        "release",
        "--at",
        "2001-01-01T00:00:00Z",
    ]);
    ensure!(old.message.contains("first moment kept"), "{old}");
    bed.engine.command(["dsource", "pause", "orders"])?;
    for command in [&["provision", "late", "--group", "release"][..], &["refresh", "dev"]] {
        let paused = bed.refused(&[&["group"], command].concat());
        ensure!(paused.message.contains("'orders' is paused"), "{paused}");
    }
    bed.engine.command(["dsource", "resume", "orders"])?;
    Ok(())
}

#[test]
fn where_one_member_lacks_the_moment_nothing_is_made_nor_changed() {
    let mut pair = start();
    let counter = Counter::start(&pair);
    counter.wait_for(20).unwrap();
    group(&pair.bed, &["provision", "dev", "--group", "release"]).unwrap();
    counter.wait_for(counter.last() + 20).unwrap();
    counter.end().unwrap();
    pair.other.kill_server();
    let result = lacking(&pair.bed);
    with_log(&pair.bed.engine, result).unwrap();
}

fn lacking(bed: &Testbed) -> Result<()> {
    let own = "CREATE TABLE own AS SELECT 1 AS n";
    let dev = group(bed, &["show", "dev"])?;
    for vdb in &dev.vdbs {
        Database::connect(&vdb.uri)?.execute(own)?;
    }
    let at = now().to_string();
    for command in [
        &["provision", "late", "--group", "release", "--at", &at][..],
        &["refresh", "dev", "--at", &at],
    ] {
        let lacking = bed.refused(&[&["group"], command].concat());
        let said = lacking.message.contains("'orders'") && lacking.message.contains("last moment");
        ensure!(said, "{lacking}");
    }
    ensure!(vdb_names(bed)? == ["dev-orders", "dev-shop"], "{:?}", vdb_names(bed)?);
    let same = group(bed, &["show", "dev"])?;
    ensure!(same.moment == dev.moment, "{same:?}");
    for vdb in &same.vdbs {
        ensure!(Database::connect(&vdb.uri)?.number("SELECT n FROM own")? == 1, "{vdb:?}");
    }
    // The latest of all is the last that the silent one had.
    let latest = group(bed, &["provision", "late", "--group", "release"])?;
    of_one_moment(&latest)?;
    let refreshed = group(bed, &["refresh", "dev"])?;
    ensure!(of_one_moment(&refreshed)? >= 20, "{refreshed:?}");
    Ok(())
}
