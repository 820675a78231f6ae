//! Rules about one file at a time.

use super::Finding;
use super::source;

/// Longest production file, in lines.
const FILE_LINES_MAX: usize = 800;
/// Longest production function, in lines from `fn` to the closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// What only `crates/os` may call, so that a simulation can stand in for it, and what to take.
const SYSTEM_CALLS: &[(&str, &str)] = &[
    ("SystemTime::now", "take an offshoot_os::Clock"),
    ("Instant::now", "take an offshoot_os::Clock"),
    ("Command::new", "start child processes with offshoot_os::process"),
    ("getrandom::", "take offshoot_os::random_bytes"),
];

/// What production code may not hold.
const UNFINISHED: &[(&str, &str)] = &[
    (".unwrap()", "return an error, or expect(..) with the reason it cannot fail"),
    ("dbg!(", "remove it"),
];

/// What no code may hold. Spelled in pieces, as this file is checked too.
const NOWHERE: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it"),
    (concat!("unimplemented", "!("), "return an explicit error"),
    (concat!("#[ign", "ore]"), "say why: #[ignore = \"reason\"]"),
];

/// File and directory names that say nothing.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "misc", "shared"];

/// Checks one source file. `path` is relative to the root, with forward slashes.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let code = source::code_only(text);
    let mut findings = Vec::new();
    check_name(path, &mut findings);
    check_text(path, text, &code, &mut findings);
    if is_test(path) {
        return findings;
    }
    check_sizes(path, text, &code, &mut findings);
    check_calls(path, &code, &mut findings);
    if path.ends_with("src/lib.rs") && !text.starts_with("//!") {
        push(&mut findings, path, 1, "a crate opens with a comment that says what it is".into());
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

fn check_text(path: &str, text: &str, code: &str, findings: &mut Vec<Finding>) {
    for (number, (line, code_line)) in text.lines().zip(code.lines()).enumerate() {
        for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
            // In a literal it is data; anything else that differs from the code is a comment.
            if line.contains(word) && line.contains("//") && !code_line.contains(word) {
                let message = format!("{word}: do it, or open an issue");
                push(findings, path, number + 1, message);
            }
        }
        for (pattern, mend) in NOWHERE {
            if code_line.contains(pattern) {
                push(findings, path, number + 1, format!("{pattern} is not allowed: {mend}"));
            }
        }
    }
}

fn check_sizes(path: &str, text: &str, code: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let message = format!("{lines} lines, more than {FILE_LINES_MAX}: split it");
        push(findings, path, 0, message);
    }
    let tests = source::test_lines(code);
    for function in source::functions(code) {
        let lines = function.last_line + 1 - function.first_line;
        let in_tests = tests.iter().any(|range| range.contains(&function.first_line));
        if lines > FUNCTION_LINES_MAX && !in_tests {
            let name = &function.name;
            let message = format!("{name}: {lines} lines, more than {FUNCTION_LINES_MAX}");
            push(findings, path, function.first_line, message);
        }
    }
}

fn check_calls(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let tests = source::test_lines(code);
    let system_is_free = path.starts_with("crates/os/") || path.starts_with("xtask/");
    for (number, line) in code.lines().enumerate() {
        let number = number + 1;
        if tests.iter().any(|range| range.contains(&number)) {
            continue;
        }
        let system = SYSTEM_CALLS.iter().filter(|_| !system_is_free);
        for (pattern, mend) in system.chain(UNFINISHED) {
            if line.contains(pattern) {
                push(findings, path, number, format!("{pattern} is not allowed here: {mend}"));
            }
        }
    }
}

/// Whether a file is built for tests only. Simulation and fuzzing are: a panic is how their checks fail.
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
