//! Which tables a database has.

use crate::session::quote_identifier;
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// The first object id that is not the system's own.
const USERS: &str = ">= 16384";

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) number: i32,
    /// Its type, with its parameters.
    pub(crate) written: String,
    kind: u32,
    /// What rows that were written before it was added have.
    missing: Option<String>,
    /// Computed from others: `s` stored, `v` when it is read.
    generated: bool,
    pub(crate) is_virtual: bool,
    /// Takes values only where that is said.
    pub(crate) always_identity: bool,
}

impl Column {
    /// Whether pages of both hold it in the same way, so that equal bytes are equal values.
    pub(crate) fn same_as(&self, other: &Column) -> bool {
        self == other
    }

    /// Whether its type was made by users.
    pub(crate) fn is_of_users(&self) -> bool {
        self.kind >= 16384
    }

    /// Whether it is given values.
    pub(crate) fn is_written(&self) -> bool {
        !self.generated
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) oid: u32,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) kind: char,
    pub(crate) persistence: char,
    pub(crate) method: String,
    /// Its first file.
    pub(crate) file: Option<String>,
    pub(crate) pages: u64,
    pub(crate) columns: Vec<Column>,
    /// The columns of its primary key.
    pub(crate) key: Vec<String>,
}

impl Table {
    /// As its users name it.
    pub(crate) fn full_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.name))
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|one| one.name == name)
    }
}

/// A foreign key: the table that refers, by its columns, to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) from: String,
    pub(crate) columns: BTreeSet<String>,
    pub(crate) to: String,
}

/// What a database has.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) database: String,
    /// By name.
    pub(crate) tables: BTreeMap<String, Table>,
    /// The words of its enumerations.
    pub(crate) words: BTreeMap<String, String>,
    pub(crate) references: Vec<Reference>,
    /// How its texts are encoded.
    pub(crate) encoding: String,
    /// Its server's major version.
    pub(crate) version: u32,
}

impl Facts {
    pub(crate) fn read(wire: &mut Wire, database: &str) -> Result<Facts, Failure> {
        let failed = |refusal: Refusal| refusal.of_reading(&format!("database {database}"));
        let one = |rows: Vec<String>| rows.into_iter().next().unwrap_or_default();
        let encoding = one(wire.column("SHOW server_encoding").map_err(failed)?);
        let version = one(wire.column("SHOW server_version_num").map_err(failed)?);
        let mut facts = Facts {
            database: database.to_owned(),
            encoding,
            version: version.parse::<u32>().unwrap_or_default() / 10_000,
            ..Facts::default()
        };
        let mut names = BTreeMap::new();
        for row in wire.rows(&tables_sql()).map_err(failed)? {
            let Some((table, key)) = table(row) else { continue };
            names.insert(table.oid, (table.full_name(), key));
            facts.tables.insert(table.full_name(), table);
        }
        for row in wire.rows(&columns_sql()).map_err(failed)? {
            let Some((oid, column)) = column(row) else { continue };
            let name = names.get(&oid).map(|(name, _)| name);
            if let Some(table) = name.and_then(|name| facts.tables.get_mut(name)) {
                table.columns.push(column);
            }
        }
        for (name, key) in names.values() {
            let Some(table) = facts.tables.get_mut(name) else { continue };
            let of = |number: &i32| {
                let column = table.columns.iter().find(|one| one.number == *number);
                column.map(|one| one.name.clone())
            };
            table.key = key.iter().filter_map(of).collect();
        }
        for row in wire.rows(WORDS).map_err(failed)? {
            if let [Some(oid), Some(word)] = &row[..] {
                facts.words.insert(oid.clone(), word.clone());
            }
        }
        for row in wire.rows(&references_sql()).map_err(failed)? {
            if let [Some(from), Some(columns), Some(to)] = &row[..] {
                let columns = columns.split('\u{1f}').map(str::to_owned).collect();
                facts.references.push(Reference { from: from.clone(), columns, to: to.clone() });
            }
        }
        Ok(facts)
    }
}

/// Tables whose rows can be told: no partitioned ones, whose rows their partitions have.
fn tables_sql() -> String {
    format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, COALESCE(am.amname, ''), \
           pg_relation_filepath(c.oid), \
           CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) / 8192 ELSE 0 END, \
           (SELECT string_agg(u.number::text, ' ' ORDER BY u.at) FROM pg_index i, \
             unnest(i.indkey::int2[]) WITH ORDINALITY u (number, at) \
             WHERE i.indrelid = c.oid AND i.indisprimary AND u.at <= i.indnkeyatts) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
           LEFT JOIN pg_am am ON am.oid = c.relam \
         WHERE c.relkind IN ('r', 'm', 'f') AND c.relpersistence <> 't' AND c.oid {USERS} \
           AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
         ORDER BY c.oid"
    )
}

fn columns_sql() -> String {
    format!(
        "SELECT a.attrelid, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid, \
           a.attmissingval::text, a.attgenerated, a.attidentity \
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         WHERE c.relkind IN ('r', 'm', 'f') AND c.oid {USERS} AND a.attnum > 0 AND NOT a.attisdropped \
         ORDER BY a.attrelid, a.attnum"
    )
}

/// Words by the number of each: one that is renamed changes rows without changing their pages.
const WORDS: &str = "SELECT oid, enumlabel FROM pg_enum";

fn references_sql() -> String {
    format!(
        "SELECT n.nspname || '.' || c.relname, \
           (SELECT string_agg(a.attname, chr(31)) FROM pg_attribute a \
             WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)), \
           fn.nspname || '.' || f.relname \
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
           JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class f ON f.oid = k.confrelid \
           JOIN pg_namespace fn ON fn.oid = f.relnamespace \
         WHERE k.contype = 'f' AND c.oid {USERS} ORDER BY 1, 3"
    )
}

type Row = Vec<Option<String>>;

fn letter(text: Option<String>) -> Option<char> {
    text?.chars().next()
}

/// A table without its columns, and the numbers of those of its key.
fn table(row: Row) -> Option<(Table, Vec<i32>)> {
    let mut fields = row.into_iter();
    let mut next = || fields.next().flatten();
    let table = Table {
        oid: next()?.parse().ok()?,
        schema: next()?,
        name: next()?,
        kind: letter(next())?,
        persistence: letter(next())?,
        method: next()?,
        file: next(),
        pages: next()?.parse().ok()?,
        columns: Vec::new(),
        key: Vec::new(),
    };
    let key = next().unwrap_or_default();
    Some((table, key.split(' ').filter_map(|number| number.parse().ok()).collect()))
}

fn column(row: Row) -> Option<(u32, Column)> {
    let mut fields = row.into_iter();
    let mut next = || fields.next().flatten();
    let (oid, number) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (name, written, kind) = (next()?, next()?, next()?.parse().ok()?);
    let (missing, generated, identity) = (next(), next().unwrap_or_default(), next());
    let column = Column {
        name,
        number,
        written,
        kind,
        missing,
        is_virtual: generated == "v",
        generated: !generated.is_empty(),
        always_identity: identity.as_deref() == Some("a"),
    };
    Some((oid, column))
}
