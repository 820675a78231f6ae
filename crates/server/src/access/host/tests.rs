use super::*;
use axum::body::Body;

fn allowed(uri: &str, hosts: &[&str]) -> bool {
    let mut request = Request::builder().uri(uri);
    for host in hosts {
        request = request.header(header::HOST, *host);
    }
    check(&request.body(Body::empty()).unwrap(), &["engine.example".to_owned()]).is_ok()
}

#[test]
fn this_host_is_named_by_addresses_and_its_names_alone() {
    for right in [
        "127.0.0.1",
        "127.0.0.1:7640",
        "[::1]:7640",
        "localhost:1",
        "LOCALHOST",
        "Engine.Example:443",
    ] {
        assert!(allowed("/", &[right]), "{right}");
    }
    for wrong in [
        "evil.example:7640",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "engine.example.evil",
        "a@127.0.0.1",
        "",
        "127.0.0.1/x",
        "[::1",
    ] {
        assert!(!allowed("/", &[wrong]), "{wrong}");
    }
    assert!(!allowed("/", &[]), "none at all");
    assert!(!allowed("/", &["127.0.0.1", "evil.example"]), "two of them");
    assert!(!allowed("http://evil.example/", &["127.0.0.1"]), "another one in the address");
}
