//! Rules as they were written.

use crate::algorithm::Algorithm;
use crate::algorithms;
use crate::document;
use crate::node::Node;
use crate::parameters::{Wrong, algorithm_name, read_rule};
use crate::pattern::Pattern;
use offshoot_domain::ObjectName;
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;

/// Rules that were understood, not yet bound to tables.
#[derive(Debug)]
pub struct Ruleset {
    key: ObjectName,
    k: u64,
    pub(crate) tables: Vec<TableRule>,
}

/// What is said of tables.
#[derive(Debug)]
pub(crate) struct TableRule {
    /// As it was written.
    pub text: String,
    /// Of `schema.table`.
    pub pattern: Pattern,
    /// Of `database.schema.table`, if the name has so many parts.
    pub qualified: Option<Pattern>,
    /// Which rows are masked.
    pub condition: Option<String>,
    /// Which rows stay; none: all.
    pub keep_rows: Option<String>,
    /// Whether its rows are removed.
    pub empty: bool,
    /// What is done with its columns.
    pub columns: Vec<ColumnRule>,
    /// Names of columns that together could name a person.
    pub quasi_identifiers: Vec<Vec<String>>,
}

/// What is done with columns.
#[derive(Debug)]
pub(crate) struct ColumnRule {
    /// As it was written.
    pub text: String,
    /// Of their names.
    pub pattern: Pattern,
    /// The name of the algorithm.
    pub name: String,
    /// Masks them.
    pub algorithm: Arc<dyn Algorithm>,
}

/// How many rows should share each combination of quasi-identifiers, if the rules do not say.
const K: u64 = 5;
const K_MAX: u64 = 1_000_000;
/// The most columns that can be counted together.
const QUASI_IDENTIFIERS_MAX: usize = 32;

const EXAMPLE: &str = "begin as in `{version: 1, key: main, tables: {\"public.customers\": {columns: {email: email}}}}`";

impl Ruleset {
    /// Reads rules in YAML, and so in JSON, or in TOML.
    ///
    /// # Errors
    /// `InvalidInput` naming table and column, what is wrong and what is possible.
    pub fn parse(text: &str) -> Result<Ruleset, Failure> {
        let node = document::read(text)?;
        let Node::Map(map) = node else {
            return Err(refuse(format!("the rules are {}", node.title()), EXAMPLE));
        };
        let (mut version, mut key, mut tables, mut k) = (None, None, None, None);
        for (name, node) in map {
            match name.as_str() {
                "version" => version = Some(node),
                "key" => key = Some(node),
                "tables" => tables = Some(node),
                "k_anonymity" => k = Some(node),
                _ => {
                    let what = format!("rules have no field '{name}'");
                    return Err(refuse(what, "possible are: version, key, k_anonymity, tables"));
                }
            }
        }
        match version.and_then(|version| version.scalar()).as_deref() {
            Some("1") => {}
            Some(_) => return Err(refuse("rules of this version are not known", "use version 1")),
            None => return Err(refuse("`version` is missing", "add `version: 1`")),
        }
        let key = key.and_then(|key| key.scalar()).ok_or_else(|| {
            refuse("`key` is missing", "name the key to mask with, as in `key: main`")
        })?;
        let key = key.parse().map_err(|failure: Failure| {
            refuse(format!("`key`: {}", failure.message), &failure.hint)
        })?;
        let Some(Node::Map(tables)) = tables else {
            return Err(refuse("`tables` is missing, or is no map", EXAMPLE));
        };
        let tables = tables.into_iter().map(|(name, node)| table(name, node));
        let k = match k.map(|k| k.scalar().and_then(|k| k.parse().ok())) {
            None => K,
            Some(Some(k)) if (2..=K_MAX).contains(&k) => k,
            Some(_) => {
                let hint = format!("give a whole number from 2 to {K_MAX}");
                return Err(refuse("`k_anonymity` is no number it takes", &hint));
            }
        };
        let ruleset = Ruleset { key, k, tables: tables.collect::<Result<_, _>>()? };
        match ruleset.tables.is_empty() {
            true => Err(refuse("`tables` names no table", EXAMPLE)),
            false => Ok(ruleset),
        }
    }

    /// The name of the key to mask with.
    pub fn key_name(&self) -> &str {
        self.key.as_str()
    }

    /// How many rows should share each combination of quasi-identifiers at least.
    pub fn k(&self) -> u64 {
        self.k
    }
}

fn refuse(what: impl Into<String>, hint: &str) -> Failure {
    Failure::new(ErrorKind::InvalidInput, what, hint)
}

/// The rules of a table or of several. Without a schema its name stands for a table of `public`.
fn table(text: String, node: Node) -> Result<TableRule, Failure> {
    let refuse = |what: &str, hint: &str| Err(refuse(format!("table '{text}': {what}"), hint));
    let fields = "possible are: columns, where, keep_rows, empty, quasi_identifiers";
    let Node::Map(map) = node else {
        return refuse(&format!("its rules are {}", node.title()), fields);
    };
    let name = if text.contains('.') { text.clone() } else { format!("public.{text}") };
    let pattern = Pattern::new(&name);
    let qualified = (name.matches('.').count() >= 2).then(|| Pattern::new(&name));
    let (mut condition, mut keep_rows, mut empty) = (None, None, false);
    let (mut columns, mut quasi_identifiers) = (Vec::new(), Vec::new());
    for (name, node) in map {
        match (name.as_str(), node) {
            ("where", Node::Text(expression)) if !expression.trim().is_empty() => {
                condition = Some(expression);
            }
            ("keep_rows", Node::Text(expression)) if !expression.trim().is_empty() => {
                keep_rows = Some(expression);
            }
            ("empty", Node::Bool(flag)) => empty = flag,
            ("columns", Node::Map(map)) => {
                let read = |(name, node)| column(&text, name, node);
                columns = map.into_iter().map(read).collect::<Result<_, _>>()?;
            }
            ("quasi_identifiers", node) => match names(node) {
                Some(names) => quasi_identifiers = names,
                None => {
                    return refuse(
                        "`quasi_identifiers` is no list of lists of columns",
                        "write `quasi_identifiers: [[born, zip], [city, job]]`",
                    );
                }
            },
            (name @ ("where" | "keep_rows"), _) => {
                return refuse(&format!("`{name}` is no SQL condition"), "give it in quotes");
            }
            ("empty", _) => return refuse("`empty` is not `true` or `false`", fields),
            ("columns", _) => {
                return refuse("`columns` is no map", "write `columns: {email: email}`");
            }
            _ => return refuse(&format!("it has no field '{name}'"), fields),
        }
    }
    let counts = !quasi_identifiers.is_empty();
    let masks = condition.is_some() || !columns.is_empty();
    if empty && (masks || keep_rows.is_some() || counts) {
        return refuse("it is emptied, and has other rules", "remove `empty`, or the others");
    }
    if !empty && columns.is_empty() && keep_rows.is_none() && !counts {
        return refuse("nothing is to be done", "add `columns`, `keep_rows`, or `empty: true`");
    }
    Ok(TableRule {
        text,
        pattern,
        qualified,
        condition,
        keep_rows,
        empty,
        columns,
        quasi_identifiers,
    })
}

/// A list of lists of names; a list of names is a list with one.
fn names(node: Node) -> Option<Vec<Vec<String>>> {
    let list = |node: &Node| match node {
        Node::List(names) if (1..=QUASI_IDENTIFIERS_MAX).contains(&names.len()) => {
            names.iter().map(Node::scalar).collect::<Option<Vec<String>>>()
        }
        _ => None,
    };
    match &node {
        Node::List(lists) if lists.iter().all(|one| matches!(one, Node::List(_))) => {
            lists.iter().map(list).collect()
        }
        one => list(one).map(|names| vec![names]),
    }
}

fn column(table: &str, text: String, node: Node) -> Result<ColumnRule, Failure> {
    let name = algorithm_name(&node);
    match read_rule(node, algorithms::ENTRIES) {
        Ok(algorithm) => Ok(ColumnRule { pattern: Pattern::new(&text), text, name, algorithm }),
        Err(Wrong { what, hint }) => {
            Err(refuse(format!("table '{table}', column '{text}': {what}"), &hint))
        }
    }
}

#[cfg(test)]
mod tests;
