//! How long clients of VDBs wait when the engine is killed and started again at once.

use super::engine_options;
use crate::figures::millis;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use anyhow::{Context, Result, ensure};
use offshoot_os::process::Child;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long clients work between two kills.
const BETWEEN: Duration = Duration::from_secs(8);

/// Measure how long clients wait when the engine is killed and started again at once
///
/// pgbench works in the source and in each VDB. The engine is killed (kill -9) and the next one started without
/// waiting for its end. A client of each VDB measures its longest statement.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(
    after_help = "Example:\n  offshoot bench restart --scale 60 --cache-size 1GiB --kills 10"
)]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 60)]
    scale: u32,
    /// VDBs
    #[arg(long, value_name = "N", default_value_t = 2)]
    vdbs: u32,
    /// Clients of the source and of each VDB
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u32,
    /// How often the engine is killed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// A client with one connection that measures its longest statement.
struct Client {
    stop: Arc<AtomicBool>,
    /// Since the last look, in microseconds.
    longest_us: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Client {
    fn start(uri: &str) -> Result<Client> {
        let db = Database::connect(uri)?;
        db.execute("CREATE TABLE bench_ticks (n bigint); INSERT INTO bench_ticks VALUES (0)")?;
        let (stop, longest_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, longest) = (stop.clone(), longest_us.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let began = SystemClock.elapsed();
                db.execute("UPDATE bench_ticks SET n = n + 1")?;
                let took = (SystemClock.elapsed() - began).as_micros() as u64;
                longest.fetch_max(took, Ordering::Relaxed);
                SystemClock.sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        Ok(Client { stop, longest_us, thread })
    }

    fn longest_ms(&self) -> f64 {
        self.longest_us.swap(0, Ordering::Relaxed) as f64 / 1e3
    }

    fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut options = engine_options(&arguments.setting)?;
    // The same port each time, as a service has.
    let free = std::net::TcpListener::bind("127.0.0.1:0")?;
    options.listen = free.local_addr()?.to_string();
    drop(free);
    let mut stage = Stage::start(&options, arguments.scale, &CHECKPOINTS)?;
    let mut record = Record::begin("restart", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let (mut loads, mut clients) =
        (vec![load(&stage, &stage.source.superuser_uri("postgres"), arguments)?], Vec::new());
    for number in 1..=arguments.vdbs {
        let vdb = stage.provision(&format!("dev-{number}"), "prod", &[])?;
        // What it was told before is durable from here on: it outlives the engine.
        stage.engine.command(["snapshot", "take", &vdb.name])?;
        clients.push(Client::start(&vdb.uri)?);
        loads.push(load(&stage, &vdb.uri, arguments)?);
    }
    let (mut ready, mut longest) = (Vec::new(), Vec::new());
    for kill in 1..=arguments.kills {
        SystemClock.sleep(BETWEEN);
        for client in &clients {
            client.longest_ms();
        }
        let took = stage.engine.kill_and_restart().with_context(|| format!("kill {kill}"))?;
        SystemClock.sleep(BETWEEN);
        ready.push(millis(took));
        longest.extend(clients.iter().map(Client::longest_ms));
        eprintln!("kill {kill}: ready after {:.0} ms", millis(took));
    }
    for load in &mut loads {
        ensure!(load.try_wait()?.is_none(), "pgbench has ended: a client got an error");
        load.kill_group();
    }
    clients.into_iter().try_for_each(Client::end)?;
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
    let figures = &mut record.figures;
    figures.at_most("kill to ready, slowest, ms", most(&ready), 2000.0);
    figures.at_most("longest statement of a client, ms", most(&longest), 3000.0);
    figures.note("kill to ready, ms", ready);
    figures.note("longest statement around each kill, ms", longest);
    Ok(record)
}

/// pgbench without end.
fn load(stage: &Stage, uri: &str, arguments: &Arguments) -> Result<Child> {
    let spec = stage.source.pgbench_on(uri, &["--no-vacuum", "--jobs=1", "--time=100000"]);
    let spec = spec.arg(format!("--client={}", arguments.clients));
    Ok(spec.die_with_parent(true).spawn()?)
}
