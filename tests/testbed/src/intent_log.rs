//! Damage to the intent log of a pool that no engine uses.

use anyhow::{Context, Result};
use offshoot_format::log::{LOG_HEADER_LEN, SECTOR_LEN, SectorHeader};
use offshoot_types::DatasetId;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are overwritten: far more than can be corrected.
const BYTES: usize = 64;
/// Where in a sector: its body.
const AT: u64 = 200;

/// Records of a dataset since the log was last opened, oldest first: where each one's sectors are.
fn records(pool: &Path, dataset: DatasetId) -> Result<Vec<Vec<(PathBuf, u64)>>> {
    let mut found: BTreeMap<(u32, u64), Vec<(PathBuf, u64)>> = BTreeMap::new();
    let mut newest = 0;
    for entry in std::fs::read_dir(pool.join("log"))? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        let sectors = bytes[LOG_HEADER_LEN as usize..].chunks_exact(SECTOR_LEN);
        for (sector, at) in sectors.zip((LOG_HEADER_LEN..).step_by(SECTOR_LEN)) {
            let Some(header) = SectorHeader::peek(sector) else { continue };
            newest = newest.max(header.generation);
            if header.stream == dataset.0 {
                let key = (header.generation, header.sequence);
                found.entry(key).or_default().push((path.clone(), at));
            }
        }
    }
    let present = found.into_iter().filter(|((generation, _), _)| *generation == newest);
    Ok(present.map(|(_, sectors)| sectors).collect())
}

/// How many records of a dataset the log holds since it was last opened.
///
/// # Errors
/// When it cannot be read.
pub fn logged_records(pool: &Path, dataset: DatasetId) -> Result<usize> {
    Ok(records(pool, dataset)?.len())
}

/// Overwrites part of the record of a dataset that has `behind` of its records after it, or of its first
/// one.
///
/// # Errors
/// When it has none.
pub fn damage_record(pool: &Path, dataset: DatasetId, behind: usize) -> Result<()> {
    let records = records(pool, dataset)?;
    let last = records.len().checked_sub(1).context("no record of it is in the log")?;
    let sectors = &records[last.saturating_sub(behind)];
    let (path, at) = &sectors[sectors.len() / 2];
    let file = File::options().read(true).write(true).open(path)?;
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, at + AT)?;
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    file.write_all_at(&bytes, at + AT)?;
    file.sync_all()?;
    Ok(())
}
