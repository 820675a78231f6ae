//! A report of a masked dSource.

use super::time;
use offshoot_api::{
    Mask, MaskMode, MaskReport, MaskReportAnonymity, MaskReportColumn, MaskReportFormat,
    MaskReportRemoved, MaskReportTable, SignedMaskReport,
};
use offshoot_types::SnapshotId;

pub fn report(mask: &Mask, format: MaskReportFormat) -> SignedMaskReport {
    let table = "public.customers".to_owned();
    let report = MaskReport {
        name: mask.name.clone(),
        snapshot: SnapshotId(1),
        source: mask.source.clone(),
        source_snapshot: SnapshotId(1),
        source_time: Some(time()),
        server_version: "16.4".to_owned(),
        engine_version: "0.1.0".to_owned(),
        rules_sha256: "00".to_owned(),
        key: "main".to_owned(),
        key_version: 1,
        mode: MaskMode::Incremental,
        accepted_by: "eve".to_owned(),
        started_at: time(),
        ended_at: time(),
        took_ms: 1,
        values_masked: 7,
        tables: vec![MaskReportTable {
            name: table.clone(),
            rows_before: 7,
            rows_after: 7,
            emptied: false,
            conditional: false,
        }],
        columns: vec![MaskReportColumn {
            table: table.clone(),
            column: "email".to_owned(),
            algorithm: "email".to_owned(),
            uniqueness: "distinct".to_owned(),
            learned: "which rows had equal values".to_owned(),
        }],
        columns_without_rule: Vec::new(),
        columns_kept: Vec::new(),
        columns_unmasked: vec!["public.customers.id".to_owned()],
        idle_rules: Vec::new(),
        removed: vec![MaskReportRemoved { what: "comments".to_owned(), count: None }],
        anonymity: vec![MaskReportAnonymity {
            table,
            columns: vec!["zip".to_owned()],
            rows: 7,
            combinations: 3,
            unique: 1,
            smallest: 1,
            k: 5,
            rows_below: 3,
        }],
    };
    SignedMaskReport { report, format, document: String::new(), public_key: "00".to_owned() }
}
