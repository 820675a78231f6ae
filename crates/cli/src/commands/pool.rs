//! `offshoot pool …` and `offshoot status`

use super::{Session, scrub, serve};
use crate::args::{PoolCommand, TargetArgs};
use crate::output::{Fields, Output, or_dash, size, table, word};
use crate::target;
use offshoot_api::{
    CacheStatus, Ledger, LedgerEntry, PoolCheck, PoolEncryption, PoolStatus, Status, Survival,
    Warning,
};
use offshoot_types::{ErrorKind, Failure};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs one command.
pub fn run(session: &Session, command: PoolCommand) -> Result<(), Failure> {
    match command {
        PoolCommand::Status => pool_status(session),
        PoolCommand::Ledger { object, delete } => {
            let ledger = match delete.is_empty() {
                true => session.client.ledger(object.as_deref())?,
                false => session.client.ledger_deletion(&delete)?,
            };
            session.output.print(&ledger, ledger_text);
            Ok(())
        }
        // Their findings decide the exit code, so they run elsewhere.
        PoolCommand::Check { .. } | PoolCommand::Scrub(_) => Ok(()),
        PoolCommand::Reclaim(args) => {
            let job = session.client.reclaim_pool()?;
            session.follow(job, args, |_| pool_status(session))
        }
    }
}

fn ledger_text(ledger: &Ledger) -> String {
    let heads = [
        "object",
        "kind",
        "of",
        "logical",
        "stored",
        "exclusive",
        "shared",
        "pinned",
        "if deleted",
    ];
    let mut text = table(&heads, ledger.objects.iter().map(ledger_row).collect());
    if let Some(freed) = ledger.freed_if_deleted_bytes {
        text.push_str(&format!(
            "\ndeleting all of them gives back {} ({freed} bytes)\n",
            size(freed)
        ));
    }
    text
}

fn ledger_row(entry: &LedgerEntry) -> Vec<String> {
    let mark = if entry.current { "" } else { "~" };
    let known = |bytes: Option<u64>| or_dash(bytes.map(|bytes| format!("{mark}{}", size(bytes))));
    vec![
        entry.object.clone(),
        word(&entry.kind),
        or_dash(entry.of.clone()),
        size(entry.logical_bytes),
        known(entry.stored_bytes),
        known(entry.exclusive_bytes),
        known(entry.shared_bytes),
        known(entry.pinned_bytes),
        known(entry.freed_if_deleted_bytes),
    ]
}

/// `offshoot pool check`: without an engine; what it finds decides the exit code.
pub fn check(
    target: &TargetArgs,
    secret_key: Option<PathBuf>,
    output: Output,
) -> Result<ExitCode, Failure> {
    if target.server.is_some() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            "a check reads the pool's files itself; --server names an engine",
            "run it on the engine's host, with --pool, while the engine is stopped",
        ));
    }
    let mut told = 0;
    let mut tell = |done: u64, total: u64| {
        let tenth = done * 10 / total.max(1);
        if !output.json && tenth > told {
            told = tenth;
            eprintln!("{} of {} verified", size(done), size(total));
        }
    };
    let report = offshoot_server::check_pool(
        &target::pool_dir(target)?,
        serve::key_file(secret_key),
        &mut tell,
    )?;
    output.print(&report, check_text);
    Ok(if report.findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(crate::output::FAILED)
    })
}

fn check_text(report: &PoolCheck) -> String {
    let mut text = Fields::default()
        .add("verified", format!("{}, {} blocks", size(report.bytes), report.blocks))
        .add("datasets", report.datasets)
        .add("snapshots", report.snapshots)
        .add("inodes", report.inodes)
        .add("log records", report.log_records)
        .add("findings", report.findings.len())
        .text();
    for finding in &report.findings {
        text.push_str(&format!("{}: {}\n", finding.object, finding.message));
    }
    text.push_str(&scrub::damage_text(&report.damage));
    text
}

fn pool_status(session: &Session) -> Result<(), Failure> {
    session.output.print(&session.client.pool_status()?, |pool| {
        cache_fields(pool_fields(Fields::default(), pool), &pool.cache).text()
    });
    Ok(())
}

/// `offshoot status`
pub fn engine_status(session: &Session) -> Result<(), Failure> {
    session.output.print(&session.client.status()?, status_text);
    Ok(())
}

fn listens_on(status: &Status) -> String {
    match status.socket.as_str() {
        "" => status.listen.clone(),
        socket => format!("{}, {socket}", status.listen),
    }
}

fn status_text(status: &Status) -> String {
    let fields = Fields::default()
        .add("engine", format!("offshoot {}, pid {}", status.engine_version, status.pid))
        .add("listens on", listens_on(status))
        .add_some("certificate", status.tls_fingerprint.as_ref())
        .add("started at", status.started_at)
        .add("dSources", status.dsources)
        .add("VDBs", format!("{}, {} running", status.vdbs, status.vdbs_running))
        .add("active jobs", status.jobs_active)
        .add("VDBs outlive the engine", survival_text(status.survival))
        .add("pool", &status.pool)
        .add("last scrub", status.last_scrub.as_ref().map_or("none".to_owned(), scrub::line));
    let fields = pool_fields(fields, &status.pool_status);
    let mut text = cache_fields(fields, &status.cache).add("faults", status.faults.len()).text();
    for fault in &status.faults {
        text.push_str(&format!("\n{} {}: {}\n", fault.time, fault.object, fault.message));
        if !fault.hint.is_empty() {
            text.push_str(&format!("  hint: {}\n", fault.hint));
        }
    }
    for warning in &status.warnings {
        let Warning { object, message, hint } = warning;
        text.push_str(&format!("\nwarning, {object}: {message}\n  hint: {hint}\n"));
    }
    text
}

fn survival_text(survival: Survival) -> &'static str {
    match survival {
        Survival::Ready => "yes",
        Survival::NoKeeper => "no: the keeper does not run, see run/log/keeper.log in the pool",
        Survival::OldKernel => "no: the kernel is older than 6.9",
    }
}

fn pool_fields(fields: Fields, pool: &PoolStatus) -> Fields {
    fields
        .add("capacity", size(pool.capacity_bytes))
        .add("used", size(pool.used_bytes))
        .add("free", size(pool.free_bytes))
        .add("logical size", size(pool.logical_bytes))
        .add("live", size(pool.live_bytes))
        .add("compression", format!("{:.2}×", pool.compression_ratio))
        .add("deduplication", format!("{:.2}×", pool.dedup_ratio))
        .add("zeros saved", size(pool.zero_saved_bytes))
        .add("encryption", encryption(pool.encryption.as_ref()))
}

fn encryption(of: Option<&PoolEncryption>) -> String {
    of.map_or("off".to_owned(), |of| format!("{}, key {}", of.cipher, of.key_id))
}

fn cache_fields(fields: Fields, cache: &CacheStatus) -> Fields {
    let (used, all) = (size(cache.used_bytes), size(cache.size_bytes));
    let hits = format!("{:.1} % of {}", cache.hit_ratio * 100.0, cache.hits + cache.misses);
    fields.add("cache", format!("{used} of {all}, {} blocks", cache.blocks)).add("cache hits", hits)
}
