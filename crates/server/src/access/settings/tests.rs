use super::*;

fn refused(name: &str, value: &str) -> bool {
    check(&BTreeMap::from([(name.to_owned(), value.to_owned())])).is_err()
}

#[test]
fn programs_and_files_of_the_host_are_not_named_by_developers() {
    for (name, value) in [
        ("archive_command", "true"),
        ("Restore_Command", "true"),
        ("ssl_passphrase_command", "true"),
        ("hba_file", "x"),
        ("log_directory", "x"),
        ("unix_socket_directories", "x"),
        ("dynamic_library_path", "x"),
        ("shared_preload_libraries", "x"),
        ("primary_conninfo", "x"),
        ("anything", "/etc/passwd"),
        ("anything", " ../x"),
    ] {
        assert!(refused(name, value), "{name}={value}");
    }
    for (name, value) in
        [("work_mem", "8MB"), ("timezone", "Europe/Berlin"), ("log_line_prefix", "%m [%p] ")]
    {
        assert!(!refused(name, value), "{name}={value}");
    }
}
