//! Reports of masking: shown, saved and checked.

use super::Session;
use super::looking::write;
use crate::args::MaskReportArgs;
use crate::output::{Fields, Output, table, write_exactly};
use offshoot_api::{
    MaskReport, MaskReportAnonymity, MaskReportColumn, MaskReportFormat, MaskReportTable,
    SignedMaskReport,
};
use offshoot_domain::signed;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::path::Path;

/// The longest report that is checked, in bytes.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// A report that was saved.
#[derive(Serialize)]
struct Saved {
    file: String,
    public_key: String,
}

/// A report that is as it was signed.
#[derive(Serialize)]
struct Verified {
    file: String,
    verified: bool,
    public_key: String,
}

/// Runs `mask report`.
pub fn run(session: &Session, args: &MaskReportArgs) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    if args.public_key {
        output.print(&client.mask_report_key()?, |key| key.public_key.clone());
        return Ok(());
    }
    if let Some(file) = &args.verify {
        return verify(file, client.mask_report_key()?.public_key, output);
    }
    let Some(name) = &args.name else { return Ok(()) };
    let page = args.output.as_ref().and_then(|file| file.extension());
    let html = args.html || page.is_some_and(|end| end.eq_ignore_ascii_case("html"));
    let format = if html { MaskReportFormat::Html } else { MaskReportFormat::Json };
    let signed = client.mask_report(name, format, args.snapshot)?;
    match &args.output {
        Some(file) => save(&signed, file, args.force, output),
        // Byte by byte, or it would not be what was signed.
        None if html || output.json => {
            write_exactly(&signed.document);
            Ok(())
        }
        None => {
            output.print(&signed.report, text);
            Ok(())
        }
    }
}

/// Checks a file, with a key that is known already: no engine is asked.
pub fn verify_with(file: &Path, public_key: &str, output: Output) -> Result<(), Failure> {
    verify(file, public_key.trim().to_owned(), output)
}

fn verify(file: &Path, public_key: String, output: Output) -> Result<(), Failure> {
    let failed = |why: String| {
        let message = format!("{} cannot be read: {why}", file.display());
        Failure::new(
            ErrorKind::InvalidInput,
            message,
            "name a file that `offshoot mask report` wrote",
        )
    };
    let size = std::fs::metadata(file).map_err(|error| failed(error.to_string()))?.len();
    if size > REPORT_BYTES_MAX {
        return Err(failed(format!("it has more than {} MiB", REPORT_BYTES_MAX >> 20)));
    }
    let document = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    signed::verify(&document, &public_key)?;
    let verified = Verified { file: file.display().to_string(), verified: true, public_key };
    output.print(&verified, |one| {
        format!("{} is as the engine with the key {} signed it", one.file, one.public_key)
    });
    Ok(())
}

fn save(
    signed: &SignedMaskReport,
    file: &Path,
    force: bool,
    output: Output,
) -> Result<(), Failure> {
    write(file, &signed.document, force)?;
    let saved = Saved { file: file.display().to_string(), public_key: signed.public_key.clone() };
    output.print(&saved, |saved| {
        format!("{} is written; check it with: offshoot mask report --verify {0}", saved.file)
    });
    Ok(())
}

fn text(report: &MaskReport) -> String {
    let mut text = Fields::default()
        .add("name", &report.name)
        .add("image", report.snapshot)
        .add("source", format!("{}, {}", report.source, report.source_snapshot))
        .add_some("moment", report.source_time)
        .add("rules, SHA-256", &report.rules_sha256)
        .add("rules applied by", &report.accepted_by)
        .add("key", &report.key)
        .add("masked at", report.ended_at)
        .add("values masked", report.values_masked)
        .add("columns unmasked", report.columns_unmasked.len())
        .add_some("without a rule", super::lines(&report.columns_without_rule))
        .add_some("kept by a rule", super::lines(&report.columns_kept))
        .text();
    let row = |one: &MaskReportTable| {
        let done = if one.emptied { "emptied" } else { "masked" };
        vec![one.name.clone(), one.rows_before.to_string(), one.rows_after.to_string(), done.into()]
    };
    let heads = ["table", "rows before", "after", "what was done"];
    text += &titled(&heads, report.tables.iter().map(row).collect());
    let row = |one: &MaskReportColumn| {
        let name = format!("{}.{}", one.table, one.column);
        vec![name, one.algorithm.clone(), one.uniqueness.clone(), one.learned.clone()]
    };
    let heads = ["column", "algorithm", "uniqueness", "tells"];
    text += &titled(&heads, report.columns.iter().map(row).collect());
    let row = |one: &MaskReportAnonymity| {
        let name = format!("{}: {}", one.table, one.columns.join(", "));
        let numbers = [one.combinations, one.unique, one.smallest, one.k, one.rows_below];
        std::iter::once(name).chain(numbers.map(|number| number.to_string())).collect()
    };
    let heads = ["columns together", "combinations", "of one row", "smallest", "k", "rows below k"];
    text + &titled(&heads, report.anonymity.iter().map(row).collect())
}

fn titled(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", table(heads, rows)) }
}
