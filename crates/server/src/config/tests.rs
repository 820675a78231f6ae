use super::*;

fn read(text: &str) -> Result<ServeOptions, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("offshoot.conf");
    std::fs::write(&file, text).unwrap();
    let mut options = ServeOptions::new("/pool");
    options.read_config(&file).map(|()| options)
}

#[test]
fn reads_every_key() {
    let options = read(
        "# comment\n\n listen = localhost:9000 # here\ncache_size=1GiB\ncapacity = 2GiB\n\
         postgres_bin_dir = /a\npostgres_bin_dir = /b\nsocket_group = dba\nhost_name = a\nhost_name = b\ntls_cert = /c\ntls_key = /k\nencrypt = yes\n",
    )
    .unwrap();
    assert_eq!(options.listen, "127.0.0.1:9000".parse().unwrap());
    assert_eq!(options.cache_size_bytes, Some(1 << 30));
    assert_eq!(options.socket_group.as_deref(), Some("dba"));
    assert_eq!(options.host_names, ["a", "b"]);
    assert_eq!(options.tls_files, Some(("/c".into(), "/k".into())));
    assert_eq!(options.capacity_bytes, Some(2 << 30));
    assert!(options.encrypt && !ServeOptions::new("/pool").encrypt);
    assert_eq!(options.postgres_bin_dirs, [PathBuf::from("/a"), PathBuf::from("/b")]);
}

#[test]
fn what_is_not_understood_is_named_with_its_line() {
    for text in ["listen", "\nlisten =", "cache_siz = 1GiB", "cache_size = big", "listen = nowhere"]
    {
        let failure = read(text).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        let line = text.lines().count();
        assert!(failure.message.contains(&format!("line {line}: ")), "{}", failure.message);
        assert!(!failure.hint.is_empty());
    }
    let absent = ServeOptions::new("/pool").read_config(Path::new("/nowhere/x")).unwrap_err();
    assert_eq!(absent.code, ErrorKind::InvalidInput);
}
