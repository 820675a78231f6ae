//! What masking must know of a database: its tables, their columns, and how they hang together.

use crate::session::{Rows, quote_identifier};
use crate::wire::Wire;
use offshoot_masking::{ColumnFacts, TableFacts, TypeClass};
use offshoot_types::Failure;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod queries;

/// The object id of a relation.
pub(super) type Oid = u32;

/// The tables of a database.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) database: String,
    pub(super) relations: BTreeMap<Oid, Relation>,
    pub(super) keys: Vec<ForeignKey>,
}

/// A table, a partitioned table or a partition.
#[derive(Debug, Default, Clone)]
pub(super) struct Relation {
    pub(super) oid: Oid,
    pub(super) schema: String,
    pub(super) name: String,
    /// It holds no rows of its own.
    pub(super) partitioned: bool,
    pub(super) is_partition: bool,
    pub(super) unlogged: bool,
    pub(super) access_method: String,
    /// None: the database's.
    pub(super) tablespace: Option<String>,
    pub(super) owner: String,
    /// As the server estimates.
    pub(super) rows: u64,
    /// Options that say how rows are stored, as `WITH` takes them.
    pub(super) options: Option<String>,
    /// Of a partition: which rows are its.
    pub(super) bound: Option<String>,
    /// Of a partitioned table.
    pub(super) partition_key: Option<PartitionKey>,
    /// By their numbers, dropped ones included.
    pub(super) columns: Vec<Column>,
    /// The columns of the primary key.
    pub(super) primary: Vec<i16>,
    pub(super) parents: Vec<Oid>,
    pub(super) children: Vec<Oid>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct PartitionKey {
    pub(super) definition: String,
    columns: Vec<i16>,
    has_expressions: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) number: i16,
    pub(super) name: String,
    pub(super) dropped: bool,
    pub(super) type_name: String,
    pub(super) collation: Option<String>,
    class: TypeClass,
    chars_max: Option<u32>,
    /// Blanks at the end mean nothing.
    pub(super) padded: bool,
    pub(super) not_null: bool,
    /// Of one that the database computes: the expression, and whether it is stored.
    pub(super) generated: Option<(String, bool)>,
    pub(super) storage: Option<&'static str>,
    pub(super) compression: Option<&'static str>,
    unique: bool,
    references: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ForeignKey {
    pub(super) name: String,
    pub(super) from: Oid,
    pub(super) to: Oid,
    pub(super) from_columns: Vec<i16>,
    pub(super) to_columns: Vec<i16>,
    /// What compares a referenced column with the one that refers to it.
    pub(super) operators: Vec<String>,
    /// Either none or all of its columns are NULL.
    pub(super) matches_full: bool,
    pub(super) validated: bool,
    /// Over periods of time.
    pub(super) temporal: bool,
}

impl Relation {
    /// As users name it.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Rows of its own.
    pub(super) fn leaf_rows(&self) -> u64 {
        if self.partitioned { 0 } else { self.rows }
    }

    /// As SQL names it.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.name))
    }

    /// Columns that are there, by their numbers.
    pub(super) fn live(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.dropped)
    }

    /// The name of a column.
    pub(super) fn column(&self, number: i16) -> Option<&str> {
        let found = self.columns.iter().find(|column| column.number == number)?;
        Some(&found.name)
    }

    /// Where a column is among those that are there.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.live().position(|column| column.name == name)
    }

    /// The columns of its primary key, if none of them is among `masked`.
    pub(super) fn key(&self, masked: &BTreeSet<String>) -> Vec<&str> {
        let names: Vec<&str> = self.primary.iter().filter_map(|at| self.column(*at)).collect();
        if names.iter().any(|name| masked.contains(*name)) { Vec::new() } else { names }
    }

    /// An SQL expression that tells which row it is: by its key, else by its place.
    pub(super) fn key_sql(&self, masked: &BTreeSet<String>) -> String {
        let tell = |name: &&str| {
            let prefix = crate::session::quote_text(&format!("{name}="));
            format!("{prefix} || {}::pg_catalog.text", quote_identifier(name))
        };
        let parts: Vec<String> = self.key(masked).iter().map(tell).collect();
        match parts.is_empty() {
            true => "'ctid=' || ctid::pg_catalog.text".to_owned(),
            false => format!("pg_catalog.concat_ws(', ', {})", parts.join(", ")),
        }
    }

    /// What rules are held against.
    pub(super) fn facts(&self) -> TableFacts {
        let column = |column: &Column| ColumnFacts {
            name: column.name.clone(),
            class: column.class.clone(),
            type_name: column.type_name.clone(),
            chars_max: column.chars_max,
            nullable: !column.not_null,
            unique: column.unique,
            references: column.references,
            generated: column.generated.is_some(),
        };
        TableFacts {
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: self.live().map(column).collect(),
        }
    }
}

impl Facts {
    /// Reads them in the database that a session is in.
    pub(super) fn read(wire: &mut Wire, database: &str) -> Result<Facts, Failure> {
        let mut rows = |sql: &str| {
            let refused = |refusal: crate::wire::Refusal| {
                refusal.into_failure(&format!("the catalog of database {database}"))
            };
            wire.rows(sql).map_err(refused)
        };
        let mut facts = Facts { database: database.to_owned(), ..Facts::default() };
        facts.add_relations(rows(queries::RELATIONS)?);
        facts.add_columns(rows(queries::COLUMNS)?);
        facts.add_parents(rows(queries::PARENTS)?);
        facts.add_unique(rows(queries::UNIQUE)?);
        facts.add_keys(rows(queries::FOREIGN_KEYS)?);
        Ok(facts)
    }

    pub(super) fn add_relations(&mut self, rows: Rows) {
        for row in rows {
            let row = Fields(row);
            let key = row.get(12).map(|definition| PartitionKey {
                definition: definition.to_owned(),
                columns: row.numbers(13),
                has_expressions: row.is_true(14),
            });
            let relation = Relation {
                oid: row.number(0),
                schema: row.text(1),
                name: row.text(2),
                partitioned: row.get(3) == Some("p"),
                is_partition: row.is_true(4),
                unlogged: row.get(5) == Some("u"),
                access_method: row.text(6),
                tablespace: row.get(7).map(str::to_owned),
                owner: row.text(8),
                rows: row.number(9),
                options: row.get(10).map(str::to_owned),
                bound: row.get(11).map(str::to_owned),
                partition_key: key,
                ..Relation::default()
            };
            self.relations.insert(relation.oid, relation);
        }
    }

    pub(super) fn add_columns(&mut self, rows: Rows) {
        for row in rows {
            let row = Fields(row);
            let Some(relation) = self.relations.get_mut(&row.number(0)) else { continue };
            let length: i32 = row.number(8);
            let (base, category) = (row.text(6), row.text(7));
            let characters = matches!(base.as_str(), "varchar" | "bpchar") && length > 4;
            let generated = row.get(12).map(|sql| (sql.to_owned(), row.get(11) != Some("v")));
            relation.columns.push(Column {
                number: row.number(1),
                name: row.text(2),
                dropped: row.is_true(3),
                type_name: row.text(4),
                collation: row.get(5).map(str::to_owned),
                class: class(&base, &category, length),
                chars_max: characters.then(|| u32::try_from(length - 4).unwrap_or(u32::MAX)),
                padded: base == "bpchar",
                not_null: row.is_true(9),
                generated,
                storage: storage(row.get(10)),
                compression: compression(row.get(13)),
                unique: false,
                references: false,
            });
        }
    }

    pub(super) fn add_parents(&mut self, rows: Rows) {
        for row in rows {
            let row = Fields(row);
            let (child, parent) = (row.number(0), row.number(1));
            if let Some(relation) = self.relations.get_mut(&child) {
                relation.parents.push(parent);
            }
            if let Some(relation) = self.relations.get_mut(&parent) {
                relation.children.push(child);
            }
        }
    }

    fn add_unique(&mut self, rows: Rows) {
        for row in rows {
            let row = Fields(row);
            let Some(relation) = self.relations.get_mut(&row.number(0)) else { continue };
            let mut columns: Vec<i16> = row.numbers(1);
            columns.truncate(row.number::<usize>(2));
            if let [only] = columns[..] {
                let unique = relation.columns.iter_mut().find(|column| column.number == only);
                unique.into_iter().for_each(|column| column.unique = true);
            }
            if row.is_true(3) {
                relation.primary = columns;
            }
        }
    }

    fn add_keys(&mut self, rows: Rows) {
        for row in rows {
            let row = Fields(row);
            let key = ForeignKey {
                name: row.text(0),
                from: row.number(1),
                to: row.number(2),
                from_columns: row.numbers(3),
                to_columns: row.numbers(4),
                operators: row.text(5).lines().map(str::to_owned).collect(),
                matches_full: row.get(6) == Some("f"),
                validated: row.is_true(7),
                temporal: row.is_true(8),
            };
            for (table, columns) in [(key.from, &key.from_columns), (key.to, &key.to_columns)] {
                let Some(relation) = self.relations.get_mut(&table) else { continue };
                for column in &mut relation.columns {
                    column.references |= columns.contains(&column.number);
                }
            }
            self.keys.push(key);
        }
    }

    /// What rules may name: tables that are no partitions.
    pub(super) fn named(&self) -> impl Iterator<Item = &Relation> {
        self.relations.values().filter(|relation| !relation.is_partition)
    }

    /// A relation and all above it, the nearest first.
    pub(super) fn above(&self, oid: Oid) -> Vec<&Relation> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut waiting = VecDeque::from([oid]);
        while let Some(oid) = waiting.pop_front() {
            let Some(relation) = self.relations.get(&oid).filter(|_| seen.insert(oid)) else {
                continue;
            };
            found.push(relation);
            waiting.extend(&relation.parents);
        }
        found
    }

    /// A relation and all below it, parents first.
    pub(super) fn tree(&self, root: Oid) -> Vec<&Relation> {
        let (mut found, mut waiting) = (Vec::new(), vec![root]);
        let mut seen = BTreeSet::new();
        while let Some(oid) = waiting.pop() {
            let Some(relation) = self.relations.get(&oid).filter(|_| seen.insert(oid)) else {
                continue;
            };
            found.push(relation);
            waiting.extend(relation.children.iter().rev());
        }
        found
    }

    /// Whether masks of these columns may move a row to another partition.
    pub(super) fn moves_rows(&self, root: Oid, masked: &BTreeSet<String>) -> bool {
        self.tree(root).iter().any(|relation| {
            let Some(key) = &relation.partition_key else { return false };
            let is_masked =
                |at: &i16| relation.column(*at).is_some_and(|name| masked.contains(name));
            // What an expression is computed from is not looked at.
            let computed = |at: &i16| {
                let of = relation.columns.iter().find(|column| column.number == *at);
                of.is_some_and(|column| column.generated.is_some())
            };
            key.has_expressions || key.columns.iter().any(|at| is_masked(at) || computed(at))
        })
    }
}

/// A row of texts.
pub(super) struct Fields(pub(super) Vec<Option<String>>);

impl Fields {
    fn get(&self, at: usize) -> Option<&str> {
        self.0.get(at)?.as_deref()
    }

    fn text(&self, at: usize) -> String {
        self.get(at).unwrap_or_default().to_owned()
    }

    pub(super) fn number<T: std::str::FromStr + Default>(&self, at: usize) -> T {
        self.get(at).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn numbers(&self, at: usize) -> Vec<i16> {
        let numbers = self.get(at).unwrap_or_default().split_whitespace();
        numbers.filter_map(|text| text.parse().ok()).collect()
    }

    fn is_true(&self, at: usize) -> bool {
        self.get(at) == Some("t")
    }
}

fn storage(letter: Option<&str>) -> Option<&'static str> {
    match letter? {
        "p" => Some("PLAIN"),
        "e" => Some("EXTERNAL"),
        "m" => Some("MAIN"),
        "x" => Some("EXTENDED"),
        _ => None,
    }
}

fn compression(letter: Option<&str>) -> Option<&'static str> {
    match letter? {
        "p" => Some("pglz"),
        "l" => Some("lz4"),
        _ => None,
    }
}

/// The class of a type by the name of the one below all domains, its category and its modifier.
fn class(base: &str, category: &str, modifier: i32) -> TypeClass {
    match base {
        "text" | "varchar" | "bpchar" | "name" | "citext" => TypeClass::Text,
        "int2" => TypeClass::Integer { bytes: 2 },
        "int4" => TypeClass::Integer { bytes: 4 },
        "int8" => TypeClass::Integer { bytes: 8 },
        // The scale has 11 bits and a sign.
        "numeric" if modifier >= 4 => TypeClass::Number {
            precision: u32::try_from((modifier - 4) >> 16 & 0xffff).ok(),
            scale: Some((((modifier - 4) & 0x7ff) ^ 1024) - 1024),
        },
        "numeric" => TypeClass::Number { precision: None, scale: None },
        "float4" | "float8" => TypeClass::Float,
        "bool" => TypeClass::Boolean,
        "date" => TypeClass::Date,
        "timestamp" => TypeClass::Timestamp,
        "timestamptz" => TypeClass::TimestampTz,
        "time" | "timetz" => TypeClass::Time,
        "interval" => TypeClass::Interval,
        "uuid" => TypeClass::Uuid,
        "json" | "jsonb" => TypeClass::Json,
        "xml" => TypeClass::Xml,
        "bytea" => TypeClass::Bytes,
        _ if category == "S" => TypeClass::Text,
        _ => TypeClass::Other,
    }
}

#[cfg(test)]
mod tests;
