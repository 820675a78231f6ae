//! Masked dSources as the API shows them.

use offshoot_api as api;
use offshoot_domain::MaskedRowsState;
use offshoot_engine::{MaskRequest, MaskState, MaskView};

pub(super) fn request(request: api::ApplyMask) -> MaskRequest {
    let api::ApplyMask { from, name, snapshot, rules, every_ms } = request;
    MaskRequest { from, name, snapshot, rules, every_ms }
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
        mode: api::MaskMode::Full,
        columns_without_rule: last.map(|last| last.unruled.clone()).unwrap_or_default(),
        idle_rules: last.map(|last| last.idle.clone()).unwrap_or_default(),
        error: problem.map(Into::into),
        every_ms: masking.as_ref().and_then(|masking| masking.every_ms),
        key: masking.map(|masking| masking.key),
    }
}
