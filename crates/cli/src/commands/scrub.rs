//! `offshoot pool scrub`, and damage as it is shown.

use super::Session;
use crate::args::ScrubArgs;
use crate::output::{Fields, or_dash, size, word};
use offshoot_api::{BlockHolder, DamagedBlock, LedgerKind, Scrub, ScrubPool, ScrubReport};
use offshoot_types::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(session: &Session, args: &ScrubArgs) -> Result<ExitCode, Failure> {
    if args.last {
        session.output.print(&session.client.last_scrub()?, report_text);
        return Ok(ExitCode::SUCCESS);
    }
    let job = session.client.scrub_pool(&ScrubPool { bytes_per_s: args.rate })?;
    let mut sound = true;
    session.follow(job, args.job, |_| {
        let report = session.client.last_scrub()?;
        sound = report.damage.is_empty();
        session.output.print(&report, report_text);
        Ok(())
    })?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(crate::output::FAILED) })
}

/// A scrub in one line.
pub fn line(scrub: &Scrub) -> String {
    let percent = u128::from(scrub.done_bytes) * 100 / u128::from(scrub.total_bytes.max(1));
    let when = match scrub.ended_at {
        Some(ended) => format!("{} at {ended}", word(&scrub.state)),
        None => format!("{}, {percent} %, begun at {}", word(&scrub.state), scrub.started_at),
    };
    let (damaged, healed) = (scrub.damaged_blocks, scrub.healed_blocks);
    format!("{when}: {}, {damaged} damaged, {healed} healed", size(scrub.done_bytes))
}

fn report_text(report: &ScrubReport) -> String {
    let mut fields = Fields::default();
    match &report.scrub {
        None => fields = fields.add("last scrub", "none"),
        Some(scrub) => {
            let (done, total) = (size(scrub.done_bytes), size(scrub.total_bytes));
            fields = fields
                .add("job", scrub.job)
                .add("state", word(&scrub.state))
                .add("started at", scrub.started_at)
                .add("ended at", or_dash(scrub.ended_at.map(|time| time.to_string())))
                .add("verified", format!("{done} of {total}, {} blocks", scrub.blocks))
                .add("rate", format!("at most {}/s", size(scrub.bytes_per_s)))
                .add("damaged", scrub.damaged_blocks)
                .add("healed", scrub.healed_blocks);
        }
    }
    fields.add("damage known", report.damage.len()).text() + &damage_text(&report.damage)
}

/// Damaged blocks with what holds them.
pub fn damage_text(damage: &[DamagedBlock]) -> String {
    let mut text = String::new();
    for block in damage {
        let place = match (block.segment, block.segment_offset) {
            (Some(segment), Some(offset)) => format!(" in segment {segment} at byte {offset}"),
            _ => String::new(),
        };
        let why = if block.message.is_empty() { "damaged" } else { &block.message };
        text.push_str(&format!("\nblock {}{place}: {why}\n", block.block));
        match &block.holders {
            None => text.push_str("  held by: being looked up\n"),
            Some(holders) => {
                holders.iter().for_each(|holder| text.push_str(&holder_text(holder)));
            }
        }
        if block.more_holders > 0 {
            text.push_str(&format!("  and by {} more\n", block.more_holders));
        }
    }
    text
}

fn holder_text(holder: &BlockHolder) -> String {
    let object = match (holder.kind, &holder.of) {
        (Some(LedgerKind::Dsource), _) => format!("dSource {}", holder.object),
        (Some(LedgerKind::Vdb), _) => format!("VDB {}", holder.object),
        (_, Some(of)) => format!("{} of {of}", holder.object),
        (_, None) => holder.object.clone(),
    };
    match (&holder.path, holder.offset, holder.len) {
        (Some(path), Some(offset), Some(len)) => {
            format!("  held by {object}: {path}, {len} bytes at byte {offset}\n")
        }
        _ => format!("  held by {object}: names and inodes\n"),
    }
}
