use super::*;
use serde_json::Value;

#[test]
fn every_endpoint_of_the_document_has_one_row_and_no_row_is_left() {
    let document: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
    // What monitoring asks is no part of the API.
    let besides = [routes::OPENAPI, routes::METRICS, routes::HEALTHZ, routes::READYZ];
    let mut rows = besides.map(|route| (Method::GET, route.to_owned())).to_vec();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            assert!(row(&method, path).is_some(), "{method} {path} is in no row");
            rows.push((method, path.clone()));
        }
    }
    for (method, route, ..) in TABLE {
        let count = TABLE.iter().filter(|(m, r, ..)| (m, r) == (method, route)).count();
        assert_eq!(count, 1, "{method} {route}");
        assert!(rows.contains(&(method.clone(), (*route).to_owned())), "{method} {route} is gone");
    }
}

#[test]
fn roles_have_the_rights_that_their_names_say() {
    let of = |role: Role| {
        let all = [
            Right::Look,
            Right::Survey,
            Right::Use,
            Right::Operate,
            Right::Administer,
            Right::Audit,
        ];
        all.map(|right| right.is_of(role))
    };
    assert_eq!(of(Role::Admin), [true; 6]);
    assert_eq!(of(Role::Operator), [true, true, true, true, false, false]);
    assert_eq!(of(Role::Developer), [true, false, true, false, false, false]);
    assert_eq!(of(Role::Auditor), [true, true, false, false, false, true]);
}

#[test]
fn what_changes_something_takes_more_than_looking() {
    for (method, route, right, _) in TABLE {
        let looks = matches!(right, Right::Anybody | Right::Look | Right::Survey | Right::Audit);
        // What was found for somebody, or shown to him, is for those who may ask for it.
        // So is a whole database.
        let asked_for = [routes::MASK_DISCOVERY, routes::MASK_PREVIEW, routes::REPLICATION_ARCHIVE]
            .contains(route);
        assert_eq!(looks, *method == Method::GET && !asked_for, "{method} {route}");
    }
    let open: Vec<_> = TABLE.iter().filter(|(_, _, right, _)| *right == Right::Anybody).collect();
    assert_eq!(open.len(), 3, "only the document, and whether the engine answers, are everybody's");
}
