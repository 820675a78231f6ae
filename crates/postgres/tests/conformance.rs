//! PostgreSQL passes the suite of every connector, on real servers.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::too_many_lines)]

use offshoot_conformance::{
    Content, Harness, PATIENCE, Production, Setting, conformance, give_to, until,
};
use offshoot_connector::{Connector, ServerSpec};
use offshoot_domain::ConnectorState;
use offshoot_launcher::ThisHost;
use offshoot_os::process::{Child, Signal, Sink, Spec, run};
use offshoot_postgres::installation::{Installation, Tools, find_installations};
use offshoot_postgres::source::{Password, Session, Source as Login};
use offshoot_postgres::{Postgres, server};
use offshoot_rig::Initdb;
use offshoot_types::LogPosition;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A superuser, but not the one that everybody expects.
const BOSS: &str = "boss";
const SECRET: &str = "s3cret";
/// The engine's own role in a copy.
const ENGINE_ROLE: &str = "offshoot_engine";

/// On the distribution's server, or on the one of a major version among those of `OFFSHOOT_TEST_PG_BINS`.
const DISTRIBUTION: PostgresHarness = PostgresHarness { major: None };

conformance!(DISTRIBUTION);

/// What differs between major versions: the log and its tools, recovery, replication, settings.
macro_rules! on_another_version {
    ($module:ident, $major:literal, $needs:literal) => {
        mod $module {
            use super::*;

            const HARNESS: PostgresHarness = PostgresHarness { major: Some($major) };

            conformance! { ignored $needs, HARNESS;
                source: a_source_is_named_alike_each_time, a_cancelled_copy_is_made_again;
                log: positions_order_as_commits;
                moment: a_moment_between_commits_shows_those_before, an_image_is_cloned_and_opened;
                staging: staging_goes_on_after_any_stop;
                point: a_recovery_point_goes_on_like_any_image;
                server: ties_are_cut_for_good, settings_are_looked_at_first;
                image: a_sound_image_passes_and_a_flipped_bit_is_found;
                masking: what_rules_name_is_masked_alike;
            }

            /// The whole suite takes minutes: `make test-full` runs it.
            mod whole {
                use super::*;

                conformance!(ignored $needs, HARNESS);
            }
        }
    };
}

on_another_version!(needs_postgres_13, 13, "needs PostgreSQL 13 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_14, 14, "needs PostgreSQL 14 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_16, 16, "needs PostgreSQL 16 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_17, 17, "needs PostgreSQL 17 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_18, 18, "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS");

struct PostgresHarness {
    major: Option<u32>,
}

fn configured() -> Vec<PathBuf> {
    let more = std::env::var_os("OFFSHOOT_TEST_PG_BINS").unwrap_or_default();
    std::env::split_paths(&more).collect()
}

impl PostgresHarness {
    fn installation(&self) -> Installation {
        let all = |places: &[PathBuf]| find_installations(places).into_iter();
        let found = match self.major {
            Some(major) => all(&configured()).find(|one| one.major == major),
            None => all(&[]).next().or_else(|| all(&configured()).next()),
        };
        found.unwrap_or_else(|| panic!("no such server: see scripts/test-postgres.sh"))
    }

    fn tools(&self) -> Tools {
        Tools::new(self.installation()).unwrap()
    }
}

/// Programs that talk to any version.
fn tools() -> Tools {
    DISTRIBUTION.tools()
}

fn uri(secret: &str, port: u16) -> String {
    format!("postgresql://{BOSS}:{secret}@127.0.0.1:{port}/postgres")
}

/// Runs SQL with psql; returns what it printed, or its error.
fn psql(to: &str, sql: &str) -> Result<String, String> {
    // As ourselves: nobody else is let in by a server's own socket.
    let spec = Spec::new(tools().installation.bin_dir.join("psql"))
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, to])
        .env("PGCONNECT_TIMEOUT", "10")
        .cwd("/");
    let output = run(&spec, PATIENCE).unwrap();
    if output.success() { Ok(output.stdout_text()) } else { Err(output.stderr_text()) }
}

/// The same by a server's own socket.
fn inside(spec: &ServerSpec, sql: &str) -> Result<String, String> {
    let (socket, port) = (spec.runtime_dir.join("s"), spec.tcp_port.unwrap_or(5432));
    let as_role = |role| {
        let to = format!("host={} port={port} user={role} dbname=postgres", socket.display());
        psql(&to, sql)
    };
    // The engine's role is made when the ties are cut, which ends the login of the other.
    as_role(ENGINE_ROLE).or_else(|_| as_role(BOSS))
}

const CONTENT: &str = "SELECT coalesce(json_object_agg(key, value), '{}') FROM kv";

fn parse(text: &str) -> Content {
    serde_json::from_str(text.trim()).unwrap()
}

fn put(key: &str, value: &str) -> String {
    format!(
        "INSERT INTO kv VALUES ('{key}', '{value}') ON CONFLICT (key) DO UPDATE SET value = excluded.value \
         RETURNING pg_current_xact_id()::text"
    )
}

impl Harness for PostgresHarness {
    fn connector(&self) -> Arc<dyn Connector> {
        let launcher = ThisHost::with_user(server::USER).unwrap();
        Arc::new(Postgres::new(Arc::new(launcher), configured()))
    }

    fn produce(&self, directory: &Path) -> Box<dyn Production> {
        let tools = self.tools();
        let data = directory.join("data");
        let initdb = Initdb {
            bin_dir: &tools.installation.bin_dir,
            superuser: BOSS,
            password: Some(SECRET),
            more: &["--wal-segsize=1"],
        };
        initdb.make(tools.user.as_ref(), &data).unwrap();
        let port = offshoot_os::unused_port().unwrap();
        let settings = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n\
             fsync = off\nshared_buffers = 16MB\nautovacuum = off\nwal_keep_size = 0\n\
             max_wal_size = 8MB\nmin_wal_size = 2MB\nlog_min_messages = log\n",
            directory.display()
        );
        let conf = data.join("postgresql.auto.conf");
        std::fs::write(&conf, settings).unwrap();
        give_to(&conf, tools.user.as_ref());
        let directory = directory.to_owned();
        let mut source = Source { tools, directory, port, child: None, session: None };
        source.start();
        // Two thirds of what each clone would copy.
        source.sql("UPDATE pg_database SET datistemplate = false");
        source.sql("DROP DATABASE template0");
        source.sql("DROP DATABASE template1");
        source.sql("CREATE TABLE kv (key text PRIMARY KEY, value text NOT NULL)");
        // Values are kept in their rows, uncompressed.
        source.sql("ALTER TABLE kv ALTER value SET STORAGE external");
        Box::new(source)
    }

    fn content(&self, spec: &ServerSpec) -> Result<Content, String> {
        inside(spec, CONTENT).map(|text| parse(&text))
    }

    fn content_by(&self, uri: &str) -> Result<Content, String> {
        psql(uri, CONTENT).map(|text| parse(&text))
    }

    fn put_by(&self, uri: &str, key: &str, value: &str) -> Result<(), String> {
        psql(uri, &put(key, value)).map(drop)
    }

    fn ties(&self, spec: &ServerSpec) -> Vec<String> {
        let sql = "SELECT subname FROM pg_subscription WHERE subenabled OR subslotname IS NOT NULL \
                   UNION ALL SELECT slot_name FROM pg_replication_slots \
                   UNION ALL SELECT name FROM pg_settings WHERE setting <> '' \
                   AND name IN ('primary_conninfo', 'primary_slot_name', 'archive_command') \
                   AND setting <> '(disabled)'";
        inside(spec, sql).unwrap().lines().map(str::to_owned).collect()
    }

    fn settings(&self) -> (Setting, Setting) {
        (("work_mem", "8MB"), ("colour", "blue"))
    }

    fn masking_rules(&self) -> Option<&'static str> {
        Some(
            "version: 1\nkey: main\ntables:\n  public.kv:\n    where: \"key LIKE 'person%'\"\n    \
             columns: {value: character-mapping}\n",
        )
    }

    fn damage(&self, data_dir: &Path) {
        let wanted = b"the copy";
        for database in std::fs::read_dir(data_dir.join("base")).unwrap().flatten() {
            for file in std::fs::read_dir(database.path()).unwrap().flatten() {
                let mut bytes = std::fs::read(file.path()).unwrap();
                if let Some(at) = memchr::memmem::find(&bytes, wanted) {
                    bytes[at] ^= 1;
                    return std::fs::write(file.path(), bytes).unwrap();
                }
            }
        }
        panic!("the table is not in {}", data_dir.display());
    }

    fn log_byte(&self, state: &ConnectorState, log: &Path, position: LogPosition) -> (String, u64) {
        let bytes = state.data["wal_segment_bytes"].as_u64().unwrap();
        let (number, per_part) = (position.0 / bytes, (1 << 32) / bytes);
        let name = format!("{:08X}{:08X}{:08X}", 1, number / per_part, number % per_part);
        let partial = format!("{name}.partial");
        let name = if log.join(&partial).exists() { partial } else { name };
        (name, position.0 % bytes)
    }
}

/// A cluster in production.
struct Source {
    tools: Tools,
    directory: PathBuf,
    port: u16,
    child: Option<Child>,
    session: Option<Session>,
}

impl Source {
    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn login(&self) -> Login {
        let uri = format!("postgresql://{BOSS}@127.0.0.1:{}/postgres", self.port);
        Login::parse(&uri, Some(Password::new(SECRET))).unwrap()
    }

    /// Runs a statement; the first column of what it returned.
    fn column(&mut self, sql: &str) -> Vec<String> {
        if self.session.is_none() {
            let session = self.login().connect().unwrap();
            // A link sees nothing but the catalog; production has tables.
            session.rows("SET search_path = public").unwrap();
            self.session = Some(session);
        }
        let rows = self.session.as_ref().unwrap().rows(sql).unwrap();
        rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
    }

    fn sql(&mut self, sql: &str) -> String {
        self.column(sql).into_iter().next().unwrap_or_default()
    }
}

impl Production for Source {
    fn uri(&self, port: Option<u16>) -> String {
        uri(SECRET, port.unwrap_or(self.port))
    }

    fn wrong_uri(&self) -> String {
        uri("guess", self.port)
    }

    fn uri_at(&self, port: u16) -> String {
        uri(SECRET, port)
    }

    fn commit(&mut self, key: &str, value: &str) -> String {
        self.sql(&put(key, value))
    }

    fn content(&mut self) -> Content {
        parse(&self.sql(CONTENT))
    }

    fn tie_to(&mut self, port: u16) {
        self.sql(&format!(
            "CREATE SUBSCRIPTION tie CONNECTION 'host=127.0.0.1 port={port} user=u password=p dbname=d' \
             PUBLICATION p WITH (connect = false, slot_name = 'tie')"
        ));
        self.sql("ALTER SUBSCRIPTION tie ENABLE");
    }

    fn reservations(&mut self) -> Vec<String> {
        self.column("SELECT slot_name FROM pg_replication_slots")
    }

    fn drop_log(&mut self) {
        for _ in 0..2 {
            self.sql("SELECT pg_switch_wal()");
            self.sql("CHECKPOINT");
        }
    }

    fn stop(&mut self, crash: bool) {
        self.session = None;
        let mut child = self.child.take().unwrap();
        if !crash {
            child.signal(Signal::Interrupt).unwrap();
            child.wait_timeout(PATIENCE).unwrap();
        }
        // They notice within moments that it is gone; a new server is refused while they live.
        let children = child.process_id().map(|id| id.children()).unwrap_or_default();
        child.kill_group();
        assert!(children.iter().all(|one| one.wait_end(PATIENCE)), "a child outlived the crash");
        let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
    }

    fn start(&mut self) {
        let spec = self
            .tools
            .spec("postgres")
            .arg("-D")
            .arg(self.data())
            .stderr(Sink::File(self.directory.join("log")))
            .die_with_parent(true);
        self.child = Some(spec.spawn().unwrap());
        until("the source answers", || self.login().connect().is_ok());
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let children = child.process_id().map(|id| id.children()).unwrap_or_default();
            child.kill_group();
            children.iter().for_each(|one| _ = one.wait_end(PATIENCE));
        }
    }
}
