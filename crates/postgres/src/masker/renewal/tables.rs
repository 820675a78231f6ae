//! What is done with each table.

use super::super::facts::{Oid, Relation};
use super::super::plan::Plan;
use super::super::watch::Watch;
use super::{Doors, Moved, Stop, catalogs};
use crate::differ::facts::{Facts, Table};
use crate::differ::reading::{self, Known, Reading};
use crate::session::quote_identifier;
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Tables whose triggers or rules act in any case.
const ACTING: &str = "SELECT tgrelid FROM pg_catalog.pg_trigger WHERE tgenabled IN ('A', 'R') \
    UNION SELECT ev_class FROM pg_catalog.pg_rewrite \
      WHERE ev_enabled IN ('A', 'R') AND rulename <> '_RETURN'";

/// What compares the columns of primary keys, in their order.
const KEY_OPERATORS: &str = "SELECT i.indrelid, \
      pg_catalog.string_agg(pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname), \
        pg_catalog.chr(10) ORDER BY u.at) \
    FROM pg_catalog.pg_index i, \
      pg_catalog.unnest(i.indclass::pg_catalog.oid[]) WITH ORDINALITY u(class, at) \
      JOIN pg_catalog.pg_opclass c ON c.oid = u.class \
      JOIN pg_catalog.pg_am m ON m.oid = c.opcmethod AND m.amname = 'btree' \
      JOIN pg_catalog.pg_amop p ON p.amopfamily = c.opcfamily AND p.amopstrategy = 3 \
        AND p.amoplefttype = c.opcintype AND p.amoprighttype = c.opcintype \
      JOIN pg_catalog.pg_operator o ON o.oid = p.amopopr \
      JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace \
    WHERE i.indisprimary AND i.indrelid >= 16384 GROUP BY i.indrelid";

/// Of a table of which more than one place in so many may have another row, writing all of it anew is quicker than replacing
/// rows.
const MANY_PLACES: u64 = 5;
/// So many are never many: those of a page or two.
const FEW_PLACES: u64 = 300;
/// Statistics are made anew where more than one row in so many came or went: as autovacuum does by default.
const MANY_ROWS: u64 = 10;

/// What is done with the tables of a database.
pub(super) struct Todo {
    /// By table; no other is touched.
    pub(super) tables: BTreeMap<Oid, Doing>,
    /// Tables that are empty in the masked copy, of which pages differ.
    pub(super) emptied_differ: BTreeSet<Oid>,
}

/// What is done with a table.
pub(super) enum Doing {
    /// Rows that differ are replaced.
    Rows(Box<Rows>),
    /// It is written anew, for this reason.
    Whole(&'static str),
}

/// How the rows of a table that differ are found and replaced.
pub(super) struct Rows {
    pub(super) table: Table,
    pub(super) reading: Reading,
    /// What compares the columns of its key.
    pub(super) operators: Vec<String>,
}

impl Doing {
    /// Rows to write, of a table with so many.
    pub(super) fn rows(&self, of_table: u64) -> u64 {
        match self {
            Doing::Whole(_) => of_table,
            Doing::Rows(rows) => places(&rows.reading, &rows.table, of_table),
        }
    }
}

/// Places to read, of a table with so many rows.
fn places(reading: &Reading, table: &Table, rows: u64) -> u64 {
    match reading {
        Reading::Places(places, _) => places.len() as u64,
        _ => rows.saturating_mul(reading.pages_of(table.pages)) / table.pages.max(1),
    }
}

/// Whether of a table with so many rows so many places are to be read that it is written anew.
fn is_many(reading: &Reading, table: &Table, rows: u64) -> bool {
    match reading {
        // How many rows there are may not be known.
        Reading::Places(places, among) => {
            places.len() as u64 > rows.max(*among) / MANY_PLACES + FEW_PLACES
        }
        _ => reading.pages_of(table.pages) > table.pages / MANY_PLACES + 1,
    }
}

impl Todo {
    /// Whether any table is touched.
    pub(super) fn does_anything(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Removes dead rows, and makes the planner's statistics anew of tables that changed much.
    pub(super) fn settle(
        &self,
        wire: &mut Wire,
        plan: &Plan,
        moved: &BTreeMap<Oid, Moved>,
        watch: &Watch,
    ) -> Result<(), Failure> {
        let mut above = BTreeSet::new();
        for oid in self.tables.keys() {
            let Some(relation) = plan.facts.relations.get(oid) else { continue };
            watch.go_on()?;
            let few = moved.get(oid).is_some_and(|one| one.rows() < relation.rows / MANY_ROWS);
            let how = if few { "VACUUM" } else { "VACUUM (ANALYZE)" };
            let vacuum = format!("{how} {}", relation.quoted());
            wire.execute(&vacuum).map_err(|refusal| refusal.into_failure(&relation.name()))?;
            above.extend(relation.parents.iter().copied().filter(|_| !few));
        }
        // Tables above have statistics of all rows below.
        let mut waiting: Vec<Oid> = above.iter().copied().collect();
        while let Some(oid) = waiting.pop() {
            let Some(relation) = plan.facts.relations.get(&oid) else { continue };
            // Without statistics a database is slower, not wrong.
            let _ = wire.execute(&format!("ANALYZE {}", relation.quoted()));
            waiting.extend(relation.parents.iter().filter(|parent| above.insert(**parent)));
        }
        Ok(())
    }
}

/// Decides what is done in a database.
pub(super) fn todo(
    doors: Doors<'_>,
    plan: &Plan,
    known: &mut Known<'_>,
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Todo, Stop> {
    let database = &plan.facts.database;
    let mut before = Wire::connect(doors.before, database)?;
    let mut now = Wire::connect(doors.now, database)?;
    let is_ruled = !plan.named.is_empty();
    if let Some(catalog) = catalogs::differs((&mut before, &mut now), known, database, is_ruled)? {
        let why = format!("the schema of database {database} has changed ({catalog})");
        return Err(Stop::InFull(why));
    }
    let facts = (Facts::read(&mut before, database)?, Facts::read(&mut now, database)?);
    if facts.1.encoding == "SQL_ASCII" {
        return Err(Stop::InFull(format!("database {database} has no encoding")));
    }
    known.renamed = reading::renamed(&facts.0, &facts.1);
    if !is_ruled && views_differ(&facts, known, waiting)? {
        // A full run leaves them as they are at the source.
        let why =
            format!("a materialized view of database {database} has changed, which no rule meets");
        return Err(Stop::InFull(why));
    }
    let of_keys = OfKeys::read(&mut now, database)?;
    let mut todo = Todo { tables: BTreeMap::new(), emptied_differ: BTreeSet::new() };
    let tables: BTreeMap<Oid, &Table> = facts.1.tables.values().map(|one| (one.oid, one)).collect();
    let emptied = plan.empties();
    let relations = plan.facts.relations.values();
    for relation in relations.filter(|one| !one.partitioned && !one.unlogged) {
        let after = tables.get(&relation.oid);
        let Some((before, after)) =
            after.and_then(|after| Some((facts.0.tables.get(&after.full_name())?, *after)))
        else {
            return Err(Stop::InFull(format!("{} cannot be compared", relation.name())));
        };
        let version = facts.0.version.min(facts.1.version);
        let reading = reading::of_pair(before, after, version, known, waiting)?;
        let is_same = reading.is_nothing();
        if emptied.contains(&relation.oid) {
            todo.emptied_differ.extend((!is_same).then_some(relation.oid));
            continue;
        }
        let of_row = masks_depend_on_row(&mut now, plan, relation);
        if is_same && of_row {
            continue;
        }
        if relation.access_method != "heap" {
            return Err(Stop::InFull(format!("{} has no heap", relation.name())));
        }
        let doing = match (reading, of_keys.operators(after)) {
            _ if !of_row => Doing::Whole("an expression may depend on more than its row"),
            (Reading::Whole(why), _) => Doing::Whole(why),
            (_, None) => Doing::Whole("its rows cannot be replaced by their key"),
            (reading, _) if is_many(&reading, after, relation.leaf_rows()) => {
                Doing::Whole("many of its rows differ")
            }
            (reading, Some(operators)) => {
                Doing::Rows(Box::new(Rows { table: after.clone(), reading, operators }))
            }
        };
        if let Doing::Whole(why) = doing {
            tracing::info!(table = relation.name(), why, "all of a table is masked");
        }
        todo.tables.insert(relation.oid, doing);
    }
    todo.widen(plan);
    Ok(todo)
}

/// Whether any materialized view may have other rows.
fn views_differ(
    (before, now): &(Facts, Facts),
    known: &Known<'_>,
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let version = before.version.min(now.version);
    for (name, after) in now.tables.iter().filter(|(_, one)| one.kind == 'm') {
        let Some(before) = before.tables.get(name) else { return Ok(true) };
        let reading = reading::of_pair(before, after, version, known, waiting)?;
        if !reading.is_nothing() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Todo {
    /// Relations that must be written at once are.
    fn widen(&mut self, plan: &Plan) {
        for job in plan.jobs().iter().filter(|job| job.through.is_some()) {
            if job.sources.iter().any(|oid| self.tables.contains_key(oid)) {
                let whole = || Doing::Whole("its masks may move rows to other partitions");
                self.tables.extend(job.sources.iter().map(|oid| (*oid, whole())));
            }
        }
    }
}

/// What must be known to replace rows by their keys.
struct OfKeys {
    acting: BTreeSet<Oid>,
    operators: BTreeMap<Oid, Vec<String>>,
}

impl OfKeys {
    fn read(wire: &mut Wire, database: &str) -> Result<OfKeys, Failure> {
        let failed = |refusal: Refusal| refusal.of_reading(&format!("database {database}"));
        let acting = wire.column(ACTING).map_err(failed)?;
        let operators = wire.rows(KEY_OPERATORS).map_err(failed)?;
        let of_table = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
            Ok([Some(oid), Some(all)]) => {
                Some((oid.parse().ok()?, all.lines().map(str::to_owned).collect()))
            }
            _ => None,
        };
        Ok(OfKeys {
            acting: acting.iter().filter_map(|oid| oid.parse().ok()).collect(),
            operators: operators.into_iter().filter_map(of_table).collect(),
        })
    }

    /// What compares the columns of a table's key; none if its rows cannot be replaced by it.
    fn operators(&self, table: &Table) -> Option<Vec<String>> {
        let is_written =
            |name: &String| table.column(name).is_some_and(|column| column.is_written());
        let operators = self.operators.get(&table.oid)?;
        let fits = operators.len() == table.key.len() && table.key.iter().all(is_written);
        (fits && !self.acting.contains(&table.oid)).then(|| operators.clone())
    }
}

/// Whether the masks of a row depend on nothing but the row. The server is asked to compute its expressions in columns of a
/// table: there it takes none that may look elsewhere or that may not give the same again.
fn masks_depend_on_row(wire: &mut Wire, plan: &Plan, relation: &Relation) -> bool {
    let (alias, expressions) = plan.expressions(relation);
    if expressions.is_empty() {
        return true;
    }
    let column = |(at, expression): (usize, &&str)| {
        let name = quote_identifier(&format!("offshoot {at}"));
        format!(
            "ALTER TABLE pg_temp.{alias} ADD {name} pg_catalog.bool \
             GENERATED ALWAYS AS (({expression}) IS NULL) STORED;"
        )
    };
    let columns: String = expressions.iter().enumerate().map(column).collect();
    let table = format!("CREATE TEMPORARY TABLE {alias} (LIKE {});", relation.quoted());
    let understood = wire.execute(&format!("BEGIN; {table} {columns} ROLLBACK")).is_ok();
    // What the server refused has not ended its transaction.
    let ended = understood || wire.execute("ROLLBACK").is_ok();
    understood && ended
}
