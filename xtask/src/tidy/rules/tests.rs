use super::*;

fn messages(path: &str, text: &str) -> Vec<String> {
    check(path, text).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn clean_code_passes() {
    assert_eq!(messages("crates/pool/src/lib.rs", "//! A pool.\nfn a() {}\n"), [""; 0]);
}

#[test]
fn long_files_are_found() {
    assert_eq!(messages("crates/pool/src/a.rs", &"// x\n".repeat(801)).len(), 1);
    assert_eq!(messages("crates/pool/src/a.rs", &"// x\n".repeat(800)).len(), 0);
    assert_eq!(messages("crates/pool/tests/a.rs", &"// x\n".repeat(801)).len(), 0);
}

#[test]
fn what_is_unfinished_is_found_even_in_tests() {
    assert_eq!(messages("crates/pool/tests/a.rs", concat!("// TO", "DO later")).len(), 1);
    let literal = concat!("fn a() -> &str { \"TO", "DO\" }");
    assert_eq!(messages("crates/pool/src/a.rs", literal), [""; 0]);
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
