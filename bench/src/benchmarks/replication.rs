//! What replication sends, how fast, how far behind the peer is, and how soon it goes on when the sender is lost.

mod failback;
mod failover;
mod far;
mod lag;
mod link;
mod pair;

use crate::figures::megabytes;
use crate::record::Record;
use crate::setting::Setting;
use anyhow::{Context, Result};
use link::{Kind, Link};
use offshoot_api::Vdb;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use pair::Pair;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Bytes on the wire over those of blocks that the peer lacked, for an increment.
const WIRE_TO_CHANGED_GOAL: f64 = 1.05;
/// What a further VDB of the same dSource sends over its size.
const VDB_SHARE_GOAL: f64 = 0.02;
/// The first copy, over a plain copy of as many bytes.
const TO_RAW_GOAL: f64 = 0.6;
/// Runs where nothing has changed: those before the ones that count, and those.
const IDLE_RUNS: (u32, u32) = (3, 3);
/// What such a run may send, and how long it may take.
const IDLE_BYTES_GOAL: f64 = 10_000.0;
const IDLE_SECONDS_GOAL: f64 = 1.0;
/// 100 Mbit/s, and 80 ms there and back.
const LONG_WAY: Kind =
    Kind { name: "100mbit_80ms", bytes_per_second: 12_500_000, delay: Duration::from_millis(40) };
/// Slow links, with what of them should be used.
const LINKS: [(Kind, f64); 3] = [
    (Kind { name: "1gbit", bytes_per_second: 125_000_000, delay: Duration::ZERO }, 0.9),
    (Kind { name: "100mbit", bytes_per_second: 12_500_000, delay: Duration::ZERO }, 0.9),
    (LONG_WAY, 0.8),
];
/// How long a slow link is to be busy.
const BUSY_SECONDS: u64 = 8;
/// The least that is sent by one.
const BUSY_BYTES_MIN: u64 = 64 << 20;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Measure {
    /// What is sent, how far behind the peer is, slow links; and failovers
    All,
    /// Slow links alone
    Links,
    /// Several VDBs by a long way, by one connection and by more
    Far,
    /// What goes back after a failover, to an engine that has all but what changed since
    Failback,
    /// How soon the peer goes on when the host of the engine that sends is lost, and what it lacks then
    Failovers,
}

/// Measure what replication sends to a second engine, how fast, how far behind that is, and how soon it takes over
///
/// A source is linked and sent as a whole; then what pgbench changed, VDBs, and nothing. Beside pgbench at a fixed rate
/// commits are looked for at the peer. Slow links are between the engines, in this program: so many bytes a second, so
/// long on the way. At last engines that send a dSource and a VDB beside that load are killed with all that they run, and
/// the peer takes over at once.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(
    after_help = "Examples:\n  offshoot bench replication\n  offshoot bench replication --scale 100 --rate 1000 --seconds 120\n  \
                  offshoot bench replication --measure failovers --failovers 20\n  \
                  offshoot bench replication --measure failback --scale 1340"
)]
pub struct Arguments {
    /// What is measured
    #[arg(long, value_enum, default_value_t = Measure::All)]
    measure: Measure,
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 20)]
    scale: u32,
    /// Increments
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Length of the load before each increment, and beside continuous replication
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Transactions a second beside continuous replication and failovers
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    rate: u32,
    /// Engines that are lost
    #[arg(long, value_name = "N", default_value_t = 5)]
    failovers: u32,
    /// Without the slow links
    #[arg(long)]
    no_links: bool,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut pair = Pair::start(arguments)?;
    let mut record = Record::begin("replication", arguments, pair.stage.scratch.path())?;
    match arguments.measure {
        Measure::All => {
            transfers(&pair, arguments, &mut record)?;
            failover::measure(&pair, arguments, &mut record)?;
        }
        Measure::Links => {
            link(&pair)?;
            links(&pair, &mut record)?;
        }
        Measure::Far => {
            link(&pair)?;
            far::measure(&pair, &mut record)?;
        }
        Measure::Failback => failback::measure(&mut pair, arguments, &mut record)?,
        Measure::Failovers => failover::measure(&pair, arguments, &mut record)?,
    }
    Ok(record)
}

/// Links the dSource that is sent.
fn link(pair: &Pair) -> Result<()> {
    pair.stage.link("shop")?;
    pair.stage.ready_snapshot("shop").map(drop)
}

/// What is sent, how fast and how soon.
fn transfers(pair: &Pair, arguments: &Arguments, record: &mut Record) -> Result<()> {
    link(pair)?;
    pair.reach_by(&pair.address.to_string())?;
    pair.create("shop", &["--include", "dsource:shop"])?;
    first(pair, record)?;
    increments(pair, arguments, record)?;
    vdbs(pair, record)?;
    nothing(pair, record)?;
    lag::measure(pair, arguments.rate, arguments.seconds, record)?;
    if !arguments.no_links {
        pair.delete("shop")?;
        links(pair, record)?;
        far::measure(pair, record)?;
    }
    Ok(())
}

/// The first copy, beside a plain one of as many bytes.
fn first(pair: &Pair, record: &mut Record) -> Result<()> {
    let (sent, seconds) = pair.run("shop")?;
    let rate = megabytes(sent.sent_bytes) / seconds;
    let raw = raw_copy(pair, sent.sent_bytes)?;
    let figures = &mut record.figures;
    figures.note("first_sent_mb", megabytes(sent.sent_bytes));
    figures.note("first_mb_per_s", rate);
    figures.note("raw_copy_mb_per_s", raw);
    figures.at_least("first_to_raw_copy", rate / raw, TO_RAW_GOAL);
    Ok(())
}

/// Megabytes a second of as many bytes by TCP into a file on the same disk.
fn raw_copy(pair: &Pair, bytes: u64) -> Result<f64> {
    let path = pair.stage.scratch.path().join("raw");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let began = SystemClock.elapsed();
    let receive = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let (mut file, mut chunk) = (File::create(path)?, vec![0; 1 << 20]);
        while let count @ 1.. = stream.read(&mut chunk)? {
            file.write_all(&chunk[..count])?;
        }
        file.sync_all()
    });
    let mut stream = TcpStream::connect(address)?;
    let chunk = vec![0xa5; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(chunk.len() as u64);
        stream.write_all(&chunk[..now as usize])?;
        left -= now;
    }
    drop(stream);
    let received = receive.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    received.context("a plain copy")?;
    Ok(megabytes(bytes) / (SystemClock.elapsed() - began).as_secs_f64())
}

fn increments(pair: &Pair, arguments: &Arguments, record: &mut Record) -> Result<()> {
    let (mut ratios, mut sizes, mut took) = (Vec::new(), Vec::new(), Vec::new());
    let uri = pair.stage.source.superuser_uri("postgres");
    for _ in 0..arguments.repeats {
        pair.stage.pgbench(&uri, 4, arguments.seconds, &[])?;
        pair.settle()?;
        let (sent, seconds) = pair.run("shop")?;
        ratios.push(sent.sent_bytes as f64 / sent.changed_unique_bytes.max(1) as f64);
        sizes.push(megabytes(sent.changed_unique_bytes));
        took.push(seconds);
        eprintln!("  increment: {:.1} MB in {seconds:.1} s", megabytes(sent.sent_bytes));
    }
    let figures = &mut record.figures;
    figures.at_most("increment_wire_to_changed", ratios, WIRE_TO_CHANGED_GOAL);
    figures.note("increment_changed_mb", sizes);
    figures.note("increment_s", took);
    Ok(())
}

/// VDBs of the dSource that the peer has: hardly anything is new in them.
fn vdbs(pair: &Pair, record: &mut Record) -> Result<()> {
    let mut shares = Vec::new();
    for name in ["dev-1", "dev-2"] {
        let vdb = pair.stage.provision(name, "shop", &[])?;
        Database::connect(&vdb.uri)?.execute("CREATE TABLE mine AS SELECT 7 AS n")?;
        pair.snapshot(name)?;
        pair.create(name, &["--include", &format!("vdb:{name}")])?;
        let (sent, _) = pair.run(name)?;
        let vdb: Vdb = pair.stage.engine.ask(["vdb", "show", name])?;
        shares.push(sent.sent_bytes as f64 / vdb.logical_bytes.max(1) as f64);
        pair.delete(name)?;
        pair.stage.engine.command(["vdb", "delete", name])?;
    }
    record.figures.at_most("second_vdb_sent_to_size", shares[1], VDB_SHARE_GOAL);
    Ok(())
}

fn nothing(pair: &Pair, record: &mut Record) -> Result<()> {
    pair.settle()?;
    pair.stage.engine.command(["dsource", "pause", "shop"])?;
    for _ in 0..IDLE_RUNS.0 {
        pair.run("shop")?;
    }
    let (mut bytes, mut took) = (Vec::new(), Vec::new());
    for _ in 0..IDLE_RUNS.1 {
        let (sent, seconds) = pair.run("shop")?;
        bytes.push(sent.sent_bytes as f64);
        took.push(seconds);
    }
    record.figures.at_most("nothing_changed_bytes", bytes, IDLE_BYTES_GOAL);
    record.figures.at_most("nothing_changed_s", took, IDLE_SECONDS_GOAL);
    pair.stage.engine.command(["dsource", "resume", "shop"])?;
    Ok(())
}

fn links(pair: &Pair, record: &mut Record) -> Result<()> {
    LINKS.into_iter().try_for_each(|(kind, goal)| slow(pair, kind, goal, record))
}

/// What hardly compresses, by a slow link.
fn slow(pair: &Pair, kind: Kind, goal: f64, record: &mut Record) -> Result<()> {
    let bytes = (kind.bytes_per_second * BUSY_SECONDS).max(BUSY_BYTES_MIN);
    let db = pair.stage.source.connect("postgres")?;
    let rows = bytes / 960;
    db.execute(&format!(
        "DROP TABLE IF EXISTS noise; CREATE TABLE noise AS SELECT i, (SELECT string_agg(md5(random()::text || i || j), '') \
         FROM generate_series(1, 60) j) AS t FROM generate_series(1, {rows}) i"
    ))?;
    pair.settle()?;
    // Staging replays all of it, and makes points of it: that takes both processors, too.
    pair.stage.take_snapshot("shop")?;
    pair.rest()?;
    let link = Link::open(pair.address, kind)?;
    pair.reach_by(&link.address())?;
    pair.create("slow", &["--include", "dsource:shop"])?;
    let (sent, _) = pair.run("slow")?;
    let used = sent.bytes_per_second as f64 / kind.bytes_per_second as f64;
    eprintln!("  {}: {used:.2} of the link used", kind.name);
    record.figures.at_least(format!("{}_used_to_link", kind.name), used, goal);
    record.figures.note(format!("{}_sent_mb", kind.name), megabytes(sent.sent_bytes));
    pair.delete("slow")
}
