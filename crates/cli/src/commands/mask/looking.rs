//! What comes before masking: rules to begin with, and what they make of some rows.

use super::{Session, read};
use crate::args::{MaskDiscoverArgs, MaskInitArgs, MaskPreviewArgs};
use crate::output::{Output, table};
use offshoot_api::{DiscoverMask, MaskPreview, PreviewMask, PreviewValue};
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{ErrorKind as IoKind, Write};
use std::path::Path;

/// A ruleset to begin with.
const START: &str = include_str!("start.yaml");

/// A file that was written.
#[derive(Serialize)]
struct Written {
    file: String,
}

/// Writes a ruleset to begin with. It asks no engine.
pub fn init(args: &MaskInitArgs, output: Output) -> Result<(), Failure> {
    write(&args.file, START, args.force)?;
    let file = args.file.display().to_string();
    let text = format!(
        "{file} is written: name your tables in it, then run\n  \
         offshoot mask check {file} --from DSOURCE\n\
         or have rules proposed: offshoot mask discover DSOURCE"
    );
    output.print(&Written { file }, |_| text);
    Ok(())
}

/// Writes a file that is not there yet, or with `force` in any case.
pub fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let (code, hint) = match error.kind() {
            IoKind::AlreadyExists => {
                (ErrorKind::AlreadyExists, "name another file, or remove this one first")
            }
            _ => (ErrorKind::InvalidInput, "name a file in a directory that can be written"),
        };
        Failure::new(code, format!("{} is not written: {error}", path.display()), hint)
    })
}

/// Has rules proposed.
pub fn discover(session: &Session, args: MaskDiscoverArgs) -> Result<(), Failure> {
    if let Some(path) = args.out.as_ref().filter(|path| path.exists()) {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("{} is there already", path.display()),
            "name another file, or remove this one first",
        ));
    }
    let client = &session.client;
    let request = DiscoverMask { from: args.from, sample: Some(args.sample) };
    session.follow(client.discover_mask(&request)?, args.job, |job| {
        let found = client.show_discovery(job.id)?;
        if let Some(path) = &args.out {
            write(path, &found.rules, false)?;
        }
        session.output.print(&found, |found| match &args.out {
            None => found.rules.clone(),
            Some(path) => format!(
                "{} columns look as if they had to be masked; review the rules in {}",
                found.findings.len(),
                path.display()
            ),
        });
        Ok(())
    })
}

/// Shows masked rows.
pub fn preview(session: &Session, args: &MaskPreviewArgs) -> Result<(), Failure> {
    let request = PreviewMask {
        from: args.from.clone(),
        rules: read(&args.rules)?,
        table: args.table.clone(),
        rows: Some(args.rows),
        originals: args.show_originals,
    };
    let job = session.client.preview_mask(&request)?;
    session.wait(job)?;
    let shown = session.client.show_preview(job)?;
    session.output.print(&shown, |shown| text(shown, args.show_originals));
    Ok(())
}

fn text(shown: &MaskPreview, originals: bool) -> String {
    if shown.rows.is_empty() {
        return format!("{} has no row", shown.table);
    }
    let heads: Vec<&str> = shown.columns.iter().map(|column| column.name.as_str()).collect();
    let word = |value: &Option<String>| {
        let text = value.as_deref().unwrap_or("NULL");
        // One row, one line.
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
    };
    let value = |value: &PreviewValue| match (originals, value.masked) {
        (false, false) => "(not masked)".to_owned(),
        (false, true) => word(&value.after),
        (true, false) => word(&value.before),
        (true, true) => format!("{} -> {}", word(&value.before), word(&value.after)),
    };
    table(&heads, shown.rows.iter().map(|row| row.iter().map(value).collect()).collect())
}
