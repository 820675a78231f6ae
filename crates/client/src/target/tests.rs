use super::*;

fn pool(dir: &Path) -> Target {
    Target::Pool { dir: dir.to_owned(), token_file: None }
}

#[test]
fn a_pool_without_an_engine_says_how_to_start_one() {
    let dir = tempfile::tempdir().unwrap();
    let failure = pool(dir.path()).endpoint().err().unwrap();
    assert_eq!(failure.code, ErrorKind::EngineUnreachable);
    let start = format!("offshoot serve --pool {}", dir.path().display());
    assert!(failure.hint.contains(&start), "{}", failure.hint);
}

#[test]
fn the_engine_of_a_pool_is_found_by_its_socket_and_needs_no_token() {
    let dir = tempfile::tempdir().unwrap();
    // What a killed engine left says nothing: another program may have taken the port.
    std::fs::write(dir.path().join("engine.address"), "127.0.0.1:4000\n").unwrap();
    std::fs::write(dir.path().join("token"), "abc\n").unwrap();
    let failure = pool(dir.path()).endpoint().err().unwrap();
    assert_eq!(failure.code, ErrorKind::EngineUnreachable);
    let socket = dir.path().join(SOCKET_FILE);
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let endpoint = pool(dir.path()).endpoint().unwrap();
    assert_eq!((endpoint.route, endpoint.token), (Route::Socket(socket), None));
}

#[test]
fn a_token_is_read_from_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let known = dir.path().join("known");
    let target = Target::Server { url: "127.0.0.1:4000".into(), token_file: file.clone(), known };
    assert_eq!(target.endpoint().err().unwrap().code, ErrorKind::Unauthorized);
    std::fs::write(&file, "two words\n").unwrap();
    assert_eq!(target.endpoint().err().unwrap().code, ErrorKind::Unauthorized);
    std::fs::write(&file, "abc\n").unwrap();
    let endpoint = target.endpoint().unwrap();
    assert_eq!(endpoint.route, Route::Url("http://127.0.0.1:4000".into()));
    assert_eq!(endpoint.token.as_deref(), Some("abc"));
}

#[test]
fn server_addresses_are_checked_before_a_token_is_sent_there() {
    for good in ["http://127.0.0.1:7640/", "127.0.0.1:7640"] {
        assert_eq!(normal_url(good).unwrap(), "http://127.0.0.1:7640");
    }
    assert_eq!(normal_url("https://Engine:1/").unwrap(), "https://engine:1");
    for bad in [
        "https://127.0.0.1",
        "https://a:x",
        "ftp://x",
        "http://",
        "http://a/b",
        "http://a@b",
        "a b",
    ] {
        assert_eq!(normal_url(bad).unwrap_err().code, ErrorKind::InvalidInput, "{bad}");
    }
}
