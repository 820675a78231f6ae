//! Verifying a pool without an engine.

use crate::engine_service::scrub::damaged_block;
use crate::secret_keys;
use offshoot_api::{PoolCheck, PoolFinding};
use offshoot_types::Failure;
use std::path::{Path, PathBuf};

/// Verifies every structure of a pool that no engine uses, and changes nothing. `progress` gets bytes done
/// and bytes in all. `secret_key`: the file with the key of an encrypted pool, if it is not in the usual places.
///
/// # Errors
/// `NotFound` if there is no pool, `Busy` if an engine uses it, and whatever prevents a check.
pub fn check_pool(
    pool: &Path,
    secret_key: Option<PathBuf>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PoolCheck, Failure> {
    let offshoot_engine::PoolReport { report, damage } =
        offshoot_engine::check_pool(pool, &secret_keys::places(secret_key), progress)?;
    let finding =
        |one: offshoot_engine::Finding| PoolFinding { object: one.object, message: one.detail };
    Ok(PoolCheck {
        blocks: report.blocks,
        bytes: report.bytes,
        datasets: report.datasets,
        snapshots: report.snapshots,
        inodes: report.inodes,
        log_records: report.log_records,
        findings: report.findings.into_iter().map(finding).collect(),
        damage: damage.into_iter().map(damaged_block).collect(),
    })
}
