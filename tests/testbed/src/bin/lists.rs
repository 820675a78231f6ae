//! How fast the ledger and the lists answer with many snapshots and VDBs.
//!
//! `cargo run --release -p offshoot-testbed --bin lists -- 10000 1000`: this many snapshots and VDBs, with the binary
//! to ask in `OFFSHOOT_BIN`. A linked dSource gets them while no engine runs, from the store and the catalog
//! themselves: through jobs that prove each snapshot it would take hours. Everything is asked for through the API.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use offshoot_catalog::Catalog;
use offshoot_client::{Client, Target};
use offshoot_dataset::{Dataset, Ino, NewInode, Store, StoreOptions};
use offshoot_domain::{
    Dsource, Opened, Owner, Parent, Policy, Position, Readiness, Snapshot, SnapshotKind, TiesCut,
    Timeflow, Timings, Vdb, VdbState,
};
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock};
use offshoot_testbed::{Testbed, wait_until};
use offshoot_types::SnapshotId;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Blocks of the file that changes between two snapshots, and how many of them do.
const FILE_BLOCKS: u64 = 16_384;
const CHANGES: u64 = 20;
/// What an answer may take, in milliseconds.
const GOAL_MS: f64 = 100.0;

fn main() -> ExitCode {
    offshoot_rig::clean_on_signal();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lists: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let number = |index: usize, default: u64| match std::env::args().nth(index) {
        Some(text) => text.parse().context("a number of snapshots, and one of VDBs"),
        None => Ok(default),
    };
    let (snapshots, vdbs) = (number(1, 10_000)?, number(2, 1_000)?);
    let mut bed = Testbed::start()?;
    bed.link("prod")?;
    let first = bed.dsource("prod")?.snapshots.into_iter().next().context("a first snapshot")?;
    bed.wait_ready(&first)?;
    bed.engine.command(["dsource", "pause", "prod"])?;
    bed.engine.stop()?;
    let made = seconds("made", || fill(&bed, snapshots, vdbs))?;
    seconds("engine started", || bed.engine.restart())?;
    let client = Client::new(Target::Pool { dir: bed.engine.pool().to_owned(), token_file: None })?;
    seconds("ledger complete", || {
        wait_until("the ledger knows all", Duration::from_secs(3_600), || {
            Ok(client.ledger(None)?.objects.iter().all(|entry| entry.as_of.is_some()))
        })
    })?;
    measure(&bed, &client, &made)
}

fn seconds<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = SystemClock.elapsed();
    let result = work()?;
    println!("{what:<32} {:>9.1} s", (SystemClock.elapsed() - began).as_secs_f64());
    Ok(result)
}

fn measure(bed: &Testbed, client: &Client, made: &[SnapshotId]) -> Result<()> {
    let time = |what: &str, ask: &dyn Fn() -> Result<usize>| -> Result<()> {
        let mut samples = Vec::new();
        for _ in 0..15 {
            let began = SystemClock.elapsed();
            ensure!(ask()? > 0, "an answer");
            samples.push((SystemClock.elapsed() - began).as_secs_f64() * 1e3);
        }
        samples.sort_by(f64::total_cmp);
        let mark = if samples[7] <= GOAL_MS { "" } else { "MISSED" };
        println!("{what:<32} {:>9.1} ms, at most {:.1} {mark}", samples[7], samples[14]);
        Ok(())
    };
    let some: Vec<String> =
        made.iter().step_by(made.len().div_ceil(50)).map(ToString::to_string).collect();
    let one = made[made.len() / 2];
    let ask_all = || {
        time("ledger", &|| Ok(client.ledger(None)?.objects.len()))?;
        time("ledger of the dSource", &|| Ok(client.ledger(Some("prod"))?.objects.len()))?;
        time("ledger of a snapshot", &|| Ok(client.ledger(Some(&one.to_string()))?.objects.len()))?;
        time("snapshot list", &|| Ok(client.list_snapshots(None)?.snapshots.len()))?;
        time("snapshot show", &|| Ok(client.show_snapshot(one)?.object.len()))?;
        time("vdb list", &|| Ok(client.list_vdbs()?.vdbs.len()))?;
        time("vdb show", &|| Ok(client.show_vdb("v1")?.name.len()))?;
        time("dsource show", &|| Ok(client.show_dsource("prod")?.snapshots.len()))?;
        time("status", &|| Ok(client.status()?.engine_version.len()))
    };
    ask_all()?;
    time("snapshot list, command line", &|| {
        let list: offshoot_api::SnapshotList = bed.engine.ask(["snapshot", "list"])?;
        Ok(list.snapshots.len())
    })?;
    time("ledger --delete of 50", &|| Ok(client.ledger_deletion(&some)?.objects.len()))?;
    println!("after a snapshot was deleted:");
    let last = made[made.len() - 1].to_string();
    bed.engine.command(["snapshot", "delete", &last])?;
    ask_all()
}

/// Adds snapshots to `prod`, and VDBs of them; returns the snapshots' ids.
fn fill(bed: &Testbed, snapshots: u64, vdbs: u64) -> Result<Vec<SnapshotId>> {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(bed.engine.pool())?);
    let store = Store::open(disk, &StoreOptions::default(), Arc::new(SystemClock))?;
    let catalog = bed.catalog()?;
    let prod: Dsource = catalog.find_named("prod")?.context("prod is linked")?;
    let made = make_snapshots(&store, &catalog, &prod, snapshots)?;
    let now = Timestamp::now();
    for number in 0..vdbs {
        let snapshot = made[(number * made.len() as u64 / vdbs) as usize];
        let dataset = store.clone_snapshot(snapshot)?;
        let id = catalog.allocate::<Vdb>()?;
        let timeflow = Timeflow {
            id: catalog.allocate::<Timeflow>()?,
            owner: Owner::Vdb(id),
            dataset: Some(dataset),
            ..template(&catalog, &prod)?
        };
        let vdb = Vdb {
            id,
            name: format!("v{number}").parse()?,
            state: VdbState::Stopped,
            problem: None,
            connector: prod.connector.clone(),
            parent: Parent { owner: prod.id.into(), name: prod.name.clone() },
            source_identity: prod.identity.clone(),
            moment: Some(Opened { snapshot, log: Default::default(), time: now }),
            port: 20_000 + number as u16,
            gateway: None,
            slept: false,
            user: "offshoot".to_owned(),
            server_version: prod.server_version.clone(),
            settings: Default::default(),
            refresh_keeps: Default::default(),
            policy: Policy::of_vdb(),
            memory_bytes: None,
            keep_source_logins: false,
            superuser: false,
            keep_foreign_servers: false,
            exposure: None,
            reaches: Vec::new(),
            certificate: String::new(),
            ties: TiesCut::default(),
            owner: None,
            warm: false,
            care: offshoot_domain::Care::default(),
            dataset: Some(dataset),
            timeflow: Some(timeflow.id),
            created_at: now,
            hooks: std::collections::BTreeMap::new(),
            hook_failure: None,
            timings: Timings::default(),
        };
        catalog.transaction(|tx| tx.put(&timeflow).and_then(|()| tx.put(&vdb)))?;
    }
    store.close()?;
    Ok(made)
}

/// The dSource's timeflow, as others are like it.
fn template(catalog: &Catalog, prod: &Dsource) -> Result<Timeflow> {
    Ok(catalog.get(prod.timeflow.context("prod has a timeflow")?)?)
}

fn make_snapshots(
    store: &Store,
    catalog: &Catalog,
    prod: &Dsource,
    count: u64,
) -> Result<Vec<SnapshotId>> {
    let (staging, timeflow) =
        prod.staging_dataset.zip(prod.timeflow).context("prod is complete")?;
    let dataset = store.dataset(staging)?;
    let file = dataset.create(Ino::ROOT, b"many", &NewInode::file(0o600))?.ino;
    let now = Timestamp::now();
    let position = prod.synced_to.unwrap_or(Position { log: Default::default(), time: now });
    let mut random = 7_u64;
    let mut made = Vec::new();
    let mut records = Vec::new();
    for index in 0..count {
        change(&dataset, file, if index == 0 { FILE_BLOCKS } else { CHANGES }, &mut random)?;
        let id = store.snapshot(staging)?;
        made.push(id);
        records.push(Snapshot {
            id,
            owner: prod.id.into(),
            timeflow,
            position,
            replay_from: position.log,
            epoch: 1,
            // Retention leaves these alone.
            kind: SnapshotKind::Manual,
            taken_at: now,
            readiness: Readiness::Ready { image: id, proven: false },
            unchecked: Vec::new(),
        });
    }
    catalog.transaction(|tx| records.iter().try_for_each(|one| tx.put(one)))?;
    Ok(made)
}

/// Writes new content to random blocks.
fn change(dataset: &Dataset, file: Ino, blocks: u64, random: &mut u64) -> Result<()> {
    let mut block = vec![3; 8192];
    for _ in 0..blocks {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        block[..8].copy_from_slice(&random.to_le_bytes());
        dataset.write(file, (*random >> 20) % FILE_BLOCKS * 8192, &block)?;
    }
    Ok(())
}
