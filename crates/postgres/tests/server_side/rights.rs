//! What the user of a VDB may do, and what of production is left in it.

use std::path::{Path, PathBuf};

use offshoot_domain::TiesCut;
use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::secrets::{self, Keep};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_postgres::{access, recovery, settle, vdb_role};

use crate::cluster::*;

/// A source as it may be: owned by its superuser and by ordinary roles, with ways out.
const SOURCE: &str = "
    CREATE ROLE app LOGIN PASSWORD 'app-secret';
    CREATE ROLE idle PASSWORD 'idle-secret';
    CREATE ROLE wheel; GRANT \"the boss\" TO wheel;
    CREATE ROLE loader IN ROLE pg_execute_server_program, pg_read_server_files;
    GRANT loader, wheel TO app;
    CREATE ROLE offshoot LOGIN REPLICATION PASSWORD 'link-secret';
    GRANT pg_write_server_files TO offshoot;
    GRANT app TO offshoot;
    CREATE SCHEMA cron; CREATE TABLE cron.job (command text); INSERT INTO cron.job VALUES ('x');
    CREATE TABLE public.orders (id serial PRIMARY KEY, customer text);
    INSERT INTO public.orders (customer) SELECT md5(i::text) FROM generate_series(1, 100) i;
    CREATE VIEW public.customers AS SELECT customer FROM public.orders;
    CREATE MATERIALIZED VIEW public.counts AS SELECT count(*) FROM public.orders;
    CREATE TYPE public.mood AS ENUM ('well');
    CREATE DOMAIN public.name AS text;
    CREATE FUNCTION public.whoami() RETURNS text SECURITY DEFINER LANGUAGE sql
      AS 'SELECT current_user::text';
    CREATE PROCEDURE public.nothing() LANGUAGE sql AS '';
    CREATE AGGREGATE public.total (int) (sfunc = int4pl, stype = int, initcond = '0');
    CREATE OPERATOR public.=== (leftarg = int, rightarg = int, function = int4eq);
    CREATE SEQUENCE public.alone;
    CREATE SCHEMA app AUTHORIZATION app;
    CREATE TABLE app.invoices (id int, total numeric); ALTER TABLE app.invoices OWNER TO app;
    ALTER TABLE app.invoices ENABLE ROW LEVEL SECURITY;
    INSERT INTO app.invoices VALUES (1, 10);
    CREATE FUNCTION public.watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
    CREATE EVENT TRIGGER watching ON ddl_command_end EXECUTE FUNCTION public.watch();
    SELECT lo_from_bytea(4711, 'large');
    CREATE FOREIGN DATA WRAPPER other;
    CREATE SERVER production FOREIGN DATA WRAPPER other OPTIONS (host 'prod.example', dbname 'shop');
    CREATE USER MAPPING FOR PUBLIC SERVER production OPTIONS (password 'mapping-secret');
    CREATE SUBSCRIPTION feed CONNECTION 'host=prod.example password=feed-secret' PUBLICATION p
      WITH (connect = false);
";

/// The source's image in `data`: settled, stopped.
pub fn image(scratch: &Scratch, bin: &Path) -> PathBuf {
    let data = fresh(scratch, bin, "data");
    let dir = plain(&data);
    config::adopt(&dir, bin, user().as_ref(), &Settings::new()).unwrap();
    config::write_private(&dir, &control(bin, &data)).unwrap();
    let mut spec = scratch.spec(bin, &data, "image");
    spec.superusers = vec![BOSS.to_owned()];
    let mut server = server::start(spec).unwrap();
    let mut session = server.wait_ready(DEADLINE).unwrap();
    session.execute("CREATE DATABASE shop", DEADLINE).unwrap();
    let mut shop = server.connect_to("shop").unwrap();
    for statement in SOURCE.split(";\n") {
        shop.execute(statement, DEADLINE).unwrap();
    }
    drop((session, shop));
    let report = settle::settle(&mut server, &dir).unwrap();
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(report.disabled_subscriptions, ["shop.feed"]);
    assert_eq!(report.unscheduled, ["shop"]);
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
    recovery::finish(&dir).unwrap();
    data
}

/// A VDB of an image, as `name`.
pub struct Vdb<'a> {
    bin: &'a Path,
    pub server: Server,
    port: u16,
    password: String,
    ties: TiesCut,
}

impl<'a> Vdb<'a> {
    pub fn of(
        scratch: &Scratch,
        bin: &'a Path,
        data: &Path,
        superuser: bool,
        keep: Keep,
    ) -> Vdb<'a> {
        let dir = plain(data);
        config::write_vdb(&dir, &control(bin, data), &VdbOptions::default()).unwrap();
        access::write_vdb(&dir, keep.logins, None).unwrap();
        let name = data.file_name().unwrap().to_str().unwrap();
        let mut spec = scratch.spec(bin, data, name);
        let port = offshoot_os::unused_port().unwrap();
        spec.tcp_port = Some(port);
        let mut server = server::start(spec).unwrap();
        drop(server.wait_ready(DEADLINE).unwrap());
        let ties = secrets::remove(&server, &dir, keep).unwrap().expect("the image tells");
        let password = vdb_role::new_password();
        let mut session = server.connect().unwrap();
        vdb_role::admit(&mut session, &password, superuser).unwrap();
        vdb_role::admit(&mut session, &password, superuser).unwrap();
        Vdb { bin, server, port, password, ties }
    }

    pub fn sql(&self, statement: &str) -> Result<String, String> {
        psql(self.bin, &vdb_role::uri(self.port, &self.password, "shop"), statement)
    }

    fn works(&self, statements: &[&str]) {
        for statement in statements {
            if let Err(error) = self.sql(statement) {
                panic!("{}: {statement}: {error}", self.bin.display());
            }
        }
    }

    fn is_refused(&self, statements: &[&str]) {
        for statement in statements {
            let refusal = self.sql(statement).expect_err(statement);
            // Not for another reason: that would show nothing.
            let for_rights = REFUSALS.iter().any(|words| refusal.contains(words));
            assert!(for_rights, "{}: {statement}: {refusal}", self.bin.display());
        }
    }
}

/// How PostgreSQL says that it takes more rights.
const REFUSALS: [&str; 8] = [
    "permission denied",
    "must be superuser",
    "must have privileges of",
    "must be owner",
    "must have admin option",
    "Only roles with",
    "is not allowed",
    "role \"pg_",
];

pub const NOTHING: Keep = Keep { logins: false, foreign_servers: false };

/// What developers do, on objects of the source's superuser and of its ordinary roles.
const WORK: [&str; 26] = [
    "INSERT INTO orders (customer) VALUES ('me'); TRUNCATE orders RESTART IDENTITY",
    "VACUUM FULL orders",
    "ALTER TABLE orders ADD COLUMN note text; CREATE INDEX ON orders (note); ANALYZE orders",
    "REFRESH MATERIALIZED VIEW counts; DROP MATERIALIZED VIEW counts",
    "CREATE OR REPLACE VIEW customers AS SELECT customer, 1 AS one FROM orders",
    "ALTER TYPE mood ADD VALUE 'better'; ALTER DOMAIN public.name SET NOT NULL",
    "CREATE OR REPLACE FUNCTION whoami() RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
    "DROP PROCEDURE nothing(); DROP AGGREGATE total(int); DROP OPERATOR === (int, int)",
    "ALTER SEQUENCE alone RESTART; ALTER SEQUENCE orders_id_seq RESTART",
    "INSERT INTO app.invoices VALUES (2, 3); ALTER TABLE app.invoices ADD COLUMN tax numeric",
    "CREATE TABLE app.more (id int); CREATE SCHEMA mine; CREATE TABLE public.own (id int)",
    "DROP TABLE app.invoices",
    "CREATE ROLE tester LOGIN PASSWORD 'x'",
    "ALTER ROLE tester NOLOGIN",
    "GRANT app TO tester; GRANT tester TO offshoot",
    "ALTER ROLE app PASSWORD 'new'",
    "GRANT CREATE ON SCHEMA mine TO tester; CREATE TABLE mine.t (id int); \
       ALTER TABLE mine.t OWNER TO tester",
    "DROP TABLE mine.t",
    "CREATE DATABASE mine",
    "ALTER DATABASE mine RENAME TO yours",
    "ALTER DATABASE shop SET work_mem = '8MB'",
    "SELECT pg_stat_reset()",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'",
    "SELECT lo_get(4711)",
    "CREATE EXTENSION IF NOT EXISTS pgcrypto",
    "SET ROLE app; SELECT 1",
];

/// What leads out of the database, or to a superuser's rights.
const ATTACKS: [&str; 30] = [
    "COPY orders FROM PROGRAM 'id'",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "COPY orders TO '/tmp/orders'",
    "COPY orders FROM '/etc/passwd'",
    "SELECT pg_read_file('postgresql.auto.conf')",
    "SELECT pg_read_binary_file('global/pg_control')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(4711, '/tmp/large')",
    "SELECT pg_ls_dir('/')",
    "SET ROLE \"the boss\"",
    "SET ROLE offshoot_engine",
    "ALTER ROLE offshoot SUPERUSER",
    "ALTER ROLE \"the boss\" LOGIN PASSWORD 'x'",
    "ALTER ROLE offshoot_engine PASSWORD 'x'",
    "DROP ROLE offshoot_engine",
    "CREATE ROLE evil SUPERUSER",
    "CREATE ROLE evil IN ROLE \"the boss\"",
    "GRANT \"the boss\" TO offshoot",
    "GRANT offshoot_engine TO offshoot",
    "GRANT pg_execute_server_program TO offshoot",
    "CREATE ROLE evil IN ROLE pg_execute_server_program",
    "CREATE ROLE evil; GRANT pg_read_server_files TO evil",
    "SET ROLE wheel; SET ROLE \"the boss\"",
    "SET ROLE loader; COPY orders FROM PROGRAM 'id'",
    "ALTER SYSTEM SET archive_command = 'id'",
    "CREATE FUNCTION c() RETURNS int LANGUAGE c AS '/tmp/evil.so', 'c'",
    "LOAD '/tmp/evil.so'",
    "CREATE TABLESPACE outside LOCATION '/tmp'",
    "CREATE OR REPLACE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql \
       AS 'BEGIN ALTER ROLE offshoot SUPERUSER; END'",
    "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p WITH (connect = false)",
];

#[test]
fn the_user_of_a_vdb_owns_its_databases_and_nothing_else() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let image = image(&scratch, &bin);
        let vdb = Vdb::of(&scratch, &bin, &scratch.copy(&image, "vdb"), false, NOTHING);
        vdb.is_refused(&ATTACKS);
        // Settings of a database it owns do not reach the engine's sessions.
        let trap = "CREATE SCHEMA trap; \
            CREATE FUNCTION trap.format(text, text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN \
              ALTER ROLE offshoot SUPERUSER; RETURN ''; END $f$; \
            ALTER DATABASE shop SET search_path = trap, pg_catalog; \
            ALTER DATABASE shop SET role = app; \
            ALTER DATABASE postgres SET search_path = trap, pg_catalog; \
            ALTER DATABASE postgres SET default_transaction_read_only = on; \
            ALTER DATABASE postgres SET role = app";
        let works: Vec<&str> = WORK.into_iter().filter(|one| has_contrib(&bin, one)).collect();
        vdb.works(&works);
        vdb.works(&[trap]);
        for database in ["postgres", "shop"] {
            let mut session = vdb.server.connect_to(database).unwrap();
            vdb_role::admit(&mut session, &vdb.password, false).unwrap();
            let who =
                "SELECT current_user || ' ' || rolsuper FROM pg_roles WHERE rolname = 'offshoot'";
            assert_eq!(session.query_column(who, DEADLINE).unwrap(), ["offshoot_engine false"]);
        }
        vdb.is_refused(&ATTACKS);
    }
}

/// Some builds of PostgreSQL come without its extensions.
fn has_contrib(bin: &Path, statement: &str) -> bool {
    !statement.contains("EXTENSION") || has_amcheck(bin)
}

#[test]
fn nothing_of_production_is_left_unless_it_is_kept() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let image = image(&scratch, &bin);
        let count =
            |vdb: &Vdb<'_>, what: &str| vdb.sql(&format!("SELECT count(*) FROM {what}")).unwrap();
        let mappings = "pg_user_mapping WHERE umoptions IS NOT NULL";
        let servers = "pg_foreign_server WHERE srvoptions IS NOT NULL";
        let passwords = "pg_authid WHERE rolpassword IS NOT NULL AND rolname <> 'offshoot'";
        let feeds = "pg_subscription WHERE subconninfo <> '' OR subenabled";

        let vdb = Vdb::of(&scratch, &bin, &scratch.copy(&image, "bare"), true, NOTHING);
        for what in [mappings, servers, passwords, feeds, "cron.job"] {
            assert_eq!(count(&vdb, what), "0", "{what}");
        }
        let always = ["subscriptions: shop.feed", "scheduled jobs, in databases: shop"];
        let bare = [
            "logins of roles: app, the boss",
            "passwords of roles: app, idle",
            "addresses and passwords of foreign servers, in databases: shop",
        ];
        assert_eq!(vdb.ties.cut, [&bare[..], &always].concat());
        let secret = "pg_user_mapping SET umoptions = '{password=own}'";
        vdb.works(&[&format!("UPDATE {secret}"), "ALTER ROLE app LOGIN PASSWORD 'own'"]);
        // What its users made is theirs: it is not taken away when the VDB is opened again.
        let dir = plain(&vdb.server.spec().data_dir);
        assert_eq!(secrets::remove(&vdb.server, &dir, NOTHING).unwrap(), None);
        assert_eq!((count(&vdb, mappings), count(&vdb, passwords)), ("1".into(), "1".into()));

        let all = Keep { logins: true, foreign_servers: true };
        let vdb = Vdb::of(&scratch, &bin, &scratch.copy(&image, "kept"), true, all);
        assert_eq!((count(&vdb, mappings), count(&vdb, servers)), ("1".into(), "1".into()));
        assert_eq!(vdb.ties.cut, always, "the rest is there");
        assert_eq!(count(&vdb, feeds), "0");
        let app = format!("postgresql://app:app-secret@127.0.0.1:{}/shop", vdb.port);
        assert_eq!(psql(&bin, &app, "SELECT 1").unwrap(), "1");
    }
}

/// Whoever may run programs as the servers' user still is nobody to the engine's own socket.
#[test]
fn only_the_engine_gets_in_by_a_private_socket() {
    let Some(servers_user) = user() else { return };
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let data = image(&scratch, &bin);
        let vdb = Vdb::of(&scratch, &bin, &data, false, NOTHING);
        let socket = vdb.server.spec().socket_dir();
        for role in ["offshoot_engine", "offshoot", "the boss", "postgres"] {
            let spec = offshoot_os::process::Spec::new(bin.join("psql"))
                .args(["-XAtqc", "SELECT 1", "-U", role, "-p", &vdb.port.to_string(), "-d", "shop"])
                .arg("-h")
                .arg(&socket)
                .user(Some(servers_user.clone()))
                .cwd("/")
                .stderr(offshoot_os::process::Sink::Pipe);
            let output = offshoot_os::process::run(&spec, DEADLINE).unwrap();
            assert!(
                !output.success() && output.stderr_text().contains("authentication failed"),
                "{role}"
            );
        }
        let by_tcp = format!("postgresql://offshoot_engine:x@127.0.0.1:{}/shop", vdb.port);
        assert!(psql(&bin, &by_tcp, "SELECT 1").unwrap_err().contains("rejects"));
    }
}
