//! Sources that insist on TLS.

use super::server::{
    PASSWORD, PATIENCE, Server, copy_of, give_to_tools, installations, scratch, wait_for,
};
use offshoot_os::SystemClock;
use offshoot_os::process::{Spec, run};
use offshoot_postgres::installation::{Installation, Tools};
use offshoot_postgres::receiver::{Receiver, ReceiverSpec};
use offshoot_postgres::slot::create_slot;
use offshoot_postgres::source::{Password, Source, precheck};
use offshoot_types::{ErrorKind, Failure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::Path;
use std::sync::Arc;

/// A server whose rules admit only TLS, and the files of its clients.
struct Secured {
    server: Server,
    files: tempfile::TempDir,
}

fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

/// A certificate with its key, for a host's names or a role.
fn certificate(by: &Issuer<'_, KeyPair>, names: &[&str], role: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, role);
    (params.signed_by(&key, by).unwrap().pem(), key.serialize_pem())
}

/// Those of the newest installation that was built with TLS; not each is.
fn tools_with_tls() -> Tools {
    let knows_tls = |found: &Installation| {
        let program = found.program("pg_config").display().to_string();
        let built = run(&Spec::new(program).arg("--configure"), PATIENCE).unwrap();
        ["--with-ssl", "--with-openssl"].iter().any(|option| built.stdout_text().contains(option))
    };
    let found = installations().into_iter().find(knows_tls);
    Tools::new(found.expect("a PostgreSQL server that was built with TLS")).unwrap()
}

impl Secured {
    /// The server's certificate names `names`.
    fn start(names: &[&str]) -> Secured {
        let (ours, pem) = authority("ours");
        let (_, other) = authority("other");
        let (server_pem, server_key) = certificate(&ours, names, "a server");
        let (role_pem, role_key) = certificate(&ours, &[], "bare");
        let files = scratch();
        let server = Server::of(tools_with_tls(), &[]);
        for (place, name, text) in [
            (server.data(), "server.crt", &server_pem),
            (server.data(), "server.key", &server_key),
            (server.data(), "clients.crt", &pem),
            (files.path().to_owned(), "ours.crt", &pem),
            (files.path().to_owned(), "other.crt", &other),
            (files.path().to_owned(), "server.crt", &server_pem),
            (files.path().to_owned(), "role.crt", &role_pem),
            (files.path().to_owned(), "role.key", &role_key),
        ] {
            write(&place.join(name), text);
        }
        server.sql(
            "ALTER SYSTEM SET ssl_ca_file = 'clients.crt';;ALTER SYSTEM SET ssl = on;;\
             SELECT pg_reload_conf()",
        );
        write(
            &server.data().join("pg_hba.conf"),
            "hostssl all bare all cert\n\
             hostssl all,replication linker all scram-sha-256\nhost all postgres all scram-sha-256\n",
        );
        server.sql("CREATE ROLE bare LOGIN");
        server.sql("SELECT pg_reload_conf()");
        let secured = Secured { server, files };
        wait_for("the rules to count", || secured.connect("sslmode=disable").is_err());
        secured
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn source(&self, query: &str) -> Result<Source, Failure> {
        let uri = format!("{}?{query}", self.server.uri("linker"));
        Source::parse(&uri, Some(Password::new(PASSWORD)))
    }

    /// What `pg_stat_ssl` says of a session.
    fn connect(&self, query: &str) -> Result<bool, Failure> {
        let session = self.source(query)?.connect()?;
        let row = session.row("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")?;
        Ok(row[0].as_deref() == Some("t"))
    }

    fn refusal(&self, query: &str) -> Failure {
        self.connect(query).unwrap_err()
    }
}

fn write(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    give_to_tools(path);
}

#[test]
fn each_sslmode_means_what_it_means_to_libpq() {
    let secured = Secured::start(&["127.0.0.1", "db.example"]);
    let root = |name: &str| format!("sslrootcert={}", secured.file(name));
    for query in [
        "".to_owned(),
        "sslmode=allow".to_owned(),
        "sslmode=prefer".to_owned(),
        "sslmode=require".to_owned(),
        format!("sslmode=require&{}", root("ours.crt")),
        format!("sslmode=verify-ca&{}", root("ours.crt")),
        format!("sslmode=verify-full&{}", root("ours.crt")),
        // The server's own certificate may vouch for itself.
        format!("sslmode=verify-full&{}", root("server.crt")),
    ] {
        assert!(secured.connect(&query).unwrap_or_else(|e| panic!("{query}: {e}")), "{query}");
    }
    for (query, code, hint) in [
        ("sslmode=disable".to_owned(), ErrorKind::SourceRefused, "sslmode=require"),
        (format!("sslmode=require&{}", root("other.crt")), ErrorKind::SourceRefused, "sslrootcert"),
        (
            format!("sslmode=verify-ca&{}", root("other.crt")),
            ErrorKind::SourceRefused,
            "sslrootcert",
        ),
        (
            format!("sslmode=verify-full&{}", root("other.crt")),
            ErrorKind::SourceRefused,
            "sslrootcert",
        ),
        (format!("sslmode=verify-full&{}", root("absent.crt")), ErrorKind::InvalidInput, "PEM"),
        (format!("sslmode=verify-full&{}", root("role.key")), ErrorKind::InvalidInput, "PEM"),
    ] {
        let failure = secured.refusal(&query);
        assert_eq!(failure.code, code, "{query}: {failure}");
        assert!(failure.hint.contains(hint), "{query}: {failure} {}", failure.hint);
    }
}

#[test]
fn another_host_s_certificate_is_refused_where_names_count() {
    let secured = Secured::start(&["elsewhere.example"]);
    let root = format!("sslrootcert={}", secured.file("ours.crt"));
    assert!(secured.connect(&format!("sslmode=verify-ca&{root}")).unwrap());
    let failure = secured.refusal(&format!("sslmode=verify-full&{root}"));
    assert_eq!(failure.code, ErrorKind::SourceRefused);
    assert!(failure.hint.contains("verify-ca"), "{failure} {}", failure.hint);
    let own = format!("sslmode=verify-full&sslrootcert={}", secured.file("server.crt"));
    assert!(secured.refusal(&own).hint.contains("verify-ca"));
    // The database's own tools get the same settings, and decide alike.
    let source = secured.source(&format!("sslmode=verify-full&{root}")).unwrap();
    assert!(precheck(&source, &installations()).into_result().is_err());
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_asked_for() {
    let server = Server::start(&[]);
    let uri = format!("{}?sslmode=require", server.uri("linker"));
    let source = Source::parse(&uri, Some(Password::new(PASSWORD))).unwrap();
    let failure = source.connect().err().unwrap();
    assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
    assert!(failure.hint.contains("ssl = on"), "{failure} {}", failure.hint);
}

#[test]
fn everything_that_a_link_asks_goes_over_tls() {
    let secured = Secured::start(&["127.0.0.1"]);
    let query = format!("sslmode=verify-full&sslrootcert={}", secured.file("ours.crt"));
    let source = secured.source(&query).unwrap();
    let facts = precheck(&source, &installations()).into_result().unwrap();
    create_slot(&source.connect().unwrap(), "offshoot_test").unwrap();
    let place = scratch();
    let receiver = ReceiverSpec {
        source: source.clone(),
        ..secured.server.receiver_spec(&place.path().join("log"))
    };
    let receiver = Receiver::start(receiver, Arc::new(SystemClock)).unwrap();
    receiver.wait_streaming(PATIENCE).unwrap();
    let senders = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_replication USING (pid)";
    assert_eq!(secured.server.sql(senders), "t");
    let target = place.path().join("copy");
    assert!(copy_of(&secured.server.tools, &source, &facts, &target).bytes > 1 << 20);
    drop(receiver);
}

#[test]
fn a_certificate_may_stand_for_a_password() {
    let secured = Secured::start(&["127.0.0.1"]);
    let uri = secured.server.uri("bare");
    let (root, certificate) = (secured.file("ours.crt"), secured.file("role.crt"));
    let with = |key: &str| {
        let key = secured.file(key);
        let query = format!("sslrootcert={root}&sslcert={certificate}&sslkey={key}");
        Source::parse(&format!("{uri}?sslmode=verify-full&{query}"), None).unwrap().connect()
    };
    assert_eq!(with("role.key").unwrap().row("SELECT user").unwrap()[0].as_deref(), Some("bare"));
    assert_eq!(with("other.crt").err().unwrap().code, ErrorKind::InvalidInput);
    let none = Source::parse(&format!("{uri}?sslmode=require"), None).unwrap().connect();
    assert_eq!(none.err().unwrap().code, ErrorKind::SourceRefused);
}
