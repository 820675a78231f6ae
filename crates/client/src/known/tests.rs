use super::*;
use std::os::unix::fs::PermissionsExt;

fn engine(host: &str, fingerprint: &str) -> KnownEngine {
    KnownEngine { host: host.to_owned(), fingerprint: fingerprint.to_owned() }
}

#[test]
fn an_engine_is_known_by_what_was_remembered_last() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a/b/known");
    let known = KnownEngines::new(file.clone());
    assert_eq!(known.find("a:1").unwrap(), None);
    for one in [engine("a:1", "sha256:0"), engine("b:1", "sha256:1"), engine("a:1", "sha256:2")] {
        known.put(&one).unwrap();
    }
    assert_eq!(known.find("a:1").unwrap().as_deref(), Some("sha256:2"));
    assert_eq!(known.find("b:1").unwrap().as_deref(), Some("sha256:1"));
    assert_eq!(known.find("a:10").unwrap(), None);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    fs::write(&file, "nonsense\n\n x").unwrap();
    assert_eq!(known.find("a:1").unwrap(), None);
}
