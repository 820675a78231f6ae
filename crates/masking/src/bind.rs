//! Holding rules against tables.
//!
//! Of several rules for a column the nearest one is taken: one for the table's very name before one for a pattern of
//! tables, then one that names the database before one that does not, then one for the column's very name before one for
//! a pattern of columns. Two that are equally near are a
//! problem, never a choice. A table that a pattern empties is emptied, whatever other patterns mask in it; a rule for the
//! table's very name decides before both.

mod fitted;

use crate::algorithm::{Length, Target, Uniqueness};
use crate::algorithms;
use crate::discovery;
use crate::facts::{ColumnFacts, TableFacts};
use crate::key::MaskingKey;
use crate::mask::Mask;
use crate::ruleset::{ColumnRule, Ruleset, TableRule};

/// Rules that were held against tables.
#[derive(Debug, Default)]
pub struct Bound {
    /// The tables to treat.
    pub tables: Vec<BoundTable>,
    /// What keeps the rules from being applied, one line each. Unless there is none, nothing may be masked.
    pub problems: Vec<String>,
    /// Rules that met no table or column.
    pub idle: Vec<String>,
    /// Columns without a rule that look as if they needed one, and why.
    pub unruled: Vec<String>,
    /// Columns that rules keep as they are.
    pub kept: Vec<String>,
    /// Columns that together could name a person: how many rows share each combination is to be counted.
    pub quasi_identifiers: Vec<BoundQuasiIdentifiers>,
}

/// Columns of a table that together could name a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundQuasiIdentifiers {
    /// Which of the tables.
    pub table: usize,
    /// Which of its columns.
    pub columns: Vec<usize>,
}

/// A table to treat.
#[derive(Debug)]
pub struct BoundTable {
    /// Which of the tables.
    pub table: usize,
    /// What to do with it.
    pub treatment: Treatment,
}

/// What to do with a table.
#[derive(Debug)]
pub enum Treatment {
    /// Remove all rows.
    Empty,
    /// Mask columns.
    Mask {
        /// An SQL condition: only rows for which it holds are masked.
        condition: Option<String>,
        /// An SQL condition: only rows for which it holds stay.
        keep_rows: Option<String>,
        /// The columns.
        columns: Vec<BoundColumn>,
    },
}

/// A column to mask.
#[derive(Debug)]
pub struct BoundColumn {
    /// Which of the table's columns.
    pub column: usize,
    /// The name of the algorithm, for reports and errors.
    pub algorithm: String,
    /// `permutation`, `distinct` or `lossy`.
    pub uniqueness: &'static str,
    /// What somebody who has its masks, but not the key, learns.
    pub learned: String,
    /// How.
    pub mask: Mask,
}

impl Ruleset {
    /// Holds the rules against tables of a database without a name.
    pub fn bind(&self, tables: &[TableFacts], key: &MaskingKey) -> Bound {
        self.bind_in("", tables, key)
    }

    /// Holds the rules against the tables of a database.
    pub fn bind_in(&self, database: &str, tables: &[TableFacts], key: &MaskingKey) -> Bound {
        let met = self.tables.iter().map(|rule| Met::new(rule.columns.len())).collect();
        let mut binder = Binder { ruleset: self, database, key, met, bound: Bound::default() };
        for (index, table) in tables.iter().enumerate() {
            binder.table(index, table);
        }
        binder.note_idle();
        binder.bound
    }
}

impl TableRule {
    /// Whether it is for a table, with or without its database.
    fn is_for(&self, database: &str, table: &str) -> bool {
        self.pattern.matches(table) || self.names_database(database, table)
    }

    /// Whether it names a table and its database. A schema or table may have a dot in its name, so
    /// `a.b.c` may be either.
    fn names_database(&self, database: &str, table: &str) -> bool {
        let qualified = self.qualified.as_ref();
        qualified.is_some_and(|pattern| pattern.matches(&format!("{database}.{table}")))
    }
}

/// What a table's rules have met.
struct Met {
    table: bool,
    columns: Vec<bool>,
}

impl Met {
    fn new(columns: usize) -> Met {
        Met { table: false, columns: vec![false; columns] }
    }
}

/// A column's rule.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    /// Whether it names the table itself, its database, and the column itself.
    nearness: (bool, bool, bool),
    rule: &'a ColumnRule,
    table: &'a TableRule,
}

struct Binder<'a> {
    ruleset: &'a Ruleset,
    database: &'a str,
    key: &'a MaskingKey,
    met: Vec<Met>,
    bound: Bound,
}

impl<'a> Binder<'a> {
    fn table(&mut self, index: usize, table: &TableFacts) {
        let name = format!("{}.{}", table.schema, table.name);
        let mut rules = Vec::new();
        for (at, rule) in self.ruleset.tables.iter().enumerate() {
            if rule.is_for(self.database, &name) {
                self.met[at].table = true;
                rules.push((at, rule));
            }
        }
        let exact = rules.iter().any(|(_, rule)| rule.pattern.is_exact());
        let decides = |rule: &TableRule| !exact || rule.pattern.is_exact();
        if rules.iter().any(|(_, rule)| decides(rule) && rule.empty) {
            self.bound.tables.push(BoundTable { table: index, treatment: Treatment::Empty });
            self.note_met(&rules, table);
            return;
        }
        let mut chosen: Vec<Option<Chosen<'a>>> = Vec::new();
        for column in &table.columns {
            chosen.push(self.rule(&format!("{name}.{}", column.name), &rules, (&name, column)));
        }
        self.note_missing(&name, &rules, table);
        self.quasi_identifiers(index, &name, &rules, table);
        let Some(condition) = self.condition(&name, &chosen) else { return };
        let mut columns = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let place = format!("{name}.{}", column.name);
            let Some(Chosen { rule, .. }) = chosen[at] else {
                if let Some(finding) = discovery::by_name(column, &table.name) {
                    self.bound.unruled.push(format!("{place}: {}", finding.why));
                }
                continue;
            };
            let target = Target { column, columns: &table.columns, key: self.key };
            match bind_column(rule, &target, condition.is_some()) {
                Ok(None) => self.bound.kept.push(place),
                Ok(Some(mask)) => columns.push(BoundColumn {
                    column: at,
                    algorithm: rule.name.clone(),
                    uniqueness: rule.algorithm.uniqueness().word(),
                    learned: algorithms::learned(&rule.name),
                    mask,
                }),
                Err(why) => {
                    self.bound.problems.push(format!("{place}: '{}': {why}", rule.name));
                }
            }
        }
        let keep_rows = self.keep_rows(&name, &rules);
        if !columns.is_empty() || keep_rows.is_some() {
            let treatment = Treatment::Mask { condition, keep_rows, columns };
            self.bound.tables.push(BoundTable { table: index, treatment });
        }
    }

    /// Columns that rules name as quasi-identifiers. A pattern of tables holds for those that have all of them.
    fn quasi_identifiers(
        &mut self,
        index: usize,
        name: &str,
        rules: &[(usize, &TableRule)],
        table: &TableFacts,
    ) {
        for (_, rule) in rules {
            for names in &rule.quasi_identifiers {
                let place = |one: &String| table.columns.iter().position(|at| at.name == *one);
                let missing = names.iter().find(|one| place(one).is_none());
                if let Some(missing) = missing {
                    if rule.pattern.is_exact() {
                        self.bound.problems.push(format!(
                            "{name}: `quasi_identifiers` names a column '{missing}' that the table does not have"
                        ));
                    }
                    continue;
                }
                let columns: Vec<usize> = names.iter().filter_map(place).collect();
                let one = BoundQuasiIdentifiers { table: index, columns };
                if !self.bound.quasi_identifiers.contains(&one) {
                    self.bound.quasi_identifiers.push(one);
                }
            }
        }
    }

    /// The condition that all rules for columns of a table agree on; none if they do not.
    fn condition(&mut self, name: &str, chosen: &[Option<Chosen<'_>>]) -> Option<Option<String>> {
        let masking = || chosen.iter().flatten().filter(|chosen| !chosen.rule.algorithm.keeps());
        let first = masking().next().and_then(|chosen| chosen.table.condition.clone());
        match masking().find(|chosen| chosen.table.condition != first) {
            None => Some(first),
            Some(other) => {
                self.bound.problems.push(format!(
                    "{name}: rules for its columns differ in `where`, one of them in '{}': give all the same",
                    other.table.text
                ));
                None
            }
        }
    }

    /// Which rows of a table stay, by the nearest rule that says it.
    fn keep_rows(&mut self, name: &str, rules: &[(usize, &TableRule)]) -> Option<String> {
        let nearness =
            |rule: &TableRule| (rule.pattern.is_exact(), rule.names_database(self.database, name));
        let says = rules.iter().map(|(_, rule)| *rule).filter(|rule| rule.keep_rows.is_some());
        let nearest = says.clone().map(nearness).max()?;
        let mut chosen = says.filter(|rule| nearness(rule) == nearest);
        let first = chosen.next()?;
        if let Some(rival) = chosen.find(|one| one.keep_rows != first.keep_rows) {
            self.bound.problems.push(format!(
                "{name}: two rules say which rows stay, of '{}' and '{}': name the table in one",
                first.text, rival.text
            ));
        }
        first.keep_rows.clone()
    }

    /// Notes which rules would have met columns of a table that is emptied.
    fn note_met(&mut self, rules: &[(usize, &TableRule)], table: &TableFacts) {
        for (at, rule) in rules {
            for (number, column) in rule.columns.iter().enumerate() {
                let met = table.columns.iter().any(|facts| column.pattern.matches(&facts.name));
                self.met[*at].columns[number] |= met;
            }
        }
    }

    /// The rule for a column.
    fn rule(
        &mut self,
        place: &str,
        rules: &[(usize, &'a TableRule)],
        (of, column): (&str, &ColumnFacts),
    ) -> Option<Chosen<'a>> {
        let mut best: Option<Chosen<'a>> = None;
        let mut rival: Option<&'a TableRule> = None;
        for (at, table) in rules {
            for (number, rule) in table.columns.iter().enumerate() {
                if !rule.pattern.matches(&column.name) {
                    continue;
                }
                self.met[*at].columns[number] = true;
                let nearness = (
                    table.pattern.is_exact(),
                    table.names_database(self.database, of),
                    rule.pattern.is_exact(),
                );
                match &best {
                    Some(known) if known.nearness > nearness => {}
                    Some(known) if known.nearness == nearness => rival = Some(*table),
                    _ => {
                        rival = None;
                        best = Some(Chosen { nearness, rule, table });
                    }
                }
            }
        }
        if let (Some(rival), Some(best)) = (rival, &best) {
            self.bound.problems.push(format!(
                "{place}: two rules fit it equally, of '{}' and '{}': name table and column in one",
                best.table.text, rival.text
            ));
        }
        best
    }

    /// Columns that are named beside their table's very name must be there.
    fn note_missing(&mut self, name: &str, rules: &[(usize, &TableRule)], table: &TableFacts) {
        for (at, rule) in rules.iter().filter(|(_, rule)| rule.pattern.is_exact()) {
            for (number, column) in rule.columns.iter().enumerate() {
                if !self.met[*at].columns[number] && column.pattern.is_exact() {
                    self.met[*at].columns[number] = true;
                    let known: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
                    self.bound.problems.push(format!(
                        "{name}.{}: the table has no such column; it has: {}",
                        column.text,
                        known.join(", ")
                    ));
                }
            }
        }
    }

    fn note_idle(&mut self) {
        for (rule, met) in self.ruleset.tables.iter().zip(&self.met) {
            if !met.table {
                self.bound.idle.push(format!("{}: no such table", rule.text));
                continue;
            }
            for (column, met) in rule.columns.iter().zip(&met.columns) {
                if !met {
                    self.bound.idle.push(format!("{}.{}: no such column", rule.text, column.text));
                }
            }
        }
    }
}

/// The mask of a column; none if it is kept as it is.
fn bind_column(
    rule: &ColumnRule,
    target: &Target<'_>,
    conditional: bool,
) -> Result<Option<Mask>, String> {
    let (algorithm, column) = (&rule.algorithm, target.column);
    if algorithm.keeps() {
        return Ok(None);
    }
    if column.generated {
        return Err("the database computes it: give the columns it is computed from a rule".into());
    }
    if !algorithm.fits(&column.class) {
        let is = column.class.title();
        return Err(format!(
            "its algorithm does not fit; the column is {is} ({})",
            column.type_name
        ));
    }
    if algorithm.gives_null() && !column.nullable {
        return Err("its mask may be NULL, which the column does not take".into());
    }
    if let (Length::AtMost(chars), Some(max)) = (algorithm.length(), column.chars_max)
        && chars > max
    {
        return Err(format!("its masks have up to {chars} characters, the column takes {max}"));
    }
    if column.unique {
        match algorithm.uniqueness() {
            Uniqueness::Lossy => {
                return Err("no two rows may hold the same value, and its algorithm may give two \
                            values the same mask: take one that keeps values apart, such as \
                            character-mapping, fpe or email"
                    .into());
            }
            Uniqueness::Permutation if conditional => {
                return Err("no two rows may hold the same value, and with `where` a mask may be \
                            equal to a value that stays: leave `where` out"
                    .into());
            }
            _ => {}
        }
    }
    if column.references {
        if conditional {
            return Err(
                "it joins tables, and with `where` only some of its values would be masked: \
                        leave `where` out"
                    .into(),
            );
        }
        if algorithm.per().is_some() {
            return Err("it joins tables, so its mask may not depend on another column: leave \
                        `per` out"
                .into());
        }
    }
    target.per(algorithm.per())?;
    match algorithm.bind(target)? {
        Mask::Sql(expression) => Ok(Some(Mask::Sql(expression))),
        Mask::Values(mask) => {
            let cuts = algorithm.length() == Length::Cut;
            Ok(Some(Mask::Values(fitted::fit(mask, column, cuts))))
        }
    }
}

#[cfg(test)]
mod tests;
