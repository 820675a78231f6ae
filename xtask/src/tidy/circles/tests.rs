use super::*;

/// The circles of a crate whose files are given by their paths below `src`.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources: Vec<_> = files
        .iter()
        .map(|(path, text)| Source {
            path: format!("crates/a/src/{path}"),
            text: (*text).to_owned(),
        })
        .collect();
    let short = |file: &String| file.trim_start_matches("crates/a/src/").to_owned();
    circles("crates/a", &sources).iter().map(|one| one.files.iter().map(short).collect()).collect()
}

#[test]
fn files_that_use_each_other_are_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "pub struct C; fn f() { crate::a::g(); }"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn two_circles_are_told_apart() {
    let found = circles_of(&[
        ("lib.rs", "pub use a::A; pub use c::C;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::d::D; pub struct C;"),
        ("d.rs", "use super::c::C; pub struct D;"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"], ["c.rs", "d.rs"]]);
}

#[test]
fn downward_edges_are_no_circle() {
    let found = circles_of(&[
        ("main.rs", "mod a; mod b; fn main() { a::run(); b::run(); }"),
        ("a.rs", "use crate::b; pub fn run() { b::run() }"),
        ("b.rs", "mod deep; use deep::Deep; pub fn run() {}"),
        ("b/deep.rs", "pub struct Deep;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_module_and_its_parts_are_one_room() {
    let files = |other| {
        [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod part; pub struct A; fn f(_: part::Part) {}"),
            ("a/part.rs", "use super::A; use crate::b::B; pub struct Part(A, B);"),
            ("b.rs", other),
        ]
    };
    assert!(circles_of(&files("pub struct B;")).is_empty());
    let found = circles_of(&files("use crate::a::A; pub struct B(A);"));
    assert_eq!(found, [["a.rs", "a/part.rs", "b.rs"]]);
}

#[test]
fn what_is_re_exported_is_used_where_it_is_defined() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; pub use a::{A, Error as Failure}; pub use b::*;"),
        ("a.rs", "pub struct A; pub enum Error {}"),
        ("b.rs", "use crate::{A, Failure}; pub struct B;"),
        ("c.rs", "use crate::B; pub struct C(B);"),
    ]);
    assert!(found.is_empty(), "{found:?}");
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        ("b.rs", "use crate::A; pub struct B(A);"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"]]);
}

#[test]
fn what_a_crate_root_defines_belongs_to_its_file() {
    let found = circles_of(&[
        ("lib.rs", "mod a; pub use a::A; pub type Result<T> = std::result::Result<T, ()>;"),
        ("a.rs", "use crate::Result; pub struct A;"),
    ]);
    assert_eq!(found, [["a.rs", "lib.rs"]]);
}

#[test]
fn trees_of_imports_and_paths_in_macros_are_read() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::{b::{self, deep::{Deep, *}}, x as y}; fn f() { g!(b::h(), 1) }"),
        ("b.rs", "fn h() {}"),
        ("b/deep.rs", "pub struct Deep; fn f() { m!(super::super::a::f()); }"),
    ]);
    assert_eq!(found, [["a.rs", "b/deep.rs"]]);
}

#[test]
fn a_path_behind_a_range_is_no_method() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b; fn f() { for i in 0..b::count() {} }"),
        ("b.rs", "use crate::a::A; pub fn count() -> usize { 1 }"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"]]);
}

#[test]
fn tests_comments_and_other_crates_do_not_count() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; use std::a::X; pub use tracing::b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "// crate::a::A\n/// [`crate::a::A`]\npub struct B; use std::a::A; use serde::a;"),
        ("b/tests.rs", "use crate::a::A;"),
        ("c.rs", "#[cfg(test)]\nmod tests { use crate::d::D; }\npub struct C;"),
        ("d.rs", "use crate::c::C; pub struct D;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn another_binary_of_a_library_is_no_part_of_it() {
    let found = circles_of(&[
        ("lib.rs", "pub mod a; pub fn f() { a::f() }"),
        ("main.rs", "pub fn f() {}"),
        ("bin/other.rs", "use crate::a::f;"),
        ("a.rs", "pub fn f() {}"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn known_circles_may_only_shrink() {
    let files = ["a.rs", "b.rs"].map(str::to_owned).into();
    let example = vec![("a.rs".into(), 1, "b.rs".into()), ("b.rs".into(), 2, "a.rs".into())];
    let circle = [Circle { files, example }];
    assert!(judge("crates/a", &circle, 2).is_empty());
    assert!(judge("crates/a", &circle, 3).is_empty());
    let found = judge("crates/a", &circle, 0);
    assert_eq!((found[0].path.as_str(), found[0].line), ("a.rs", 1));
    assert!(found[0].message.contains("a.rs:1 uses b.rs, b.rs:2 uses a.rs"), "{found:?}");
    assert_eq!(judge("crates/a", &circle, 1).len(), 1, "it grew");
    assert!(judge("crates/a", &[], 2)[0].message.contains("remove its row"));
    assert!(judge("crates/a", &[], 0).is_empty());
}
