//! The manifest of a base backup: every file with its length and checksum, and the log it needs.
//!
//! Its form is described in PostgreSQL's documentation, "Backup Manifest Format".

use crate::lsn::Lsn;
use offshoot_types::Failure;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::unpack::Received;

/// How many differences an error names.
const DIFFERENCES_MAX: usize = 5;
/// The checksum of everything above it, in the manifest's last line.
const OWN_SUM: &[u8] = b"\"Manifest-Checksum\"";

/// A manifest as parsed.
#[derive(Debug, Deserialize)]
pub(super) struct Manifest<'a> {
    #[serde(rename = "Files", borrow)]
    files: Vec<File<'a>>,
    #[serde(rename = "WAL-Ranges", borrow)]
    wal_ranges: Vec<WalRange<'a>>,
    #[serde(rename = "Manifest-Checksum", borrow)]
    own_sum: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct File<'a> {
    #[serde(rename = "Path", borrow)]
    path: Option<Cow<'a, str>>,
    /// Replaces the path if that is not UTF-8, in hexadecimal.
    #[serde(rename = "Encoded-Path", borrow)]
    encoded_path: Option<Cow<'a, str>>,
    #[serde(rename = "Size")]
    size: u64,
    #[serde(rename = "Checksum-Algorithm", borrow)]
    algorithm: Option<Cow<'a, str>>,
    #[serde(rename = "Checksum", borrow)]
    sum: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct WalRange<'a> {
    #[serde(rename = "End-LSN", borrow)]
    end: Cow<'a, str>,
}

impl<'a> Manifest<'a> {
    /// Parses a manifest after checking its own checksum.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let manifest: Manifest<'_> =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let covered = bytes.windows(OWN_SUM.len()).rposition(|window| window == OWN_SUM);
        let sum = Sha256::digest(&bytes[..covered.unwrap_or(0)]);
        if hex(&sum) != *manifest.own_sum {
            return Err("its own checksum does not match".into());
        }
        Ok(manifest)
    }

    /// Replay must reach this before the copy is consistent.
    pub(super) fn end(&self) -> Option<Lsn> {
        self.wal_ranges.last()?.end.parse().ok()
    }

    /// Compares what was received with what was sent.
    ///
    /// # Errors
    /// `DataDamaged` that names the first differences.
    pub(super) fn verify(&self, received: &Received) -> Result<(), Failure> {
        let mut differences = Vec::new();
        // The server decides whether log is in the manifest; the manifest itself is not.
        let mut unlisted: BTreeSet<&str> = received.keys().map(String::as_str).collect();
        unlisted.retain(|name| *name != super::MANIFEST && !name.starts_with("pg_wal/"));
        for file in &self.files {
            let name = file.path.as_ref().or(file.encoded_path.as_ref());
            let name = name.map_or("a file without a name", |name| name);
            let Some((size, sum)) = received.get(name) else {
                differences.push(format!("\"{name}\" is missing"));
                continue;
            };
            unlisted.remove(name);
            if *size != file.size {
                differences.push(format!("\"{name}\" has {size} bytes instead of {}", file.size));
            } else if file.algorithm.as_deref() != Some("CRC32C") {
                differences.push(format!("\"{name}\" has no checksum"));
            // The server writes the bytes of the number in its own byte order.
            } else if file.sum.as_deref() != Some(&hex(&sum.to_le_bytes())) {
                differences.push(format!("\"{name}\" has another checksum"));
            }
        }
        differences.extend(unlisted.iter().map(|name| format!("\"{name}\" was not announced")));
        if differences.is_empty() {
            return Ok(());
        }
        differences.truncate(DIFFERENCES_MAX);
        Err(super::differs(&differences))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
