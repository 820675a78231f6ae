//! Many small objects by a long way: how much sooner they are there by several connections.

use super::LONG_WAY;
use super::link::Link;
use super::pair::Pair;
use crate::record::Record;
use anyhow::Result;
use offshoot_rig::Database;

/// VDBs that are sent.
const VDBS: usize = 8;
/// Connections that are compared.
const CONNECTIONS: [u8; 3] = [1, 2, 8];
/// Runs with each number of them, in turns.
const RUNS: usize = 5;

/// Sends a few rows of each VDB, by one connection and by more of them in turns.
pub fn measure(pair: &Pair, record: &mut Record) -> Result<()> {
    let link = Link::open(pair.address, LONG_WAY)?;
    pair.reach_by(&link.address())?;
    let mut vdbs = Vec::new();
    for number in 1..=VDBS {
        let name = format!("far-{number}");
        let vdb = pair.stage.provision(&name, "shop", &[])?;
        let database = Database::connect(&vdb.uri)?;
        database.execute("CREATE TABLE mine (n bigint)")?;
        vdbs.push((name, database));
    }
    let names: Vec<String> = vdbs.iter().map(|(name, _)| format!("vdb:{name}")).collect();
    let include = names.join(",");
    let profile = |connections: u8| format!("by-{connections}");
    for connections in CONNECTIONS {
        let number = connections.to_string();
        let more = ["--include", include.as_str(), "--connections", number.as_str()];
        pair.create(&profile(connections), &more)?;
    }
    let change = || -> Result<()> {
        for (name, database) in &vdbs {
            database.execute("INSERT INTO mine SELECT generate_series(1, 100)")?;
            pair.snapshot(name)?;
        }
        Ok(())
    };
    change()?;
    pair.run(&profile(1))?;
    let mut took = CONNECTIONS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (connections, took) in CONNECTIONS.into_iter().zip(&mut took) {
            change()?;
            let (sent, seconds) = pair.run(&profile(connections))?;
            eprintln!(
                "  {VDBS} VDBs by {connections} connections: {} bytes in {seconds:.2} s",
                sent.sent_bytes
            );
            took.push(seconds);
        }
    }
    for (connections, took) in CONNECTIONS.into_iter().zip(took) {
        record.figures.note(format!("far_{VDBS}_vdbs_by_{connections}_s"), took);
        pair.delete(&profile(connections))?;
    }
    for (name, database) in vdbs {
        drop(database);
        pair.stage.engine.command(["vdb", "delete", &name])?;
    }
    Ok(())
}
