//! What a VDB still gets while another does all it can.

use super::engine_options;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, paired_ratio};
use anyhow::{Context, Result};
use offshoot_api::Vdb;
use offshoot_os::cgroup::Group;
use offshoot_os::process::Child;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::path::Path;
use std::time::Duration;

/// How long the loud VDB is loud before the other is measured.
const LEAD: Duration = Duration::from_secs(3);

/// How long sessions that were ended may take.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Writes without end: new tables, each written twice, and a checkpoint that flushes them.
const BULK: &str = "DROP TABLE IF EXISTS bulk_:client_id;\n\
    CREATE TABLE bulk_:client_id AS SELECT g, repeat(md5(g::text), 20) AS filler \
    FROM generate_series(1, 50000) AS g;\n\
    UPDATE bulk_:client_id SET filler = reverse(filler);\n\
    CHECKPOINT;\n";

/// Measure what a VDB gets of the host while another does all it can
///
/// Two VDBs of one source. A few clients work in the quiet one, alone and while the loud one is read, is
/// written by many clients, or fills tables and flushes them. Its clients have a share of the processors of
/// their own, as the quiet one's have. Ratios are beside the loud one to alone.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench neighbours --scale 20 --seconds 10")]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 20)]
    scale: u32,
    /// Clients of the quiet VDB
    #[arg(long, value_name = "N", default_value_t = 4)]
    clients: u32,
    /// Clients of the loud VDB
    #[arg(long, value_name = "N", default_value_t = 40)]
    loud_clients: u32,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// Runs of each, in turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// What the loud VDB does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loud {
    Silent,
    Reads,
    Writes,
    Bulk,
}

const LOUD: [(&str, Loud); 4] = [
    ("alone", Loud::Silent),
    ("beside_reads", Loud::Reads),
    ("beside_writes", Loud::Writes),
    ("beside_bulk", Loud::Bulk),
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &CHECKPOINTS)?;
    let mut record = Record::begin("neighbours", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let quiet = stage.provision("quiet", "prod", &[])?;
    let loud = stage.provision("loud", "prod", &[])?;
    stage.engine.command(["dsource", "pause", "prod"])?;
    let bulk = stage.scratch.path().join("bulk.sql");
    std::fs::write(&bulk, BULK).context("the script of the loud VDB")?;
    for (mix, flags) in [("select_only", &["--select-only"][..]), ("tpcb_like", &[][..])] {
        let mut tps = [const { Vec::new() }; LOUD.len()];
        for (_, index) in interleaved(LOUD.len(), arguments.repeats) {
            let noise = start_loud(&stage, &loud, LOUD[index].1, arguments, &bulk)?;
            let rate = stage.pgbench(&quiet.uri, arguments.clients, arguments.seconds, flags);
            if noise.is_some() {
                drop(noise);
                silence(&loud)?;
            }
            tps[index].push(rate?);
        }
        for (index, (name, _)) in LOUD.iter().enumerate().skip(1) {
            let share = paired_ratio(&tps[index], &tps[0]);
            record.figures.at_least(format!("{mix}_{name}_to_alone"), share, 0.5);
        }
        for ((name, _), samples) in LOUD.iter().zip(tps) {
            record.figures.note(format!("{mix}_{name}_tps"), samples);
        }
    }
    Ok(record)
}

/// The clients of the loud VDB, until it is dropped.
struct Noise {
    clients: Child,
    /// None where this host has none to give.
    share: Option<Group>,
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.clients.kill_group();
        if let Some(share) = &self.share {
            let _ = share.remove();
        }
    }
}

/// The clients of the loud VDB, after they have worked for a while.
fn start_loud(
    stage: &Stage,
    loud: &Vdb,
    what: Loud,
    arguments: &Arguments,
    bulk: &Path,
) -> Result<Option<Noise>> {
    let spec = match what {
        Loud::Silent => return Ok(None),
        Loud::Reads => stage.source.pgbench_on(&loud.uri, &["--select-only"]),
        Loud::Writes => stage.source.pgbench_on(&loud.uri, &[]),
        Loud::Bulk => stage.source.pgbench_on(&loud.uri, &[]).arg("--file").arg(bulk),
    };
    let spec = spec
        .args(["--no-vacuum", "--jobs=2", "--time=100000"])
        .arg(format!("--client={}", arguments.loud_clients));
    let clients = spec.die_with_parent(true).spawn()?;
    // Not of the server's share: where sessions and clients of one group wake only each other, Linux 6.18 may keep all
    // others of the host waiting for seconds.
    let share = Group::create(&format!("offshoot-clients-{}", clients.pid())).ok();
    let noise = Noise { clients, share };
    if let Some(share) = &noise.share {
        share.share_processors().context("the clients' share of the processors")?;
        share.add(noise.clients.pid()).context("the clients' share of the processors")?;
    }
    SystemClock.sleep(LEAD);
    Ok(Some(noise))
}

/// Ends what the clients have left: sessions work on until their statements end, and what was written is flushed.
fn silence(loud: &Vdb) -> Result<()> {
    const END: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE usename = current_user AND pid <> pg_backend_pid()";
    let db = Database::connect(&loud.uri)?;
    let until = SystemClock.elapsed() + SILENCE_MAX;
    while db.number(END)? > 0 {
        anyhow::ensure!(SystemClock.elapsed() < until, "sessions of the loud VDB do not end");
        SystemClock.sleep(Duration::from_millis(100));
    }
    db.execute("CHECKPOINT")?;
    SystemClock.sleep(LEAD);
    Ok(())
}
