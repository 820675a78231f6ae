use super::*;

#[test]
fn versions_are_parsed() {
    let debian = "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n";
    assert_eq!(parse_version(debian), Some((15, "15.14".to_owned())));
    assert_eq!(parse_version("postgres (PostgreSQL) 18beta1"), Some((18, "18beta1".to_owned())));
    assert_eq!(parse_version("postgres (PostgreSQL) devel"), None);
    assert_eq!(parse_version("mysqld 8"), None);
}

#[test]
fn this_host_has_an_installation_and_a_missing_one_is_named() {
    let found = find_installations(&[]);
    assert!(!found.is_empty(), "the tests need a PostgreSQL server");
    for installation in &found {
        assert_eq!(choose_installation(&found, installation.major), Ok(installation));
    }
    let failure = choose_installation(&found[..0], 17).unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains("17"), "{failure}");
    assert!(failure.hint.contains("postgresql-17"), "{}", failure.hint);
}

#[test]
fn an_incomplete_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let failure = Installation::probe(dir.path()).unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains("postgres"), "{failure}");
}
