use super::*;

#[test]
fn a_pool_without_an_engine_says_how_to_start_one() {
    let pool = tempfile::tempdir().unwrap();
    let target = Target::Pool(pool.path().to_owned());
    let failure = target.endpoint().err().unwrap();
    assert_eq!(failure.code, ErrorKind::EngineUnreachable);
    let start = format!("offshoot serve --pool {}", pool.path().display());
    assert!(failure.hint.contains(&start), "{}", failure.hint);
}

#[test]
fn address_and_token_are_read_from_the_pool() {
    let pool = tempfile::tempdir().unwrap();
    std::fs::write(pool.path().join(ADDRESS_FILE), "127.0.0.1:4000\n").unwrap();
    let target = Target::Pool(pool.path().to_owned());
    assert_eq!(target.endpoint().err().unwrap().code, ErrorKind::Unauthorized);
    std::fs::write(pool.path().join(TOKEN_FILE), "two words\n").unwrap();
    assert_eq!(target.endpoint().err().unwrap().code, ErrorKind::Unauthorized);
    std::fs::write(pool.path().join(TOKEN_FILE), "abc\n").unwrap();
    let endpoint = target.endpoint().unwrap();
    assert_eq!((endpoint.base.as_str(), endpoint.token.as_str()), ("http://127.0.0.1:4000", "abc"));
}

#[test]
fn server_addresses_are_checked_before_a_token_is_sent_there() {
    for good in ["http://127.0.0.1:7640/", "127.0.0.1:7640"] {
        assert_eq!(normal_url(good).unwrap(), "http://127.0.0.1:7640");
    }
    for bad in ["https://127.0.0.1:1", "ftp://x", "http://", "http://a/b", "http://a@b", "a b"] {
        assert_eq!(normal_url(bad).unwrap_err().code, ErrorKind::InvalidInput, "{bad}");
    }
}
