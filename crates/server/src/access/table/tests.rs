use super::*;
use serde_json::Value;

#[test]
fn every_endpoint_of_the_document_has_one_row_and_no_row_is_left() {
    let document: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
    // The console's files and what monitoring asks are no part of the API.
    let besides = [
        routes::OPENAPI,
        routes::METRICS,
        routes::HEALTHZ,
        routes::READYZ,
        routes::CONSOLE_PAGE,
        routes::CONSOLE_FILE,
    ];
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
        let asked_for = [
            routes::MASK_DISCOVERY,
            routes::MASK_PREVIEW,
            routes::VDB_LOG,
            routes::VDB_HOOKS,
            routes::DIFF,
            routes::BISECTION,
            // So is a whole database.
            routes::REPLICATION_ARCHIVE,
            // So is an address that lets whoever knows it write there.
            routes::WEBHOOKS,
            routes::WEBHOOK,
        ]
        .contains(route);
        // Signing in and out changes nothing but who is known.
        let signs = [routes::CONSOLE_CODES, routes::CONSOLE_SESSION].contains(route);
        assert_eq!(looks, signs || *method == Method::GET && !asked_for, "{method} {route}");
    }
    let open: Vec<_> = TABLE
        .iter()
        .filter(|(_, _, right, _)| *right == Right::Anybody)
        .map(|(method, route, ..)| (method.as_str(), *route))
        .collect();
    let known = [
        ("GET", routes::HEALTHZ),
        ("GET", routes::READYZ),
        ("GET", routes::OPENAPI),
        ("GET", routes::CONSOLE_PAGE),
        ("GET", routes::CONSOLE_FILE),
        ("POST", routes::CONSOLE_SESSION),
    ];
    assert_eq!(open, known, "nothing else is everybody's");
}
