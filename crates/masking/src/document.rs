//! The text of a ruleset: YAML, JSON or TOML; and lists in files of their own, which whoever has the files puts in.
//!
//! What the engine gets has its lists in it: it never opens a file that rules name.

use crate::node::Node;
use offshoot_types::{ErrorKind, Failure};

/// Parameters that are lists, and so may be `{file: NAME}`.
const LISTS: [&str; 2] = ["values", "words"];

const EXAMPLE: &str = "begin as in `{version: 1, key: main, tables: {\"public.customers\": {columns: {email: email}}}}`";

/// Reads the text of a ruleset.
pub(crate) fn read(text: &str) -> Result<Node, Failure> {
    let refuse = |error: String| {
        Failure::new(ErrorKind::InvalidInput, format!("the rules cannot be read: {error}"), EXAMPLE)
    };
    if is_toml(text) {
        return toml::from_str(text).map_err(|error| refuse(told(text, &error)));
    }
    let options = serde_saphyr::options! {
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: 4_000_000,
            max_nodes: 2_000_000,
            max_total_scalar_bytes: 64 << 20,
            max_depth: 64,
            max_aliases: 1000,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(error.to_string()))
}

/// What is wrong, and in which line, without the line itself.
fn told(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("{} in line {}", error.message(), before.matches('\n').count() + 1)
}

/// Whether a ruleset is written in TOML: its first line that says anything is `NAME = …` or `[NAME]`, neither of which
/// a map in YAML or JSON begins with.
fn is_toml(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if first.starts_with('[') {
        return true;
    }
    let name = first.split_once('=').map(|(name, _)| name.trim());
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    })
}

/// Puts lists in files of their own into the text of a ruleset: each `{file: NAME}` under `values` or `words`. `open`
/// returns what is in a file. A text that names none is returned as it is, so that its hash is that of its file.
///
/// # Errors
/// `InvalidInput` if the text cannot be read or a file has no line; what `open` returns.
pub fn assemble(
    text: &str,
    open: &mut dyn FnMut(&str) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut node = read(text)?;
    match put(&mut node, open)? {
        false => Ok(text.to_owned()),
        true => serde_json::to_string(&node)
            .map_err(|error| Failure::internal(format!("the rules cannot be written: {error}"))),
    }
}

/// Whether there was a file to put in.
fn put(
    node: &mut Node,
    open: &mut dyn FnMut(&str) -> Result<String, Failure>,
) -> Result<bool, Failure> {
    let mut found = false;
    match node {
        Node::List(items) => {
            for item in items {
                found |= put(item, open)?;
            }
        }
        Node::Map(map) => {
            for (name, item) in map {
                match list_file(name, item) {
                    Some(file) => {
                        *item = list(&file, &open(&file)?)?;
                        found = true;
                    }
                    None => found |= put(item, open)?,
                }
            }
        }
        _ => {}
    }
    Ok(found)
}

/// The file that a parameter names instead of a list.
pub(crate) fn list_file(parameter: &str, node: &Node) -> Option<String> {
    let Node::Map(map) = node else { return None };
    match &map[..] {
        [(field, Node::Text(file))] if field == "file" && LISTS.contains(&parameter) => {
            Some(file.clone())
        }
        _ => None,
    }
}

/// The lines of a file; empty ones are left out.
fn list(file: &str, content: &str) -> Result<Node, Failure> {
    let lines =
        content.trim_start_matches('\u{feff}').lines().map(|line| line.trim_end_matches('\r'));
    let lines: Vec<Node> =
        lines.filter(|line| !line.is_empty()).map(|line| Node::Text(line.to_owned())).collect();
    match lines.is_empty() {
        false => Ok(Node::List(lines)),
        true => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("the list {file} has no value"),
            "write one value on each line",
        )),
    }
}

#[cfg(test)]
mod tests;
