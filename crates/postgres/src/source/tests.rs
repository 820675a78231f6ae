use super::*;
use offshoot_types::ErrorKind;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_full_uri_is_read_and_shown_without_its_password() {
    let uri = "postgresql://us%40er:se%3Acret@db.example:6000/my%20db?sslmode=disable";
    let (address, password) = SourceAddress::parse(uri).unwrap();
    assert_eq!(address.host, "db.example");
    assert_eq!((address.port, address.user.as_str()), (6000, "us@er"));
    assert_eq!((address.database.as_str(), address.tls), ("my db", TlsMode::Disable));
    assert_eq!(password.unwrap().expose(), "se:cret");
    assert_eq!(address.to_string(), "postgresql://us%40er@db.example:6000/my%20db?sslmode=disable");
}

#[test]
fn every_form_reads_back_what_it_shows() {
    for uri in [
        "postgres://u@h",
        "postgresql://u@h:/",
        "postgresql://u@[::1]:5433/d",
        "postgresql://u@/d?host=/run/postgresql&port=5433",
        "postgresql:///?host=h&user=u&dbname=d&sslmode=allow",
        "postgresql://u@h/d?sslmode=require&sslcert=/a%20b/c&sslkey=/k",
        "postgresql://u@h/d?sslmode=verify-full&sslrootcert=/etc/roots%26.crt",
    ] {
        let (address, password) = SourceAddress::parse(uri).unwrap();
        assert_eq!(password, None);
        assert_eq!(SourceAddress::parse(&address.to_string()).unwrap().0, address, "{uri}");
        let json = serde_json::to_string(&address).unwrap();
        assert_eq!(serde_json::from_str::<SourceAddress>(&json).unwrap(), address);
    }
}

#[test]
fn wrong_uris_are_refused_with_a_reason() {
    for (uri, why) in [
        ("mysql://u@h/d", "URI"),
        ("postgresql://h/d", "no user"),
        ("postgresql://u@/d", "no host"),
        ("postgresql://u@h:0/d", "'0' is not a port"),
        ("postgresql://u@h:x/d", "'x' is not a port"),
        ("postgresql://u@[::1/d", "brackets"),
        ("postgresql://u@a,b/d", "several hosts"),
        ("postgresql://u@h/d?sslmode=verify-full", "needs sslrootcert"),
        ("postgresql://u@h/d?sslrootcert=root.crt", "from the root"),
        ("postgresql://u@h/d?sslcert=/c", "go together"),
        ("postgresql://u@h/d?sslmode=maybe", "not an sslmode"),
        ("postgresql://u@h/d?options=-c", "'options' is not supported"),
        ("postgresql://u@h/%zz", "hexadecimal"),
        ("postgresql://u@h/%+1", "hexadecimal"),
        ("postgresql://u@h/%00", "zero byte"),
    ] {
        let failure = SourceAddress::parse(uri).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{uri}");
        assert!(failure.message.contains(why), "{uri}: {failure}");
        assert!(!failure.hint.is_empty());
    }
}

#[test]
fn connection_strings_quote_what_they_hold() {
    let (address, _) = SourceAddress::parse("postgresql://o%27x%5C@h/d").unwrap();
    assert!(address.conninfo("me").contains(r"user='o\'x\\'"), "{}", address.conninfo("me"));
    assert_eq!(session::literal("o'x\\"), " E'o''x\\\\'");
    assert_eq!(refusal::identifier("plain_1"), "plain_1");
    assert_eq!(refusal::identifier("My \"x"), "\"My \"\"x\"");
}

#[test]
fn password_files_are_read_as_libpq_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pgpass");
    std::fs::write(
        &file,
        "# a comment\nother:5432:*:u:wrong\nh:5432:d:u:a\\:b\\\\c\n*:*:*:*:last:with:colons\n",
    )
    .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let look = |uri: &str| {
        let (address, _) = SourceAddress::parse(uri).unwrap();
        credentials::from_file(&file, &address)
    };
    assert_eq!(look("postgresql://u@h/d").unwrap().expose(), "a:b\\c");
    assert_eq!(look("postgresql://u@h/e").unwrap().expose(), "last:with:colons");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(look("postgresql://u@h/d"), None, "others may read it");
}

#[test]
fn passwords_are_never_shown() {
    let source = Source::parse("postgresql://u:hunter2@h/d", None).unwrap();
    assert_eq!(source.password.as_ref().unwrap().expose(), "hunter2");
    assert!(!format!("{source:?} {:?}", source.password).contains("hunter2"));
}

#[test]
fn what_tools_print_is_explained() {
    let (address, _) = SourceAddress::parse("postgresql://u@h/d").unwrap();
    let cases = [
        (
            "pg_basebackup: error: connection to server at \"h\", port 5432 failed: FATAL:  \
             password authentication failed for user \"u\"",
            ErrorKind::SourceRefused,
            "password",
        ),
        (
            "pg_basebackup: error: could not write to file \"x\": No space left on device",
            ErrorKind::PoolFull,
            "",
        ),
        (
            "connection to server at \"h\" (10.0.0.7), port 5432 failed: FATAL:  no pg_hba.conf \
             entry for replication connection from host \"10.0.0.9\", user \"u\", no encryption",
            ErrorKind::SourceRefused,
            "host replication u 10.0.0.9/32",
        ),
        (
            "FATAL:  must be superuser or replication role to start walsender",
            ErrorKind::SourceRefused,
            "ALTER ROLE u REPLICATION",
        ),
        (
            "pg_receivewal: error: unexpected termination of replication stream: FATAL:  \
             terminating connection due to administrator command\n\
             pg_receivewal: error: disconnected",
            ErrorKind::SourceUnreachable,
            "",
        ),
    ];
    for (text, code, hint) in cases {
        let failure = refusal::of_tool(text, &address);
        assert_eq!(failure.code, code, "{text}");
        assert!(failure.hint.contains(hint), "{}", failure.hint);
    }
    let unknown = refusal::of_tool("pg_x: error: something odd\n", &address);
    assert!(unknown.message.ends_with("something odd"), "{unknown}");
}

#[test]
fn what_may_be_exposed_and_what_is_not_proved_depends_on_the_way() {
    let address = |text: &str| SourceAddress::parse(text).unwrap().0;
    let root = "sslrootcert=/etc/ssl/ca.crt";
    for (uri, exposed, proved) in [
        ("postgresql://u@127.0.0.1/d".to_owned(), false, true),
        ("postgresql://u@[::1]/d".to_owned(), false, true),
        ("postgresql://u@localhost/d?sslmode=disable".to_owned(), false, true),
        ("postgresql://u@/d?host=/run/postgresql".to_owned(), true, true),
        ("postgresql://u@db.example/d".to_owned(), false, false),
        ("postgresql://u@10.0.0.1/d?sslmode=allow".to_owned(), false, false),
        ("postgresql://u@db.example/d?sslmode=require".to_owned(), true, false),
        (format!("postgresql://u@db.example/d?sslmode=verify-ca&{root}"), true, false),
        (format!("postgresql://u@db.example/d?sslmode=verify-full&{root}"), true, true),
    ] {
        let address = address(&uri);
        assert_eq!(address.may_expose_password(), exposed, "{uri}");
        assert_eq!(address.allowed_methods().contains("password"), exposed, "{uri}");
        let warning = precheck::unproved(&address);
        assert_eq!(warning.is_none(), proved, "{uri}");
        assert!(warning.is_none_or(|one| one.hint.contains("verify-full")), "{uri}");
    }
}

#[test]
fn a_uri_names_nothing_of_the_host_but_what_the_host_trusts() {
    let ways = |query: &str| {
        let uri = format!("postgresql://u@db.example/d?sslmode=verify-full&{query}");
        SourceAddress::parse(&uri).unwrap().0.local_ways()
    };
    let of_host = "sslrootcert=/etc/ssl/certs/ca-certificates.crt";
    assert!(ways(of_host).is_empty());
    assert!(ways("sslrootcert=/etc/pki/tls/certs/ca-bundle.crt").is_empty());
    for other in [
        "/etc/shadow",
        "/etc/ssl/certs",
        "/etc/ssl/certs/../private/key.pem",
        "/etc/ssl/certs/more/x.pem",
        "/home/u/etc/ssl/certs/x.pem",
    ] {
        assert_eq!(ways(&format!("sslrootcert={other}")), [format!("sslrootcert={other}")]);
    }
    let logs_in = ways(&format!("{of_host}&sslcert=/a.crt&sslkey=/a.key"));
    assert_eq!(logs_in, ["sslcert=/a.crt", "sslkey=/a.key"]);
}
