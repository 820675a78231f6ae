//! `cargo xtask tidy`: collects what every rule finds.

mod circles;
mod layers;
mod rules;
mod source;

use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One violation, printed as `path:line: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Relative to the workspace's root.
    pub path: String,
    /// From 1; 0 where the whole file is meant.
    pub line: usize,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs every rule over the workspace this binary was built in.
pub fn run() -> Result<Vec<Finding>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the root")?;
    let mut findings = layers::check(&cargo_metadata(root)?)?;
    let mut paths = Vec::new();
    for top in ["crates", "xtask", "bench", "tests", "sim", "fuzz"] {
        collect(&root.join(top), &mut paths)?;
    }
    paths.sort();
    let mut sources = Vec::new();
    let mut crates = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
            findings.extend(rules::check(&name, &text));
            sources.push(circles::Source { path: name, text });
        } else if let Some(directory) = name.strip_suffix("/Cargo.toml") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
            findings.extend(rules::check_manifest(&name, &text));
            crates.push(directory.to_owned());
        }
    }
    for directory in crates {
        findings.extend(circles::check(&directory, &sources));
    }
    Ok(findings)
}

fn cargo_metadata(root: &Path) -> Result<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("starting cargo metadata")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("reading what cargo metadata printed")
}

/// Every file below `directory`, without build output.
fn collect(directory: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(&entry.path(), into)?;
            }
        } else {
            into.push(entry.path());
        }
    }
    Ok(())
}
