//! Files of a crate that use each other in a circle: none can be read, tested or moved without the
//! others.
//!
//! An edge goes from a file to the file in which a path that it writes is defined; re-exports are
//! followed to what they name. A declaration (`mod x;`) is no edge, nor is what only tests use, nor a
//! method called on a value. Nor is what a file takes out of the module it is part of (`a/b.rs` out of `a.rs`): a
//! module and its parts are one room, read together. The crate's root is no such room.

mod paths;

use super::Finding;
use paths::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose files are still in circles, and how many files at most. Only ever lower a number; never
/// add a row.
const KNOWN: &[(&str, usize)] = &[];

/// One file of a crate.
pub struct Source {
    /// Relative to the workspace's root.
    pub path: String,
    pub text: String,
}

/// Checks the sources of the crate in the directory `of`, relative to the workspace's root.
pub fn check(of: &str, sources: &[Source]) -> Vec<Finding> {
    let allowed = KNOWN.iter().find(|(known, _)| *known == of).map_or(0, |(_, files)| *files);
    judge(of, &circles(of, sources), allowed)
}

fn judge(of: &str, circles: &[Circle], allowed: usize) -> Vec<Finding> {
    let found: usize = circles.iter().map(|circle| circle.files.len()).sum();
    if found > allowed {
        return circles.iter().map(Circle::finding).collect();
    }
    let stale = allowed > 0 && found == 0;
    let message = format!("no file of {of} stands in a circle any more: remove its row");
    let path = "xtask/src/tidy/circles.rs".to_owned();
    stale.then_some(Finding { path, line: 0, message }).into_iter().collect()
}

/// Files that reach each other.
struct Circle {
    /// At least two, in order.
    files: BTreeSet<String>,
    /// A shortest way round, for the message: file and line of each edge, and where it leads.
    example: Vec<(String, usize, String)>,
}

impl Circle {
    fn finding(&self) -> Finding {
        let (path, line, _) = self.example[0].clone();
        let way: Vec<_> = self
            .example
            .iter()
            .map(|(from, line, to)| format!("{from}:{line} uses {to}"))
            .collect();
        let message = format!(
            "{} files use each other in a circle; one way round: {}. Move what both need below both",
            self.files.len(),
            way.join(", ")
        );
        Finding { path, line, message }
    }
}

/// From a file to those it uses, with the first line that uses each.
type Edges = BTreeMap<String, BTreeMap<String, usize>>;

fn circles(of: &str, sources: &[Source]) -> Vec<Circle> {
    let edges = edges(of, sources);
    let mut left: BTreeSet<&String> = edges.keys().collect();
    let mut found = Vec::new();
    while let Some(file) = left.pop_first() {
        let files: BTreeSet<String> = reached(&edges, file)
            .into_iter()
            .filter(|other| reached(&edges, other).contains(file))
            .collect();
        left.retain(|other| !files.contains(*other));
        if !files.is_empty() {
            found.push(Circle { example: way_round(&edges, &files), files });
        }
    }
    found
}

fn edges(of: &str, sources: &[Source]) -> Edges {
    let has_library = sources.iter().any(|one| one.path == format!("{of}/src/lib.rs"));
    let mut modules = BTreeMap::new();
    for source in sources {
        if let Some(path) = module_path(of, &source.path, has_library) {
            modules.insert(path.clone(), Module::read(&source.path, path, &source.text));
        }
    }
    let mut edges = Edges::new();
    for module in modules.values() {
        for (line, path) in &module.used {
            let Some(file) = paths::file_of(&modules, module, path) else { continue };
            if file != module.file && !is_below(&module.file, &file) {
                let targets = edges.entry(module.file.clone()).or_default();
                targets.entry(file).or_insert(*line);
            }
        }
    }
    edges
}

/// Whether `file` is a part of the module that `module` holds.
fn is_below(file: &str, module: &str) -> bool {
    let parts = module.strip_suffix(".rs").and_then(|module| file.strip_prefix(module));
    parts.is_some_and(|rest| rest.starts_with('/'))
}

/// The path of the module that a file holds; none if it is built for tests or is not a module of the
/// crate of the others.
fn module_path(of: &str, file: &str, has_library: bool) -> Option<Vec<String>> {
    let inside = file.strip_prefix(of)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let mut path: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if path.iter().any(|part| part == "tests") || path[0] == "bin" {
        return None;
    }
    match inside {
        "lib" => path.clear(),
        "main" if has_library => return None,
        "main" => path.clear(),
        _ => path.retain(|part| part != "mod"),
    }
    Some(path)
}

/// The files to which edges lead, however many, from `file`.
fn reached(edges: &Edges, file: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![file.to_owned()];
    while let Some(next) = open.pop() {
        for target in edges.get(&next).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(target.clone()) {
                open.push(target.clone());
            }
        }
    }
    found
}

/// The shortest way from a file of the circle back to it.
fn way_round(edges: &Edges, files: &BTreeSet<String>) -> Vec<(String, usize, String)> {
    let ways = files.iter().map(|start| {
        // Breadth first: for each file the edge that led to it.
        let mut came: BTreeMap<&String, (&String, usize)> = BTreeMap::new();
        let mut row = vec![start];
        while !came.contains_key(start) {
            let mut next = Vec::new();
            for from in row {
                for (to, line) in &edges[from] {
                    if files.contains(to) && !came.contains_key(to) {
                        came.insert(to, (from, *line));
                        next.push(to);
                    }
                }
            }
            row = next;
        }
        let mut way = Vec::new();
        let mut at = start;
        while way.is_empty() || at != start {
            let (from, line) = came[at];
            way.push((from.clone(), line, at.clone()));
            at = from;
        }
        way.reverse();
        way
    });
    ways.min_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests;
