//! How much goes back once an engine has taken over: what has changed since, and nothing else.

use super::Arguments;
use super::pair::{Pair, RUN_MAX, address_of};
use crate::figures::megabytes;
use crate::record::Record;
use anyhow::{Context, Result, ensure};
use offshoot_api::{PeerInvitation, Replication};
use offshoot_os::{Clock, SystemClock};

/// What goes back over the size of the database.
const SHARE_GOAL: f64 = 0.015;
/// One of so many rows is changed meanwhile, all beside each other: its page, the one that it goes to and those of the index make
/// about as large a part of the pages.
const CHANGED: u64 = 300;

/// Sends the dSource, fails over, changes production, and sends it back to the engine that was lost.
pub fn measure(pair: &mut Pair, arguments: &Arguments, record: &mut Record) -> Result<()> {
    let source = pair.stage.source.connect("postgres")?;
    // So that no autovacuum changes each page later.
    source.execute("VACUUM (FREEZE, ANALYZE)")?;
    super::link(pair)?;
    pair.reach_by(&pair.address.to_string())?;
    pair.create("shop", &["--include", "dsource:shop"])?;
    let (first, first_seconds) = pair.run("shop")?;
    let size = source.number("SELECT sum(pg_database_size(oid))::int8 FROM pg_database")?;
    eprintln!("  the first copy: {:.1} MB in {first_seconds:.1} s", megabytes(first.sent_bytes));

    let (here, there) = (&mut pair.stage.engine, &pair.there);
    ensure!(here.stop()? == 0, "the engine that sends did not stop");
    there.command(["failover", "west", "--force"])?;
    let password = pair.stage.scratch.path().join("password");
    std::fs::write(&password, pair.stage.source.link_password()).context("a password's file")?;
    let file = password.display().to_string();
    there.command_within(["dsource", "set", "shop", "--password-file", &file], &[], RUN_MAX)?;
    let rows = u64::from(arguments.scale) * 100_000 / CHANGED;
    source.execute(&format!(
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid <= {rows}"
    ))?;
    there.command_within(["dsource", "sync", "shop"], &[], RUN_MAX)?;

    here.options.listen = "0.0.0.0:0".into();
    here.restart()?;
    let invited: PeerInvitation = here.ask(["peer", "invite", "--as", "east"])?;
    let address = address_of(here)?.to_string();
    there.command(["peer", "add", "west", "--address", &address, "--code", &invited.code])?;
    let include = ["--include", "dsource:shop"];
    there.command(["replication", "create", "back", "--to", "west"].iter().chain(&include))?;
    let began = SystemClock.elapsed();
    there.command_within(["replication", "run", "back"], &[], RUN_MAX)?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    let back: Replication = there.ask(["replication", "show", "back"])?;
    ensure!(back.error.is_none(), "it did not go back: {:?}", back.error);

    let figures = &mut record.figures;
    figures.note("database_mb", megabytes(size as u64));
    figures.note("first_sent_mb", megabytes(first.sent_bytes));
    figures.note("first_s", first_seconds);
    figures.note("failback_sent_mb", megabytes(back.sent_bytes));
    figures.note("failback_s", seconds);
    figures.at_most("failback_sent_to_size", back.sent_bytes as f64 / size as f64, SHARE_GOAL);
    Ok(())
}
