use super::*;

fn source(uri: &str) -> SourceUri {
    SourceUri::parse(uri).unwrap()
}

#[test]
fn the_first_line_that_fits_counts() {
    let text = "# db:5432:app:ann:comment\nother:*:*:*:no\ndb:5433:*:*:port\n\
                db:*:replication:ann:re\\:pl\\\\\n*:*:*:*:any:thing\n";
    let found = |uri: &str| search(text, &source(uri).search_fields());
    assert_eq!(found("postgresql://ann@db:5433/app").as_deref(), Some("port"));
    assert_eq!(found("postgresql://ann@db/app").as_deref(), Some("re:pl\\"));
    assert_eq!(found("postgresql://bob@db/app").as_deref(), Some("any:thing"));
    assert_eq!(search("db:5432:app", &source("postgresql://a@db/app").search_fields()), None);
}

#[test]
fn a_password_file_that_others_may_read_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pgpass");
    std::fs::write(&file, "*:*:*:*:word\n").unwrap();
    let source = source("postgresql://a@db/app");
    for (mode, expected) in [(0o644, None), (0o600, Some("word"))] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = search_file(&file, &source);
        assert_eq!(found.as_ref().map(Secret::reveal), expected, "{mode:o}");
    }
}

#[test]
fn the_password_leaves_the_uri_decoded() {
    let source = source("postgresql://ann:p%40ss%3A%25@db.example.com/app?sslmode=require");
    assert_eq!(source.password.as_deref(), Some("p@ss:%"));
    assert_eq!(source.without_password(), "postgresql://ann@db.example.com/app?sslmode=require");
    assert!(!format!("{source:?}").contains("p%40ss"));
    assert_eq!(source.search_fields(), ["db.example.com", "5432", "app", "ann"]);
}

#[test]
fn a_wrong_uri_is_refused_without_repeating_it() {
    for uri in ["mysql://a:word@b/c", "a:word@b", "postgresql://a:word@:x/", "postgresql:///word"] {
        let why = SourceUri::parse(uri).unwrap_err();
        assert!(!why.contains("word"), "{why}");
    }
}

#[test]
fn the_first_line_of_the_named_file_is_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "a word \nsecond\n").unwrap();
    let source = source("postgresql://a:other@db/app");
    assert_eq!(find(Some(&file), &source).unwrap().unwrap().reveal(), "a word ");
    std::fs::write(&file, "\n").unwrap();
    assert_eq!(find(Some(&file), &source).unwrap_err().code, ErrorKind::InvalidInput);
    assert!(find(Some(&dir.path().join("absent")), &source).is_err());
}
