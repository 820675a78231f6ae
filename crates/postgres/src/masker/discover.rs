//! Looks for columns that should be masked: at their names, then at some of their values, which stay here.

use super::facts::{Facts, Relation};
use crate::databases::DATABASES;
use crate::session::quote_identifier;
use crate::wire::Refusal;
use crate::wire::{Door, Wire};
use offshoot_connector::DiscoveryTick;
use offshoot_domain::{Discovered, FoundColumn};
use offshoot_masking::discovery::{Finding, by_name, by_values, draft};
use offshoot_masking::{ColumnFacts, TableFacts, TypeClass};
use offshoot_types::Failure;

/// Characters of a value that are looked at.
const CHARS_MAX: usize = 400;
/// Tables with so many times the rows that are wanted are read here and there, others from their beginning.
const LARGE: u64 = 8;
/// Rows that are asked for for each one wanted: blocks are not equally full.
const SPARE: f64 = 3.0;

/// Looks through all databases of a copy.
///
/// # Errors
/// When its server does not answer; the tick's.
pub fn discover(
    door: &Door,
    sample: u32,
    tick: &mut DiscoveryTick<'_>,
) -> Result<Discovered, Failure> {
    let failed = |refusal: Refusal| refusal.into_failure("the server");
    let mut databases = Vec::new();
    for name in Wire::connect_any(door)?.column(DATABASES).map_err(failed)? {
        let facts = Facts::read(&mut Wire::connect(door, &name)?, &name)?;
        databases.push(facts);
    }
    let count = |facts: &Facts| facts.named().count() as u64;
    let (mut done, total) = (0, databases.iter().map(count).sum());
    let mut proposal = Proposal::default();
    for facts in &databases {
        let mut wire = Wire::connect(door, &facts.database)?;
        for relation in facts.named() {
            tick(done, total)?;
            let rows = facts.tree(relation.oid).iter().map(|one| one.leaf_rows()).sum();
            proposal.look(&mut wire, relation, rows, sample)?;
            done += 1;
        }
    }
    tick(done, total)?;
    Ok(proposal.written())
}

/// What was found so far. A table that several databases have is one: rules name it once.
#[derive(Default)]
struct Proposal {
    tables: Vec<TableFacts>,
    findings: Vec<(usize, usize, Finding)>,
}

impl Proposal {
    fn look(
        &mut self,
        wire: &mut Wire,
        relation: &Relation,
        rows: u64,
        sample: u32,
    ) -> Result<(), Failure> {
        let facts = relation.facts();
        let values = samples(wire, relation, &facts, rows, sample)?;
        for (at, column) in facts.columns.iter().enumerate() {
            let texts: Vec<&str> =
                values.iter().filter_map(|row| row.get(at)?.as_deref()).collect();
            let named = by_name(column, &facts.name);
            if let Some(finding) = surest(named, by_values(column, &texts)) {
                let place = self.place(&facts, column);
                self.findings.push((place.0, place.1, finding));
            }
        }
        Ok(())
    }

    /// The numbers of a table and a column, which are added where they are new.
    fn place(&mut self, facts: &TableFacts, column: &ColumnFacts) -> (usize, usize) {
        let same = |one: &TableFacts| one.schema == facts.schema && one.name == facts.name;
        let table = self.tables.iter().position(same).unwrap_or_else(|| {
            self.tables.push(TableFacts { columns: Vec::new(), ..facts.clone() });
            self.tables.len() - 1
        });
        let columns = &mut self.tables[table].columns;
        let at = columns.iter().position(|one| one.name == column.name).unwrap_or_else(|| {
            columns.push(column.clone());
            columns.len() - 1
        });
        (table, at)
    }

    fn written(self) -> Discovered {
        let rules = draft(&self.tables, &self.findings);
        let found = |(table, column, finding): (usize, usize, Finding)| {
            let table = self.tables.get(table)?;
            Some(FoundColumn {
                table: format!("{}.{}", table.schema, table.name),
                column: table.columns.get(column)?.name.clone(),
                kind: finding.kind.to_owned(),
                algorithm: finding.algorithm.to_owned(),
                confidence: finding.confidence,
                why: finding.why,
                samples: finding.samples as u64,
            })
        };
        Discovered { findings: self.findings.into_iter().filter_map(found).collect(), rules }
    }
}

/// What its name and its values say of a column together.
fn surest(named: Option<Finding>, held: Option<Finding>) -> Option<Finding> {
    match (named, held) {
        (Some(named), Some(held)) if named.kind == held.kind => Some(Finding {
            confidence: 1.0 - (1.0 - named.confidence) * (1.0 - held.confidence),
            why: format!("{}; {}", named.why, held.why),
            samples: held.samples,
            ..named
        }),
        (Some(named), Some(held)) if named.confidence >= held.confidence => Some(named),
        (named, held) => held.or(named),
    }
}

/// Values of rows here and there in a table, in the order of its columns; NULL where values of a type say nothing.
fn samples(
    wire: &mut Wire,
    relation: &Relation,
    facts: &TableFacts,
    rows: u64,
    sample: u32,
) -> Result<crate::session::Rows, Failure> {
    let tells =
        |one: &ColumnFacts| matches!(one.class, TypeClass::Text | TypeClass::Integer { bytes: 8 });
    if sample == 0 || !facts.columns.iter().any(tells) {
        return Ok(Vec::new());
    }
    let select = |column: &ColumnFacts| match tells(column) {
        true => format!(
            "pg_catalog.left({}::pg_catalog.text, {CHARS_MAX})",
            quote_identifier(&column.name)
        ),
        false => "NULL".to_owned(),
    };
    let columns: Vec<String> = facts.columns.iter().map(select).collect();
    let query = |from: &str| {
        format!("SELECT {} FROM {}{from} LIMIT {sample}", columns.join(", "), relation.quoted())
    };
    let failed = |refusal: Refusal| refusal.into_failure(&relation.name());
    if rows > LARGE * u64::from(sample) {
        let percent = (f64::from(sample) * SPARE * 100.0 / rows as f64).min(100.0);
        let blocks = format!(" TABLESAMPLE SYSTEM ({percent:.6})");
        let found = wire.rows(&query(&blocks)).map_err(failed)?;
        // An estimate of its rows may be wrong.
        if !found.is_empty() {
            return Ok(found);
        }
    }
    wire.rows(&query("")).map_err(failed)
}
