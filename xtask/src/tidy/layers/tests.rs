use super::*;
use serde_json::json;

fn messages(from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
    let metadata = json!({"packages": [{
        "name": from,
        "dependencies": [{"name": to, "path": "/somewhere", "kind": kind}],
    }]});
    check(&metadata).unwrap().into_iter().map(|finding| finding.message).collect()
}

#[test]
fn an_edge_down_is_free() {
    assert!(messages("offshoot-engine", "offshoot-dataset", None).is_empty());
    assert!(messages("offshoot-dataset", "offshoot-types", None).is_empty());
}

#[test]
fn an_edge_up_is_found() {
    let found = messages("offshoot-pool", "offshoot-fs", None);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("up"), "{found:?}");
}

#[test]
fn an_edge_beside_must_stand_in_the_table() {
    assert!(messages("offshoot-dataset", "offshoot-pool", None).is_empty());
    assert_eq!(messages("offshoot-pool", "offshoot-dataset", None).len(), 1);
}

#[test]
fn a_crate_with_a_list_knows_nothing_else() {
    assert_eq!(messages("offshoot-postgres", "offshoot-dataset", None).len(), 1);
    assert_eq!(messages("offshoot-domain", "offshoot-os", None).len(), 1);
}

#[test]
fn edges_of_tests_are_free() {
    assert!(messages("offshoot-pool", "offshoot-fs", Some("dev")).is_empty());
}

#[test]
fn a_crate_without_a_layer_is_found() {
    let metadata = json!({"packages": [{"name": "offshoot-stray", "dependencies": []}]});
    assert!(check(&metadata).unwrap()[0].message.contains("offshoot-stray"));
}

#[test]
fn every_row_names_rows_of_the_table() {
    for row in TABLE {
        for name in row.beside.iter().chain(row.only) {
            assert!(find(name).is_some(), "{} names {name}", row.name);
        }
    }
}
