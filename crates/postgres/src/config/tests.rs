use super::*;
use offshoot_connector::PlainDir;

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_syntax_of_the_servers_files_is_understood() {
    let text = "# comment\n\
        work_mem = 4MB # more\n\
        Search_Path '\"$user\", public'\n\
        log_line_prefix='it''s \\'so\\' %m\\n'\n\
        a.b=1\n\
        broken 'no end\n\
        lonely\n\
        empty = ''\n\
        = 3\n";
    let expected = [
        ("work_mem", "4MB"),
        ("search_path", "\"$user\", public"),
        ("log_line_prefix", "it's 'so' %m\n"),
        ("a.b", "1"),
        ("empty", ""),
    ];
    let entries = parse::entries(text);
    let entries: Vec<_> = entries.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(entries, expected);
    for (_, value) in expected {
        assert_eq!(parse::entries(&format!("x = {}", parse::quote(value)))[0].1, value);
    }
}

#[test]
fn includes_inside_are_followed_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    std::fs::create_dir(dir.path().join("conf.d")).unwrap();
    write("postgresql.conf", "a=1\nb=1\ninclude_dir 'conf.d'\ninclude '/etc/passwd'\nc=1\n");
    write("conf.d/2.conf", "b=3\ninclude = '../postgresql.conf'\n");
    write("conf.d/1.conf", "b=2\ninclude_if_exists 'more.inc'\n");
    write("conf.d/more.inc", "d=4\n");
    write("conf.d/.hidden.conf", "a=9\n");
    write("conf.d/other.txt", "a=9\n");
    write("postgresql.auto.conf", "c = '5'\ninclude 'postgresql.auto.conf'\n");
    let dir = PlainDir::new(dir.path());
    let found = parse::collect(&dir, &["postgresql.conf", "postgresql.auto.conf"]);
    assert_eq!(found, settings(&[("a", "1"), ("b", "3"), ("c", "5"), ("d", "4")]));
}

#[test]
fn ties_to_the_source_are_not_inherited() {
    let found = settings(&[
        ("work_mem", "32MB"),
        ("archive_command", "cp %p /production"),
        ("synchronous_standby_names", "*"),
        ("primary_conninfo", "host=production"),
        ("shared_buffers", "64GB"),
        ("ssl_cert_file", "/nowhere"),
        ("cron.database_name", "shop"),
        ("plpgsql.extra_warnings", "all"),
        ("lc_time", "xx_XX.nowhere"),
        ("lc_numeric", "C"),
        ("shared_preload_libraries", "pg_cron, \"no_such_library\""),
    ]);
    let adopted = inherit::choose(found, Path::new("/no/such/bin"));
    let expected =
        settings(&[("work_mem", "32MB"), ("plpgsql.extra_warnings", "all"), ("lc_numeric", "C")]);
    assert_eq!(adopted.inherited, expected);
    let dropped: Vec<&str> = adopted.dropped.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["cron.database_name", "lc_time", "shared_preload_libraries: pg_cron"] {
        assert!(dropped.contains(&name), "{dropped:?}");
    }
}

#[test]
fn reserved_settings_are_refused_with_a_hint() {
    let bin = Path::new("/no/such/bin");
    for name in ["port", "Listen_Addresses", "archive_command", "hba_file", "recovery_target_lsn"] {
        let failure = validate(bin, None, &settings(&[(name, "1")])).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.message.contains(name) && !failure.hint.is_empty());
    }
    for (name, value) in
        [("work mem", "1"), ("include", "x"), ("", "x"), ("a'b", "x"), ("work_mem", "1\nport=1")]
    {
        let failure = validate(bin, None, &settings(&[(name, value)])).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{name}");
    }
    assert_eq!(validate(bin, None, &Settings::new()), Ok(()));
}

#[test]
fn a_copy_has_at_least_the_room_the_source_had() {
    let control = Control {
        system_identifier: 1,
        state: crate::control::ClusterState::ShutDown,
        checkpoint_lsn: Default::default(),
        redo_lsn: Default::default(),
        timeline: 1,
        min_recovery_lsn: Default::default(),
        segment_pages: 131_072,
        backup_end_required: false,
        wal_segment_bytes: 16 << 20,
        data_checksums: true,
        minimum_settings: vec![("max_connections", 300), ("max_worker_processes", 8)],
    };
    let inherited = settings(&[("max_connections", "200"), ("max_worker_processes", "20")]);
    let options =
        VdbOptions { settings: settings(&[("Work_Mem", "7MB")]), memory_bytes: Some(4 << 30) };
    let written = purpose::vdb(&control, &inherited, &options);
    assert_eq!(written["max_connections"], "300");
    assert_eq!(written["max_worker_processes"], "20");
    assert_eq!(written["shared_buffers"], "512MB");
    assert_eq!(written["wal_buffers"], "4096kB");
    assert_eq!(written["work_mem"], "7MB");
    assert_eq!(written["full_page_writes"], "off");
}
