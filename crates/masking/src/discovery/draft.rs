//! A ruleset for review.

use super::Finding;
use crate::facts::TableFacts;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Below this a rule is proposed, but does not apply before somebody says so.
const SURE: f32 = 0.6;

/// Writes a ruleset with a rule for each finding, which are of a table and a column by their numbers. Of several for one
/// column the surest counts. Findings that are not sure are written as comments, and so is what each was told from.
pub fn draft(tables: &[TableFacts], findings: &[(usize, usize, Finding)]) -> String {
    let mut best: BTreeMap<(usize, usize), &Finding> = BTreeMap::new();
    for (table, column, finding) in findings {
        let known = best.entry((*table, *column)).or_insert(finding);
        if known.confidence < finding.confidence {
            *known = finding;
        }
    }
    let mut out = String::from(
        "# Proposed by Offshoot. Read every line: what is not listed here is not masked.\n\
         version: 1\nkey: main\ntables:\n",
    );
    let mut sure_tables = 0;
    for (number, table) in tables.iter().enumerate() {
        let mut columns = String::new();
        let mut sure = false;
        for (at, column) in table.columns.iter().enumerate() {
            let Some(finding) = best.get(&(number, at)) else { continue };
            // A generated column follows those it is computed from.
            let applies = finding.confidence >= SURE && !column.generated;
            sure |= applies;
            let off = if applies { "" } else { "# " };
            // Writing into a text cannot fail.
            let _ = writeln!(
                columns,
                "      {off}{}: {} # {} ({:.0} %)",
                quoted(&column.name),
                finding.algorithm,
                finding.why,
                finding.confidence * 100.0
            );
        }
        if columns.is_empty() {
            continue;
        }
        let name = quoted(&format!("{}.{}", table.schema, table.name));
        // A table without a rule that applies would be refused.
        let off = if sure { "" } else { "# " };
        let _ = write!(out, "  {off}{name}:\n  {off}  columns:\n{columns}");
        sure_tables += usize::from(sure);
    }
    if sure_tables == 0 {
        out.push_str("  # Nothing was found. An example:\n  # \"public.customers\": {columns: {email: email}}\n");
    }
    out
}

/// A name in quotes, as YAML and JSON write it.
fn quoted(name: &str) -> String {
    serde_json::to_string(name).unwrap_or_default()
}
