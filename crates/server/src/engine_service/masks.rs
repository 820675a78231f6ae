//! Masked dSources as the API shows them.

pub(super) mod report;

use offshoot_api as api;
use offshoot_domain::{Discovered, MaskedRowsState, MaskingMode};
use offshoot_engine::{MaskRequest, MaskState, MaskView, Preview, PreviewRequest};
use offshoot_types::{ErrorKind, Failure};

/// Values of a column that discovery looks at, and the most that may be asked for.
pub(super) const SAMPLE: (u32, u32) = (1000, 100_000);
/// Rows of a preview, and the most that may be asked for.
const ROWS: (u32, u32) = (10, 1000);

/// A number that was asked for, or the usual one.
pub(super) fn within(
    asked: Option<u32>,
    (usual, most): (u32, u32),
    what: &str,
) -> Result<u32, Failure> {
    match asked {
        Some(asked) if asked > most => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("{asked} {what} are too many"),
            format!("ask for {most} at most"),
        )),
        asked => Ok(asked.unwrap_or(usual)),
    }
}

pub(super) fn discovery(found: Discovered) -> api::Discovery {
    let column = |one: offshoot_domain::FoundColumn| api::FoundColumn {
        table: one.table,
        column: one.column,
        kind: one.kind,
        algorithm: one.algorithm,
        confidence: one.confidence,
        why: one.why,
        samples: one.samples,
    };
    api::Discovery {
        findings: found.findings.into_iter().map(column).collect(),
        rules: found.rules,
    }
}

pub(super) fn preview_request(request: api::PreviewMask) -> Result<PreviewRequest, Failure> {
    let api::PreviewMask { from, rules, table, rows, originals } = request;
    Ok(PreviewRequest { from, rules, table, rows: within(rows, ROWS, "rows")?, originals })
}

pub(super) fn preview(preview: Preview) -> api::MaskPreview {
    let value = |one: offshoot_engine::PreviewValue| api::PreviewValue {
        before: one.before,
        after: one.after,
        masked: one.masked,
    };
    let columns = preview.columns.into_iter();
    api::MaskPreview {
        table: preview.table,
        columns: columns
            .map(|one| api::PreviewColumn { name: one.name, algorithm: one.algorithm })
            .collect(),
        rows: preview.rows.into_iter().map(|row| row.into_iter().map(value).collect()).collect(),
    }
}

pub(super) fn request(request: api::ApplyMask) -> MaskRequest {
    let api::ApplyMask { from, name, snapshot, rules, every_ms, full } = request;
    MaskRequest { from, name, snapshot, rules, every_ms, full, by: String::new() }
}

pub(super) fn key(view: offshoot_engine::MaskKeyView) -> api::MaskKey {
    let offshoot_engine::MaskKeyView { name, version, made_at, used_by } = view;
    api::MaskKey { name, version, made_at, used_by }
}

pub(super) fn mask(view: MaskView) -> api::Mask {
    let MaskView { name, source, state, problem, masking, tables, took_ms } = view;
    let rows_masked: u64 = tables.iter().map(|table| table.rows).sum();
    let last = masking.as_ref().map(|masking| &masking.last);
    api::Mask {
        name,
        source,
        state: match state {
            MaskState::Masking => api::MaskState::Masking,
            MaskState::Masked => api::MaskState::Masked,
            MaskState::Failed => api::MaskState::Failed,
        },
        snapshot: last.map(|last| last.snapshot),
        masked_at: last.map(|last| last.ended_at),
        rows_masked,
        rows_per_second: rows_masked.saturating_mul(1000) / took_ms.max(1),
        values_masked: last.map_or(0, |last| last.values),
        took_ms,
        tables: tables
            .into_iter()
            .map(|table| api::MaskTable {
                name: table.name,
                rows: table.rows,
                rows_total: table.rows_total,
                state: match table.state {
                    MaskedRowsState::Waiting => api::MaskTableState::Waiting,
                    MaskedRowsState::Running => api::MaskTableState::Running,
                    MaskedRowsState::Done => api::MaskTableState::Done,
                },
            })
            .collect(),
        mode: last.map_or(api::MaskMode::Full, |last| mode(&last.mode)),
        full_because: last.and_then(|last| match &last.mode {
            MaskingMode::Full { because } => because.clone(),
            MaskingMode::Incremental => None,
        }),
        columns_without_rule: last.map(|last| last.unruled.clone()).unwrap_or_default(),
        idle_rules: last.map(|last| last.idle.clone()).unwrap_or_default(),
        error: problem.map(Into::into),
        every_ms: masking.as_ref().and_then(|masking| masking.every_ms),
        key: masking.map(|masking| masking.key),
    }
}

/// What a run worked on.
fn mode(mode: &MaskingMode) -> api::MaskMode {
    match mode {
        MaskingMode::Full { .. } => api::MaskMode::Full,
        MaskingMode::Incremental => api::MaskMode::Incremental,
    }
}
