use super::*;

fn role(name: &str) -> Role {
    Role {
        name: name.to_owned(),
        superuser: true,
        bypasses_rls: true,
        inherits: true,
        creates_roles: false,
        creates_databases: false,
        logs_in: true,
        connections: -1,
        verifier: Some("SCRAM-SHA-256$4096:it's".to_owned()),
        until: None,
    }
}

#[test]
fn nobody_becomes_a_superuser_where_the_user_is_none() {
    let plain = alter(&role("a\"b"), false);
    assert_eq!(
        plain,
        "ALTER ROLE \"a\"\"b\" WITH INHERIT NOCREATEROLE NOCREATEDB LOGIN CONNECTION LIMIT -1 \
         PASSWORD 'SCRAM-SHA-256$4096:it''s' VALID UNTIL 'infinity'"
    );
    assert!(alter(&role("a"), true).contains(" SUPERUSER BYPASSRLS "));
}

#[test]
fn settings_are_of_databases_and_roles() {
    let of = |database: Option<&str>, role: Option<&str>| {
        set(&Setting {
            database: database.map(str::to_owned),
            role: role.map(str::to_owned),
            name: "my.way".to_owned(),
            value: "it's".to_owned(),
        })
    };
    let way = "SET \"my\".\"way\" TO 'it''s'";
    assert_eq!(of(Some("d"), Some("r")), format!("ALTER ROLE \"r\" IN DATABASE \"d\" {way}"));
    assert_eq!(of(None, Some("r")), format!("ALTER ROLE \"r\" {way}"));
    assert_eq!(of(Some("d"), None), format!("ALTER DATABASE \"d\" {way}"));
    assert_eq!(of(None, None), format!("ALTER ROLE ALL {way}"));
}

#[test]
fn lists_of_names_stay_lists() {
    for (list, written) in [
        ("\"a b\", public", "'a b', 'public'"),
        ("\"$user\", public", "'$user', 'public'"),
        ("\"it's\"\" ,x\",y", "'it''s\" ,x', 'y'"),
        ("\"\"", "''"),
        ("", "''"),
    ] {
        assert_eq!(written_value("search_path", list), written, "{list}");
    }
    assert_eq!(written_value("datestyle", "iso, mdy"), "'iso, mdy'");
}
