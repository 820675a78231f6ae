use super::*;

fn file_with(mode: u32, text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
    file
}

#[test]
fn a_secret_that_others_may_read_is_none() {
    let good = file_with(0o600, "whsec_x\nanother line\n");
    assert_eq!(read_secret(good.path()).unwrap().reveal(), "whsec_x");
    for mode in [0o604, 0o640, 0o644] {
        let failure = read_secret(file_with(mode, "whsec_x").path()).unwrap_err();
        assert!(failure.message.contains("others may read"), "{failure}");
        assert!(!failure.to_string().contains("whsec_"), "{failure}");
    }
    assert!(read_secret(Path::new("/nowhere")).unwrap_err().message.contains("cannot be read"));
}

#[test]
fn a_test_says_what_became_of_it() {
    let mut test = WebhookTest {
        name: "ci".to_owned(),
        delivered: true,
        message: "msg_1".to_owned(),
        status: Some(204),
        took_ms: 12,
        error: None,
    };
    assert_eq!(tested(&test), "ci has taken it: status 204, in 12 ms");
    (test.status, test.error) = (None, Some("nothing listens there".to_owned()));
    assert_eq!(tested(&test), "ci has not taken it: nothing listens there");
}
