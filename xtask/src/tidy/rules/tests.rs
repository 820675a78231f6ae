use super::*;

fn messages(path: &str, text: &str) -> Vec<String> {
    check(path, text).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn clean_code_passes() {
    assert_eq!(messages("crates/pool/src/lib.rs", "//! A pool.\nfn a() {}\n"), [""; 0]);
}

#[test]
fn the_clock_and_processes_belong_to_os() {
    for call in ["Instant::now()", "std::time::SystemTime::now()", "Command::new(\"x\")"] {
        let text = format!("fn a() {{ {call}; }}");
        assert_eq!(messages("crates/pool/src/a.rs", &text).len(), 1, "{call}");
        assert_eq!(messages("crates/os/src/a.rs", &text).len(), 0, "{call}");
        assert_eq!(messages("crates/pool/src/a/tests.rs", &text).len(), 0, "{call}");
        assert_eq!(messages("tests/testbed/src/lib.rs", &text).len(), 0, "{call}");
    }
}

#[test]
fn words_in_comments_and_literals_are_not_calls() {
    let text = "// Instant::now() would lie\nfn a() -> &'static str { \"x.unwrap()\" }";
    assert_eq!(messages("crates/pool/src/a.rs", text), [""; 0]);
}

#[test]
fn unwrap_is_for_tests() {
    assert_eq!(messages("crates/pool/src/a.rs", "fn a() { b.unwrap(); }").len(), 1);
    let inside = "#[cfg(test)]\nmod tests {\n fn a() { b.unwrap(); }\n}";
    assert_eq!(messages("crates/pool/src/a.rs", inside).len(), 0);
    assert_eq!(messages("crates/pool/src/a.rs", "fn a() { b.unwrap_or(c); }").len(), 0);
}

#[test]
fn long_files_and_functions_are_found() {
    let long = format!("fn a() {{\n{}}}\n", "b();\n".repeat(69));
    assert_eq!(messages("crates/pool/src/a.rs", &long).len(), 1);
    let fits = format!("fn a() {{\n{}}}\n", "b();\n".repeat(68));
    assert_eq!(messages("crates/pool/src/a.rs", &fits).len(), 0);
    assert_eq!(messages("crates/pool/src/a.rs", &"// x\n".repeat(801)).len(), 1);
    assert_eq!(messages("crates/pool/src/a.rs", &"// x\n".repeat(800)).len(), 0);
    assert_eq!(messages("crates/pool/tests/a.rs", &"// x\n".repeat(801)).len(), 0);
}

#[test]
fn what_is_unfinished_is_found_even_in_tests() {
    let todo = concat!("fn a() { todo", "!() }");
    assert_eq!(messages("crates/pool/tests/a.rs", todo).len(), 1);
    assert_eq!(messages("crates/pool/tests/a.rs", concat!("// TO", "DO later")).len(), 1);
    assert_eq!(messages("crates/pool/tests/a.rs", concat!("#[ign", "ore]\nfn a() {}")).len(), 1);
    assert_eq!(messages("crates/pool/tests/a.rs", "#[ignore = \"slow\"]\nfn a() {}").len(), 0);
}

#[test]
fn names_must_say_something() {
    assert_eq!(messages("crates/pool/src/utils.rs", "fn a() {}").len(), 1);
    assert_eq!(messages("crates/pool/src/helpers/a.rs", "fn a() {}").len(), 1);
}

#[test]
fn every_crate_inherits_the_lints() {
    assert_eq!(check_manifest("crates/pool/Cargo.toml", "[package]\n").len(), 1);
    let good = "[package]\n\n[lints]\nworkspace = true\n";
    assert_eq!(check_manifest("crates/pool/Cargo.toml", good).len(), 0);
}
