//! Reports of masking as documents.

mod page;

use offshoot_api::{self as api, MaskReportFormat};
use offshoot_domain::signed::SigningKey;
use offshoot_engine::ReportView;
use offshoot_types::Failure;
use serde::Serialize;

/// A report as a document: what the signature covers.
#[derive(Serialize)]
struct Document<'a> {
    report: &'a api::MaskReport,
    algorithm: &'static str,
    public_key: &'a str,
    /// Last of all, as [`offshoot_domain::signed`] wants it.
    signature: &'a str,
}

/// What signs reports.
pub const ALGORITHM: &str = "ed25519";

/// Writes a report and signs it.
pub fn signed(
    view: ReportView,
    format: MaskReportFormat,
    key: &SigningKey,
) -> Result<api::SignedMaskReport, Failure> {
    let (report, public_key) = (report(view), key.public());
    let document = key.sign(|signature| match format {
        MaskReportFormat::Html => page::page(&report, &public_key, signature),
        MaskReportFormat::Json => json(&Document {
            report: &report,
            algorithm: ALGORITHM,
            public_key: &public_key,
            signature,
        }),
    })?;
    Ok(api::SignedMaskReport { report, format, document, public_key })
}

fn json(document: &Document<'_>) -> String {
    // Texts, numbers and times can be written; what could not would have no place for the signature.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

fn report(view: ReportView) -> api::MaskReport {
    let ReportView { name, report } = view;
    let facts = report.facts;
    let table = |one: offshoot_domain::MaskedTableFacts| api::MaskReportTable {
        name: one.name,
        rows_before: one.rows_before,
        rows_after: one.rows_after,
        emptied: one.emptied,
        conditional: one.conditional,
    };
    let column = |one: offshoot_domain::MaskedColumnFacts| api::MaskReportColumn {
        table: one.table,
        column: one.column,
        algorithm: one.algorithm,
        uniqueness: one.uniqueness,
        learned: one.learned,
    };
    let removed =
        |one: offshoot_domain::Removed| api::MaskReportRemoved { what: one.what, count: one.count };
    api::MaskReport {
        name,
        snapshot: report.id,
        source: report.source_name.to_string(),
        source_snapshot: report.source_snapshot,
        source_time: report.source_time,
        server_version: report.server_version,
        engine_version: report.engine_version,
        rules_sha256: report.rules_sha256,
        key: report.key,
        key_version: report.key_version,
        mode: super::mode(&report.mode),
        accepted_by: report.accepted_by,
        started_at: report.started_at,
        ended_at: report.ended_at,
        took_ms: report.took_ms,
        values_masked: report.values,
        tables: facts.tables.into_iter().map(table).collect(),
        columns: facts.columns.into_iter().map(column).collect(),
        columns_without_rule: report.unruled,
        columns_kept: facts.kept,
        columns_unmasked: facts.unmasked,
        idle_rules: report.idle,
        removed: facts.removed.into_iter().map(removed).collect(),
        anonymity: facts.anonymity.into_iter().map(anonymity).collect(),
    }
}

fn anonymity(one: offshoot_domain::Anonymity) -> api::MaskReportAnonymity {
    api::MaskReportAnonymity {
        table: one.table,
        columns: one.columns,
        rows: one.rows,
        combinations: one.combinations,
        unique: one.unique,
        smallest: one.smallest,
        k: one.k,
        rows_below: one.rows_below,
    }
}
