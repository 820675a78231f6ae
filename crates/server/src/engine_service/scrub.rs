//! Scrubs and damage as the API shows them.

use super::{job_state, ledger_kind};
use offshoot_api as api;
use offshoot_engine::{BlockHolder, DamagedBlock, ScrubReport, ScrubView};

pub(super) fn report(report: ScrubReport) -> api::ScrubReport {
    api::ScrubReport {
        scrub: report.scrub.map(scrub),
        damage: report.damage.into_iter().map(damaged_block).collect(),
    }
}

pub(super) fn scrub(view: ScrubView) -> api::Scrub {
    api::Scrub {
        job: view.job,
        state: job_state(view.state),
        bytes_per_s: view.bytes_per_s,
        started_at: view.started_at,
        ended_at: view.ended_at,
        done_bytes: view.progress.bytes,
        total_bytes: view.progress.total,
        blocks: view.progress.blocks,
        damaged_blocks: view.progress.damaged,
        healed_blocks: view.progress.healed,
    }
}

/// A damaged block.
pub(crate) fn damaged_block(block: DamagedBlock) -> api::DamagedBlock {
    let stored = (block.segment != 0).then_some(block.segment);
    api::DamagedBlock {
        block: block.hash.to_string(),
        segment: stored,
        segment_offset: stored.map(|_| block.offset),
        message: block.detail,
        since: block.since,
        holders: block.holders.map(|holders| holders.into_iter().map(holder).collect()),
        more_holders: block.more,
    }
}

fn holder(holder: BlockHolder) -> api::BlockHolder {
    let place = holder.file.as_ref().map(|file| (file.offset, file.len));
    api::BlockHolder {
        object: holder.object,
        kind: holder.key.map(ledger_kind),
        of: holder.of,
        path: holder.file.map(|file| file.path),
        offset: place.map(|(offset, _)| offset),
        len: place.map(|(_, len)| len),
    }
}
