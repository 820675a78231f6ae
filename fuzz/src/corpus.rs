//! Inputs that are kept: a file for each target, a line in hex for each input; `#` begins a
//! comment.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Bytes of all inputs without a comment that are kept for a target.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// An input that is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    /// What it is of; empty for one that only reaches some code.
    pub remark: String,
    /// The input.
    pub bytes: Vec<u8>,
}

fn path(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "corpus", &format!("{target}.hex")].iter().collect()
}

/// What is kept for a target.
///
/// # Errors
/// When the file is missing or a line is not hex.
pub fn read(target: &str) -> Result<Vec<Kept>> {
    let path = path(target);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let parse = |line: &str| {
        let (hex, remark) = line.split_once('#').unwrap_or((line, ""));
        let bytes = from_hex(hex.trim()).with_context(|| format!("'{line}' is not hex"))?;
        Ok(Kept { remark: remark.trim().to_owned(), bytes })
    };
    text.lines().map(parse).collect()
}

/// Keeps these inputs, as many as there is room for, the shortest ones; those with a comment stay.
///
/// # Errors
/// When the file cannot be read or written.
pub fn write(target: &str, mut inputs: Vec<Vec<u8>>) -> Result<()> {
    let path = path(target);
    let mut kept = if path.exists() { read(target)? } else { Vec::new() };
    kept.retain(|kept| !kept.remark.is_empty());
    inputs.sort_by_key(|bytes| (bytes.len(), bytes.clone()));
    let mut room = KEPT_BYTES_MAX;
    for bytes in inputs {
        if bytes.is_empty() || kept.iter().any(|kept| kept.bytes == bytes) {
            continue;
        }
        let Some(left) = room.checked_sub(bytes.len()) else { break };
        room = left;
        kept.push(Kept { remark: String::new(), bytes });
    }
    kept.sort();
    let line = |kept: &Kept| {
        let hex: String = kept.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if kept.remark.is_empty() { hex + "\n" } else { format!("{hex} # {}\n", kept.remark) }
    };
    Ok(std::fs::write(&path, kept.iter().map(line).collect::<String>())?)
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(byte).collect()
}
