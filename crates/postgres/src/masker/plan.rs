//! What is to be done in a database: rules held against its tables.
//!
//! A rule for a partitioned table holds for its partitions, one for a table that others inherit from for these as well,
//! unless they have a nearer one. So each relation that holds rows has rules of several tables, nearest first.

use super::facts::{Facts, Oid, Relation};
use super::rows::{Change, Group, RowPlan, Written};
use crate::session::quote_identifier;
use offshoot_masking::{BoundColumn, Mask, MaskingKey, Ruleset, Treatment};
use std::collections::{BTreeMap, BTreeSet};

mod keys;

/// What is to be done in a database.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) facts: Facts,
    /// The tables that rules name.
    pub(super) named: Vec<Oid>,
    pub(super) problems: Vec<String>,
    pub(super) idle: Vec<String>,
    pub(super) unruled: Vec<String>,
    /// Tables to empty, with those below them.
    pub(super) emptied: Vec<Oid>,
    /// The columns that rules mask, and how.
    pub(super) algorithms: BTreeMap<(Oid, String), Applied>,
    /// Columns that rules keep as they are.
    pub(super) kept: Vec<String>,
    /// Tables, and columns of theirs that together could name a person.
    pub(super) quasi_identifiers: Vec<(Oid, Vec<String>)>,
    /// Which rows stay, by the relation that holds them.
    pub(super) keeps: BTreeMap<Oid, Keep>,
    /// Rules by the relation that holds rows, or is above some that do.
    rules: BTreeMap<Oid, Vec<Rule>>,
}

/// How a column is masked, for reports and errors.
#[derive(Clone)]
pub(super) struct Applied {
    pub(super) algorithm: String,
    pub(super) uniqueness: &'static str,
    pub(super) learned: String,
    /// Whether a condition says in which rows.
    pub(super) conditional: bool,
}

/// Which rows of a relation stay.
#[derive(Clone)]
pub(super) struct Keep {
    /// The table whose rule says it.
    pub(super) table: Oid,
    /// What that calls the table.
    pub(super) alias: String,
    pub(super) condition: String,
}

/// The rule of a table, as it holds for one relation.
#[derive(Clone)]
struct Rule {
    /// The table that it names.
    table: Oid,
    condition: Option<String>,
    /// By the names of columns.
    masks: BTreeMap<String, How>,
}

/// A mask that several relations share.
#[derive(Clone)]
enum How {
    Values(std::sync::Arc<dyn offshoot_masking::ValueMask>),
    Sql(String),
}

/// A rewrite of relations that must be done at once.
pub(super) struct Job {
    /// Which of the named tables it belongs to, if to any.
    pub(super) named: Option<usize>,
    /// Where rows are read.
    pub(super) sources: Vec<Oid>,
    /// The partitioned table through which rows are written, if masks may move them.
    pub(super) through: Option<Oid>,
    /// As the server estimates.
    pub(super) rows: u64,
}

impl Job {
    /// A table that no rule masks.
    pub(super) fn unmasked(plan: &Plan, table: Oid) -> Job {
        Job { named: plan.named_of(table), sources: vec![table], through: None, rows: 0 }
    }
}

impl Plan {
    pub(super) fn new(facts: Facts, rules: &Ruleset, key: &MaskingKey) -> Plan {
        let tables: Vec<Oid> = facts.named().map(|relation| relation.oid).collect();
        let described: Vec<_> = facts.named().map(Relation::facts).collect();
        let bound = rules.bind_in(&facts.database, &described, key);
        let mut plan = Plan {
            facts,
            problems: bound.problems,
            idle: bound.idle,
            unruled: bound.unruled,
            kept: bound.kept,
            ..Plan::default()
        };
        for one in bound.quasi_identifiers {
            let facts = described.get(one.table).map_or(&[][..], |facts| &facts.columns);
            let names = one.columns.iter().filter_map(|at| facts.get(*at));
            let names = names.map(|column| column.name.clone()).collect();
            plan.quasi_identifiers.extend(tables.get(one.table).map(|oid| (*oid, names)));
        }
        let (mut own, mut keeps) = (BTreeMap::new(), BTreeMap::new());
        for table in bound.tables {
            let Some(oid) = tables.get(table.table).copied() else { continue };
            plan.named.push(oid);
            match table.treatment {
                Treatment::Empty => plan.emptied.push(oid),
                Treatment::Mask { condition, keep_rows, columns } => {
                    keeps.extend(keep_rows.map(|condition| (oid, condition)));
                    let named = described.get(table.table).map_or(&[][..], |facts| &facts.columns);
                    for column in &columns {
                        if let Some(facts) = named.get(column.column) {
                            let place = (oid, facts.name.clone());
                            let applied = Applied {
                                algorithm: column.algorithm.clone(),
                                uniqueness: column.uniqueness,
                                learned: column.learned.clone(),
                                conditional: condition.is_some(),
                            };
                            plan.algorithms.insert(place, applied);
                        }
                    }
                    let name = |at: usize| named.get(at).map(|column| column.name.clone());
                    let how = |column: BoundColumn| {
                        Some((
                            name(column.column)?,
                            match column.mask {
                                Mask::Values(mask) => How::Values(mask),
                                Mask::Sql(expression) => How::Sql(expression),
                            },
                        ))
                    };
                    let masks = columns.into_iter().filter_map(how).collect();
                    own.insert(oid, Rule { table: oid, condition, masks });
                }
            }
        }
        plan.spread(&own);
        plan.spread_keeps(&keeps);
        plan.find_problems();
        plan
    }

    /// Gives each relation the rules of the tables above it.
    fn spread(&mut self, own: &BTreeMap<Oid, Rule>) {
        let mut spread: BTreeMap<Oid, Vec<Rule>> = BTreeMap::new();
        for relation in self.facts.relations.values() {
            let (mut nearest, mut masked) = (Vec::new(), BTreeSet::new());
            for table in self.facts.above(relation.oid) {
                if let Some(rule) = own.get(&table.oid) {
                    let mut rule = rule.clone();
                    rule.masks.retain(|column, _| masked.insert(column.clone()));
                    nearest.extend((!rule.masks.is_empty()).then_some(rule));
                }
            }
            if !nearest.is_empty() {
                spread.insert(relation.oid, nearest);
            }
        }
        // What a rule of a table above reaches has one.
        let mut ruled = BTreeSet::new();
        for (oid, rules) in &spread {
            let name = self.facts.relations.get(oid).map(Relation::name).unwrap_or_default();
            let columns = rules.iter().flat_map(|rule| rule.masks.keys());
            ruled.extend(columns.map(|column| format!("{name}.{column}")));
        }
        let place = |line: &str| line.split_once(": ").map(|(place, _)| ruled.contains(place));
        self.unruled.retain(|line| place(line) != Some(true));
        self.rules = spread;
    }

    /// Gives each relation that holds rows the nearest condition for them.
    fn spread_keeps(&mut self, own: &BTreeMap<Oid, String>) {
        for relation in self.facts.relations.values().filter(|one| !one.partitioned) {
            let above = self.facts.above(relation.oid);
            let found = above.iter().find_map(|table| Some((table, own.get(&table.oid)?)));
            if let Some((table, condition)) = found {
                let alias = quote_identifier(&table.name);
                let keep = Keep { table: table.oid, alias, condition: condition.clone() };
                self.keeps.insert(relation.oid, keep);
            }
        }
    }

    fn find_problems(&mut self) {
        for oid in self.rules.keys() {
            let Some(relation) = self.facts.relations.get(oid) else { continue };
            if !relation.partitioned && relation.access_method != "heap" {
                self.problems.push(format!(
                    "{}: its access method {} is not supported",
                    relation.name(),
                    relation.access_method
                ));
            }
        }
        let found = keys::problems(self);
        self.problems.extend(found);
    }

    /// The masked columns of a relation.
    pub(super) fn masked(&self, oid: Oid) -> BTreeSet<String> {
        let rules = self.rules.get(&oid).into_iter().flatten();
        rules.flat_map(|rule| rule.masks.keys().cloned()).collect()
    }

    /// The algorithm that masks a column of a relation: its own table's, else that of the nearest table above.
    pub(super) fn algorithm(&self, oid: Oid, column: &str) -> String {
        let mut rules = self.rules.get(&oid).into_iter().flatten();
        let rule = rules.find(|rule| rule.masks.contains_key(column));
        let place = rule.map(|rule| (rule.table, column.to_owned()));
        let applied = place.and_then(|place| self.algorithms.get(&place));
        applied.map(|applied| applied.algorithm.clone()).unwrap_or_default()
    }

    /// Relations whose rows change: those with rules and those that are emptied.
    pub(super) fn changed(&self) -> BTreeSet<Oid> {
        self.rules.keys().copied().chain(self.empties()).collect()
    }

    /// The tables to empty and all below them.
    pub(super) fn empties(&self) -> BTreeSet<Oid> {
        let below = |oid: &Oid| self.facts.tree(*oid).into_iter().map(|one| one.oid);
        self.emptied.iter().flat_map(below).collect()
    }

    /// What is rewritten, largest first.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let (mut jobs, mut moving) = (Vec::new(), BTreeMap::<Oid, bool>::new());
        let emptied = self.empties();
        for oid in self.rules.keys().filter(|oid| !emptied.contains(oid)) {
            let root = self.root(*oid);
            let partitioned =
                |one: Oid| self.facts.relations.get(&one).is_none_or(|one| one.partitioned);
            let known = moving.get(&root).copied();
            let moves = known.unwrap_or_else(|| {
                partitioned(root) && self.facts.moves_rows(root, &self.masked(root))
            });
            moving.insert(root, moves);
            let sources: Vec<Oid> = match moves {
                // Done with the first of its relations.
                true if known.is_some() => continue,
                true => self.facts.tree(root).iter().map(|one| one.oid).collect(),
                false => vec![*oid],
            };
            let sources: Vec<Oid> = sources.into_iter().filter(|one| !partitioned(*one)).collect();
            let rows = sources.iter().filter_map(|one| self.facts.relations.get(one));
            let job = Job {
                named: self.named_of(*oid),
                rows: rows.map(|one| one.rows).sum(),
                through: moves.then_some(root),
                sources,
            };
            jobs.extend((!job.sources.is_empty()).then_some(job));
        }
        jobs.sort_by_key(|job| std::cmp::Reverse(job.rows));
        jobs
    }

    /// The partitioned table that a partition belongs to in the end; another relation itself.
    fn root(&self, oid: Oid) -> Oid {
        let mut root = oid;
        while let Some(relation) = self.facts.relations.get(&root)
            && relation.is_partition
            && let Some(parent) = relation.parents.first()
        {
            root = *parent;
        }
        root
    }

    /// Which of the named tables a relation's nearest rule names.
    pub(super) fn named_of(&self, oid: Oid) -> Option<usize> {
        let by_rule = self.rules.get(&oid).and_then(|rules| rules.first()).map(|rule| rule.table);
        let table = by_rule.or_else(|| self.keeps.get(&oid).map(|keep| keep.table))?;
        self.named.iter().position(|one| *one == table)
    }

    /// What expressions call a relation: as its nearest rule does.
    fn alias(&self, relation: &Relation) -> String {
        let rule = self.rules.get(&relation.oid).and_then(|rules| rules.first());
        let table = rule.and_then(|rule| self.facts.relations.get(&rule.table));
        quote_identifier(&table.unwrap_or(relation).name)
    }

    /// The expressions that rules of a relation have, and what they call it.
    pub(super) fn expressions(&self, relation: &Relation) -> (String, Vec<&str>) {
        let mut all = Vec::new();
        for rule in self.rules.get(&relation.oid).into_iter().flatten() {
            all.extend(rule.condition.as_deref());
            all.extend(rule.masks.values().filter_map(|how| match how {
                How::Sql(expression) => Some(expression.as_str()),
                How::Values(_) => None,
            }));
        }
        (self.alias(relation), all)
    }

    /// How rows of `source` are read and what becomes of them, so that they can be written into `target`: the relation
    /// itself, or the partitioned table above.
    pub(super) fn reading(&self, source: Oid, target: Oid) -> Option<Reading> {
        let (source, target) =
            (self.facts.relations.get(&source)?, self.facts.relations.get(&target)?);
        Some(Reader { plan: self, source, target }.read())
    }
}

/// How a relation is read.
pub(super) struct Reading {
    /// A `SELECT` of rows.
    pub(super) query: String,
    /// What it selects, and what it calls the table.
    pub(super) selected: Vec<String>,
    pub(super) alias: String,
    pub(super) rows: RowPlan,
    /// A `SELECT` of what tells each row.
    pub(super) told: String,
}

impl Reading {
    /// Leaves rows out.
    pub(super) fn only(&mut self, condition: &str) {
        for query in [&mut self.query, &mut self.told] {
            *query += &format!(" WHERE {condition}");
        }
    }
}

struct Reader<'a> {
    plan: &'a Plan,
    source: &'a Relation,
    target: &'a Relation,
}

impl Reader<'_> {
    fn read(&self) -> Reading {
        // Values of the row first, by the target's columns; then what the database is asked besides.
        let columns: Vec<&str> = self.target.live().map(|column| column.name.as_str()).collect();
        let mut selected: Vec<String> = columns.iter().map(|name| quote_identifier(name)).collect();
        let rules = self.plan.rules.get(&self.source.oid).map_or(&[][..], Vec::as_slice);
        let mut groups = Vec::new();
        let mut changes: BTreeMap<&str, Change> = BTreeMap::new();
        for (number, rule) in rules.iter().enumerate() {
            groups.push(self.group(rule, &mut selected));
            for (column, how) in &rule.masks {
                let change = match how {
                    How::Values(mask) => {
                        let place = self.place(rule, column);
                        Change::Masked { group: number, place, mask: mask.clone() }
                    }
                    How::Sql(expression) => {
                        selected.push(computed(column, expression, rule.condition.as_deref()));
                        Change::Computed { group: number, field: selected.len() - 1 }
                    }
                };
                changes.insert(column, change);
            }
        }
        let masked = self.plan.masked(self.source.oid);
        let key = self.source.key(&masked);
        let mut told: Vec<(String, usize)> = Vec::new();
        for name in &key {
            told.extend(self.target.position(name).map(|at| ((*name).to_owned(), at)));
        }
        if told.is_empty() {
            selected.push("ctid".to_owned());
            told.push(("ctid".to_owned(), selected.len() - 1));
        }
        let written = self.target.live().enumerate().filter(|(_, one)| one.generated.is_none());
        let written = written.map(|(field, column)| Written {
            column: column.name.clone(),
            field,
            not_null: column.not_null,
            change: changes.remove(column.name.as_str()).unwrap_or(Change::Kept),
        });
        let written = written.collect();
        let padded = self.target.live().map(|column| column.padded).collect();
        let alias = self.plan.alias(self.source);
        let from = format!("ONLY {} AS {alias}", self.source.quoted());
        let fields = selected.len();
        Reading {
            query: format!("SELECT {} FROM {from}", selected.join(", ")),
            selected,
            alias,
            rows: RowPlan { fields, written, groups, key: told, padded },
            told: format!("SELECT {} FROM {from}", self.source.key_sql(&masked)),
        }
    }

    fn group(&self, rule: &Rule, selected: &mut Vec<String>) -> Group {
        let flag = rule.condition.as_ref().map(|condition| {
            selected.push(format!("({condition}) IS TRUE"));
            selected.len() - 1
        });
        let by_value = rule.masks.values().any(|how| matches!(how, How::Values(_)));
        let table = self.plan.facts.relations.get(&rule.table).filter(|_| by_value);
        let columns = table.into_iter().flat_map(Relation::live);
        let layout = columns.filter_map(|column| self.target.position(&column.name)).collect();
        Group { flag, layout }
    }

    fn place(&self, rule: &Rule, column: &str) -> usize {
        let table = self.plan.facts.relations.get(&rule.table);
        table.and_then(|table| table.position(column)).unwrap_or_default()
    }
}

/// The database's mask of a value that is not NULL.
fn computed(column: &str, expression: &str, condition: Option<&str>) -> String {
    let column = quote_identifier(column);
    let when = condition.map(|condition| format!("({condition}) AND ")).unwrap_or_default();
    format!("CASE WHEN {when}{column} IS NOT NULL THEN ({expression}) END")
}

#[cfg(test)]
mod tests;
