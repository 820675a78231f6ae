use super::*;

fn names(sql: &str) -> Vec<String> {
    let mut customs = Customs::default();
    customs.note(sql.as_bytes());
    customs.names().unwrap().map(str::to_owned).collect()
}

#[test]
fn names_with_a_dot_are_seen() {
    for (sql, expected) in [
        ("SET app.tenant = '7'", &["app.tenant"][..]),
        ("set  session\n app.a_b.c to 1; SET LOCAL x.y = 2", &["app.a_b.c", "x.y"]),
        ("SELECT pg_catalog.set_config( 'app.user', $1, false)", &["app.user"]),
        ("SET work_mem = '1MB'", &[]),
        ("SELECT 'offset a.b', reset a.b, my_set_config($1)", &[]),
        ("SET app. = 1; SET .app = 2; SET", &[]),
        ("set", &[]),
    ] {
        assert_eq!(names(sql), expected, "{sql}");
    }
}

#[test]
fn names_that_are_not_told_are_not_known() {
    for sql in [
        "SELECT set_config($1, $2, true)",
        "SELECT set_config('a.b\\'x', '', true)",
        "set_config('",
        "SET \"app\".tenant = 1",
        "SET SESSION \"a\".b = 1",
    ] {
        let mut customs = Customs::default();
        customs.note(sql.as_bytes());
        assert!(customs.names().is_none(), "{sql}");
    }
}

#[test]
fn too_many_are_said_to_be_too_many() {
    let mut customs = Customs::default();
    for number in 0..=NAMES_MAX {
        assert!(customs.names().is_some());
        customs.note(format!("SET a.n{number} = 1").as_bytes());
    }
    assert!(customs.names().is_none());
}
