use super::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_pool_s_certificate_is_made_once_and_its_key_is_secret() {
    let pool = tempfile::tempdir().unwrap();
    let first = Identity::of_pool(pool.path(), &["engine.example".into()]).unwrap();
    assert_eq!(first.fingerprint().len(), "sha256:".len() + 64);
    let key = std::fs::metadata(pool.path().join(TLS_KEY_FILE)).unwrap();
    assert_eq!(key.permissions().mode() & 0o7777, 0o600);
    let again = Identity::of_pool(pool.path(), &[]).unwrap();
    assert_eq!(first.fingerprint(), again.fingerprint());
    assert!(!format!("{first:?}").contains("PRIVATE"));
}

#[test]
fn files_that_are_none_or_do_not_belong_together_are_named() {
    let [one, two] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    for pool in [&one, &two] {
        Identity::of_pool(pool.path(), &[]).unwrap();
    }
    let certificate = one.path().join(TLS_CERTIFICATE_FILE);
    for key in [two.path().join(TLS_KEY_FILE), certificate.clone(), one.path().join("nothing")] {
        let failure = Identity::of_files(&certificate, &key).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{}", failure.message);
    }
    let names = ["not a name".to_owned(), "ä".to_owned()];
    let empty = tempfile::tempdir().unwrap();
    assert!(Identity::of_pool(empty.path(), &names).is_err());
}
