//! A table gets the file of another one that holds its rows masked.
//!
//! Masked rows are written into a *stage*: a table whose columns are those of the table, by number and type, dropped ones
//! included, and which has nothing else: no index, constraint or trigger. Then the two exchange their files, as `CLUSTER`
//! and `VACUUM FULL` do it and as pg_repack does: `relfilenode`, the table of large values (`reltoastrelid`) and how old
//! their transactions are. The stage is dropped, and with it the last place of unmasked rows; the table's indexes are
//! built anew.
//!
//! ```text
//!   table  ──▶ old file          table ──▶ new file
//!   stage  ──▶ new file          stage ──▶ old file, dropped
//! ```
//! The table itself stays what it is: its oid, and so all that refers to it (views, functions, foreign keys, policies,
//! publications, grants, sequences, comments, partitions). No row of it is written twice, and none is checked by a
//! trigger. What constraints ask of masks is checked afterwards ([`super::verify`]).
//!
//! Nobody else uses the server; a copy whose masking was cut off is thrown away.

use super::facts::{Facts, Oid, Relation};
use crate::session::{quote_identifier, quote_text};
use crate::wire::Refusal;
use crate::wire::Wire;
use std::collections::BTreeMap;

/// A table to exchange with its stage.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) table: Oid,
    /// The stage as SQL names it.
    pub(super) stage: String,
}

/// The stage of a relation, as SQL names it.
pub(super) fn stage_name(schema: &str, relation: &Relation) -> String {
    format!("{}.{}", quote_identifier(schema), quote_identifier(&format!("t{}", relation.oid)))
}

/// Statements that make the stage of a table.
pub(super) fn stage_sql(schema: &str, relation: &Relation) -> String {
    let stage = stage_name(schema, relation);
    let dropped = |number: i16| quote_identifier(&format!("........offshoot.{number}........"));
    let mut columns = Vec::new();
    let mut after = String::new();
    for column in &relation.columns {
        if column.dropped {
            let name = dropped(column.number);
            columns.push(format!("{name} pg_catalog.int4"));
            after += &format!("ALTER TABLE {stage} DROP COLUMN {name};");
            continue;
        }
        let name = quote_identifier(&column.name);
        let collation = column.collation.as_ref().map(|name| format!(" COLLATE {name}"));
        let generated = column.generated.as_ref().map(|(expression, stored)| {
            let kind = if *stored { "STORED" } else { "VIRTUAL" };
            format!(" GENERATED ALWAYS AS ({expression}) {kind}")
        });
        columns.push(format!(
            "{name} {}{}{}",
            column.type_name,
            collation.unwrap_or_default(),
            generated.unwrap_or_default()
        ));
        for (what, value) in [("STORAGE", column.storage), ("COMPRESSION", column.compression)] {
            if let Some(value) = value.filter(|_| !relation.partitioned) {
                after += &format!("ALTER TABLE {stage} ALTER COLUMN {name} SET {what} {value};");
            }
        }
    }
    let unlogged = if relation.unlogged && !relation.partitioned { "UNLOGGED " } else { "" };
    let mut sql = format!("CREATE {unlogged}TABLE {stage} ({})", columns.join(", "));
    if let Some(key) = &relation.partition_key {
        sql += &format!(" PARTITION BY {}", key.definition);
    } else if let Some(options) = &relation.options {
        sql += &format!(" WITH ({options})");
    }
    if let Some(tablespace) = relation.tablespace.as_ref().filter(|_| !relation.partitioned) {
        sql += &format!(" TABLESPACE {}", quote_identifier(tablespace));
    }
    format!("{sql};{after}ALTER TABLE {stage} OWNER TO {};", quote_identifier(&relation.owner))
}

/// Statements that make the stages of a partitioned table and of all below it: a row that is written into the first goes
/// into that of its partition.
pub(super) fn stage_tree_sql(schema: &str, facts: &Facts, root: Oid) -> String {
    let tree = facts.tree(root);
    let mut sql: String = tree.iter().map(|relation| stage_sql(schema, relation)).collect();
    for relation in tree {
        for child in relation.children.iter().filter_map(|child| facts.relations.get(child)) {
            let bound = child.bound.as_deref().unwrap_or("DEFAULT");
            let (above, below) = (stage_name(schema, relation), stage_name(schema, child));
            sql += &format!("ALTER TABLE {above} ATTACH PARTITION {below} {bound};");
        }
    }
    sql
}

/// The columns that rows are written with: the database computes the others.
pub(super) fn written_columns(relation: &Relation) -> String {
    let columns = relation.live().filter(|column| column.generated.is_none());
    let columns: Vec<String> = columns.map(|column| quote_identifier(&column.name)).collect();
    columns.join(", ")
}

/// The statement that writes rows into a stage. A stage that was made in the same transaction takes rows as if they had
/// always been there.
pub(super) fn copy_sql(stage: &str, relation: &Relation) -> String {
    let freeze = if relation.partitioned { "" } else { " WITH (FREEZE)" };
    format!("COPY {stage} ({}) FROM STDIN{freeze}", written_columns(relation))
}

/// Exchanges the files of a table and its stage, in a transaction of their own.
///
/// The new file's large values name the table that holds them by its oid, so it changes hands with them; its name is
/// made from its owner's oid. A value that old rows had by default, because a column was added after them, is in no row
/// any more: it is forgotten.
pub(super) fn exchange(wire: &mut Wire, facts: &Facts, pair: &Pair) -> Result<(), Refusal> {
    let Some(relation) = facts.relations.get(&pair.table) else { return Ok(()) };
    let (table, stage) = (pair.table, quote_text(&pair.stage));
    let sql = format!(
        "BEGIN; LOCK TABLE ONLY {name}, ONLY {stage_name} IN ACCESS EXCLUSIVE MODE; \
         DO $do$ DECLARE \
           t pg_catalog.oid := {table}; s pg_catalog.oid := {stage}::pg_catalog.regclass; \
           old_large pg_catalog.oid; new_large pg_catalog.oid; \
           rel pg_catalog.oid := 'pg_catalog.pg_class'::pg_catalog.regclass; \
         BEGIN \
           SELECT reltoastrelid INTO old_large FROM pg_catalog.pg_class WHERE oid = t; \
           SELECT reltoastrelid INTO new_large FROM pg_catalog.pg_class WHERE oid = s; \
           UPDATE pg_catalog.pg_class n SET relfilenode = o.relfilenode, \
             reltoastrelid = o.reltoastrelid, relfrozenxid = o.relfrozenxid, \
             relminmxid = o.relminmxid \
             FROM pg_catalog.pg_class o WHERE (n.oid, o.oid) IN ((t, s), (s, t)); \
           UPDATE pg_catalog.pg_depend SET refobjid = CASE refobjid WHEN t THEN s ELSE t END \
             WHERE classid = rel AND refclassid = rel AND deptype = 'i' \
               AND refobjid IN (t, s) AND objid IN (old_large, new_large); \
           UPDATE pg_catalog.pg_class n SET reloptions = o.reloptions FROM pg_catalog.pg_class o \
             WHERE n.oid = new_large AND o.oid = old_large; \
           UPDATE pg_catalog.pg_class SET relname = 'pg_toast_old_' || t WHERE oid = old_large; \
           UPDATE pg_catalog.pg_class SET relname = 'pg_toast_old_' || t || '_index' WHERE oid = \
             (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = old_large); \
           UPDATE pg_catalog.pg_type y SET typname = 'pg_toast_old_' || t FROM pg_catalog.pg_class c \
             WHERE c.oid = old_large AND y.oid = c.reltype; \
           UPDATE pg_catalog.pg_class SET relname = 'pg_toast_' || t WHERE oid = new_large; \
           UPDATE pg_catalog.pg_class SET relname = 'pg_toast_' || t || '_index' WHERE oid = \
             (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = new_large); \
           UPDATE pg_catalog.pg_type y SET typname = 'pg_toast_' || t FROM pg_catalog.pg_class c \
             WHERE c.oid = new_large AND y.oid = c.reltype; \
           UPDATE pg_catalog.pg_attribute SET atthasmissing = false, attmissingval = NULL \
             WHERE attrelid = t AND atthasmissing; \
         END $do$; COMMIT",
        name = relation.quoted(),
        stage_name = pair.stage,
    );
    wire.execute(&sql)
}

/// The indexes of a table: their names as SQL has them and as users have them, and whether they were valid.
pub(super) fn indexes(wire: &mut Wire, table: Oid) -> Result<Vec<(String, String, bool)>, Refusal> {
    let rows = wire.rows(&format!(
        "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.relname, i.indisvalid \
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE i.indrelid = {table} ORDER BY i.indisprimary DESC, i.indexrelid"
    ))?;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    Ok(rows
        .iter()
        .filter_map(|row| match &row[..] {
            [sql, name, valid] => Some((text(sql), text(name), valid.as_deref() == Some("t"))),
            _ => None,
        })
        .collect())
}

/// Pairs of the tables of a job with their stages.
pub(super) fn pairs(schema: &str, facts: &Facts, tables: &[Oid]) -> Vec<Pair> {
    let relations: BTreeMap<_, _> =
        tables.iter().filter_map(|oid| Some((*oid, facts.relations.get(oid)?))).collect();
    let pair = |(table, relation): (&Oid, &&Relation)| Pair {
        table: *table,
        stage: stage_name(schema, relation),
    };
    relations.iter().map(pair).collect()
}
