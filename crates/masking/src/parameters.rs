//! Reading what a rule says.

use crate::algorithm::Algorithm;
use crate::document::list_file;
use crate::node::Node;
use std::sync::Arc;

/// What is wrong with a rule, before it is known whose rule it is.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// What is wrong.
    pub what: String,
    /// What is possible instead.
    pub hint: String,
}

impl Wrong {
    /// Something wrong, and what is possible instead.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), hint: hint.into() }
    }
}

/// An algorithm that rules can name.
pub(crate) struct Entry {
    /// Its name in rules.
    pub name: &'static str,
    /// What somebody who has its masks alone learns, besides which values were equal.
    pub tells: &'static str,
    /// The parameters it takes.
    pub parameters: &'static [&'static str],
    /// Reads its parameters.
    pub read: fn(&mut Parameters) -> Result<Arc<dyn Algorithm>, Wrong>,
}

/// The parameters of one rule, taken one by one.
pub(crate) struct Parameters {
    given: Vec<(String, Node)>,
    /// The algorithms that rules inside this one can name.
    entries: &'static [&'static Entry],
}

impl Parameters {
    /// Reads a rule inside this one.
    pub fn rule(&self, node: Node) -> Result<Arc<dyn Algorithm>, Wrong> {
        read_rule(node, self.entries)
    }

    /// What was given under a name.
    pub fn take(&mut self, name: &str) -> Option<Node> {
        let at = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(at).1)
    }

    /// A text, number or boolean, as text.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        let Some(node) = self.take(name) else { return Ok(None) };
        match node.scalar() {
            Some(text) => Ok(Some(text)),
            None => Err(unlike(name, &node, "one value")),
        }
    }

    /// A text that must be there.
    pub fn required(&mut self, name: &str, example: &str) -> Result<String, Wrong> {
        self.text(name)?.ok_or_else(|| missing(name, example))
    }

    /// A count from `range`.
    pub fn count(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.parse() {
            Ok(count) if range.contains(&count) => Ok(Some(count)),
            _ => Err(Wrong::new(
                format!("`{name}: {text}` is not a number it takes"),
                format!("give a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// `true` or `false`; false if it is not there.
    pub fn flag(&mut self, name: &str) -> Result<bool, Wrong> {
        match self.take(name) {
            None => Ok(false),
            Some(Node::Bool(flag)) => Ok(flag),
            Some(node) => Err(unlike(name, &node, "`true` or `false`")),
        }
    }

    /// One value or a list of them, as texts.
    pub fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Wrong> {
        let Some(node) = self.take(name) else { return Ok(None) };
        if let Some(file) = list_file(name, &node) {
            let what =
                format!("`{name}` is in a file of its own, {file}, which the engine does not open");
            return Err(Wrong::new(what, "give the list itself: `offshoot mask` puts it in"));
        }
        let list = match &node {
            Node::List(list) => list.iter().map(Node::scalar).collect(),
            node => node.scalar().map(|text| vec![text]),
        };
        match list {
            Some(list) => Ok(Some(list)),
            None => Err(unlike(name, &node, "a value or a list of values")),
        }
    }

    /// Some of several words.
    pub fn choices(&mut self, name: &str, possible: &[&str]) -> Result<Vec<String>, Wrong> {
        let given = self.texts(name)?.unwrap_or_default();
        match given.iter().find(|word| !possible.contains(&word.as_str())) {
            None => Ok(given),
            Some(word) => Err(Wrong::new(
                format!("`{name}` does not know '{word}'"),
                format!("possible are: {}", possible.join(", ")),
            )),
        }
    }

    /// One of several words.
    pub fn choice(&mut self, name: &str, possible: &[&str]) -> Result<Option<String>, Wrong> {
        let mut given = self.choices(name, possible)?;
        match given.len() {
            0 | 1 => Ok(given.pop()),
            _ => Err(Wrong::new(
                format!("`{name}` takes one value"),
                format!("possible are: {}", possible.join(", ")),
            )),
        }
    }
}

fn unlike(name: &str, node: &Node, expected: &str) -> Wrong {
    Wrong::new(format!("`{name}` is {}", node.title()), format!("give {expected}"))
}

/// A parameter that must be there and is not.
pub(crate) fn missing(name: &str, example: &str) -> Wrong {
    Wrong::new(format!("`{name}` is missing"), format!("give it, as in `{example}`"))
}

/// The name of a rule's algorithm, as far as it has one.
pub(crate) fn algorithm_name(node: &Node) -> String {
    match node {
        Node::Text(name) => name.clone(),
        Node::List(_) => "chain".into(),
        Node::Map(given) => {
            let named = given.iter().find(|(name, _)| name == "algorithm");
            named.and_then(|(_, name)| name.scalar()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Reads a rule: an algorithm's name, a map with `algorithm` and its parameters, or a list of rules that are applied
/// in turn.
pub(crate) fn read_rule(
    node: Node,
    entries: &'static [&'static Entry],
) -> Result<Arc<dyn Algorithm>, Wrong> {
    let (name, given) = match node {
        Node::Text(name) => (name, Vec::new()),
        Node::List(steps) => ("chain".into(), vec![("steps".into(), Node::List(steps))]),
        Node::Map(mut given) => {
            let at = given.iter().position(|(name, _)| name == "algorithm");
            match at.map(|at| given.swap_remove(at).1) {
                Some(Node::Text(name)) => (name, given),
                Some(node) => return Err(unlike("algorithm", &node, "an algorithm's name")),
                None => return Err(missing("algorithm", "{algorithm: email}")),
            }
        }
        node => {
            let hint = "give an algorithm's name, or `{algorithm: NAME, PARAMETER: VALUE}`";
            return Err(Wrong::new(format!("the rule is {}", node.title()), hint));
        }
    };
    let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        return Err(Wrong::new(
            format!("there is no algorithm '{name}'"),
            format!("possible are: {}", names.join(", ")),
        ));
    };
    if let Some((unknown, _)) =
        given.iter().find(|(given, _)| !entry.parameters.contains(&given.as_str()))
    {
        let hint = match entry.parameters {
            [] => "it takes none".to_owned(),
            parameters => format!("possible are: {}", parameters.join(", ")),
        };
        return Err(Wrong::new(format!("'{name}' has no parameter '{unknown}'"), hint));
    }
    let wrong = |wrong: Wrong| Wrong { what: format!("'{name}': {}", wrong.what), ..wrong };
    (entry.read)(&mut Parameters { given, entries }).map_err(wrong)
}
