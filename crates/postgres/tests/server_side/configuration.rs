//! Our settings win, whatever the source's files say.

use std::collections::BTreeMap;

use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::server;
use offshoot_postgres::{access, session::Session};
use offshoot_types::ErrorKind;

use crate::cluster::*;

const HOSTILE: &str = "
data_directory = '/nowhere/data'
hba_file = '/nowhere/pg_hba.conf'
ident_file = '/nowhere/pg_ident.conf'
external_pid_file = '/nowhere/main.pid'
listen_addresses = '*'
port = 5999
unix_socket_directories = '/nowhere/run'
unix_socket_group = 'nobody-at-all'
ssl = on
ssl_cert_file = '/nowhere/cert.pem'
ssl_key_file = '/nowhere/key.pem'
shared_preload_libraries = 'no_such_library, pg_cron, plpgsql'
session_preload_libraries = 'no_such_library'
shared_buffers = 4TB
huge_pages = on
logging_collector = on
log_directory = '/nowhere/log'
archive_mode = on
archive_command = 'touch /var/tmp/production-was-archived'
synchronous_standby_names = 'FIRST 1 (production)'
wal_level = logical
max_connections = 37
work_mem = 7MB
lc_messages = 'xx_XX.nowhere'
lc_time = 'xx_XX.nowhere'
TimeZone = 'Nowhere/City'
default_statistics_target = 123
include_dir 'conf.d'
include '/nowhere/outside.conf'
";

const HOSTILE_AUTO: &str = "
port = '5998'
primary_conninfo = 'host=production password=sesame'
restore_command = 'cp /nowhere/%f %p'
recovery_target_time = '2001-01-01'
full_page_writes = 'on'
no_such_setting = '1'
random_page_cost = '1.5'
";

fn show(session: &mut Session, name: &str) -> String {
    let sql = format!("SELECT current_setting('{name}')");
    session.query_column(&sql, DEADLINE).unwrap().remove(0)
}

#[test]
fn a_hostile_source_configuration_does_not_get_through() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let data = fresh(&scratch, &bin, "data");
        std::fs::write(data.join("postgresql.conf"), HOSTILE).unwrap();
        std::fs::write(data.join("postgresql.auto.conf"), HOSTILE_AUTO).unwrap();
        std::fs::write(data.join("pg_hba.conf"), "host all all all trust\n").unwrap();
        std::fs::write(data.join("recovery.signal"), "").unwrap();
        std::fs::create_dir(data.join("conf.d")).unwrap();
        std::fs::write(data.join("conf.d/x.conf"), "seq_page_cost = 1.25\nport = 5997\n").unwrap();
        let dir = plain(&data);
        let from_source = BTreeMap::from([("cpu_tuple_cost".to_owned(), "0.03".to_owned())]);
        let adopted = config::adopt(&dir, &bin, user().as_ref(), &from_source).unwrap();
        assert_eq!(adopted.inherited["work_mem"], "7MB");
        assert!(adopted.dropped.iter().any(|(name, _)| name == "no_such_setting"), "{adopted:?}");
        let again = config::adopt(&dir, &bin, user().as_ref(), &Settings::new()).unwrap();
        assert_eq!(again.inherited, adopted.inherited);

        let control = control(&bin, &data);
        let options = VdbOptions {
            settings: BTreeMap::from([("work_mem".to_owned(), "9MB".to_owned())]),
            memory_bytes: None,
        };
        config::write_vdb(&dir, &control, &options).unwrap();
        access::write_vdb(&dir, false, None).unwrap();
        let mut spec = scratch.spec(&bin, &data, "vdb");
        spec.tcp_port = Some(offshoot_os::unused_port().unwrap());
        spec.superusers = vec![BOSS.to_owned()];
        let port = spec.tcp_port.unwrap().to_string();
        let mut server = server::start(spec).unwrap();
        let mut session = server.wait_ready(DEADLINE).unwrap();
        for (name, value) in [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("data_directory", data.to_str().unwrap()),
            ("ssl", "off"),
            ("archive_mode", "off"),
            ("huge_pages", "off"),
            ("logging_collector", "off"),
            ("shared_buffers", "64MB"),
            ("synchronous_standby_names", ""),
            ("primary_conninfo", ""),
            ("full_page_writes", "off"),
            ("wal_level", "logical"),
            ("shared_preload_libraries", "plpgsql"),
            ("work_mem", "9MB"),
            ("default_statistics_target", "123"),
            ("random_page_cost", "1.5"),
            ("seq_page_cost", "1.25"),
            ("cpu_tuple_cost", "0.03"),
            // Not below the control file's, although the source's file says less.
            ("max_connections", "100"),
        ] {
            assert_eq!(show(&mut session, name), value, "{name}");
        }

        // The VDB's own user's settings win, except for those the engine must rely on.
        session.execute("ALTER SYSTEM SET work_mem = '11MB'", DEADLINE).unwrap();
        session.execute("ALTER SYSTEM SET port = 5996", DEADLINE).unwrap();
        drop(session);
        assert!(server.stop(server::StopMode::Fast, DEADLINE).unwrap());
        let mut server = server::start(server.spec().clone()).unwrap();
        let mut session = server.wait_ready(DEADLINE).unwrap();
        assert_eq!(show(&mut session, "work_mem"), "11MB");
        assert_eq!(show(&mut session, "port"), port);
        server.stop(server::StopMode::Immediate, DEADLINE).unwrap();
        assert!(!std::path::Path::new("/var/tmp/production-was-archived").exists());
    }
}

#[test]
fn settings_of_users_are_checked_by_the_server_itself() {
    for bin in bin_dirs() {
        let check = |name: &str, value: &str| {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            config::validate(&bin, user().as_ref(), &settings)
        };
        for (name, value) in [("work_mem", "12MB"), ("my.setting", "it's"), ("fsync", "off")] {
            assert_eq!(check(name, value), Ok(()), "{name}");
        }
        assert_eq!(check("shared_preload_libraries", "plpgsql"), Ok(()));
        for (name, value) in [
            ("no_such_setting", "1"),
            ("work_mem", "much"),
            ("work_mem", "1"),
            ("shared_preload_libraries", "no_such_library"),
        ] {
            let failure = check(name, value).unwrap_err();
            assert_eq!(failure.code, ErrorKind::InvalidInput);
            let mentioned = failure.message.contains(name) || failure.message.contains(value);
            assert!(mentioned, "{}", failure.message);
            assert!(!failure.message.contains("/tmp"), "{}", failure.message);
        }
    }
}
