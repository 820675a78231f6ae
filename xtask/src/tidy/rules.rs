//! Rules about one file at a time that clippy does not have.

use super::Finding;
use super::source;

/// Longest production file, in lines.
const FILE_LINES_MAX: usize = 800;
/// File and directory names that say nothing.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "misc", "shared"];

/// Checks one source file. `path` is relative to the root, with forward slashes.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_name(path, &mut findings);
    check_words(path, text, &mut findings);
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX && !is_test(path) {
        let message = format!("{lines} lines, more than {FILE_LINES_MAX}: split it");
        push(&mut findings, path, 0, message);
    }
    findings
}

/// Checks one `Cargo.toml`: the workspace's lints hold for every crate.
pub fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let inherits = text.split("[lints]").nth(1).is_some_and(|rest| {
        rest.lines().map(str::trim).find(|line| !line.is_empty()) == Some("workspace = true")
    });
    if !inherits {
        push(&mut findings, path, 0, "add [lints] workspace = true".into());
    }
    findings
}

fn check_name(path: &str, findings: &mut Vec<Finding>) {
    for part in path.split('/') {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            push(findings, path, 0, format!("'{stem}' says nothing: name it for what it holds"));
        }
    }
}

fn check_words(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let code = source::code_only(text);
    for (number, (line, code_line)) in text.lines().zip(code.lines()).enumerate() {
        for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
            // In a literal it is data; anything else that differs from the code is a comment.
            if line.contains(word) && line.contains("//") && !code_line.contains(word) {
                let message = format!("{word}: do it, or open an issue");
                push(findings, path, number + 1, message);
            }
        }
    }
}

/// Whether a file is built for tests only.
fn is_test(path: &str) -> bool {
    path.starts_with("sim/")
        || path.starts_with("fuzz/")
        || path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
}

fn push(findings: &mut Vec<Finding>, path: &str, line: usize, message: String) {
    findings.push(Finding { path: path.to_owned(), line, message });
}

#[cfg(test)]
mod tests;
