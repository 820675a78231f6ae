//! A real server whose owner has laid traps for whoever logs in.

use crate::server::{PATIENCE, Server, copy_of, give_to_tools, installations, scratch};
use offshoot_postgres::config::SOURCE_SETTINGS_SQL;
use offshoot_postgres::slot::{create_slot, drop_slot};
use offshoot_postgres::source::{precheck, read_facts};

/// Functions and operators of `public` and of another schema with the names that a link uses, each of
/// which tells of its use.
fn lay(server: &Server) {
    server.sql(
        "CREATE TABLE public.caught (by text);;\
         GRANT INSERT ON public.caught TO PUBLIC;;\
         CREATE FUNCTION public.spring(name text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ BEGIN INSERT INTO public.caught VALUES (name); RETURN true; END $$",
    );
    for schema in ["public", "evil"] {
        if schema == "evil" {
            server.sql("CREATE SCHEMA evil;;GRANT USAGE ON SCHEMA evil TO PUBLIC");
        }
        for (function, result, value) in [
            ("current_setting(text)", "text", "'replica'"),
            ("pg_is_in_recovery()", "boolean", "false"),
            ("pg_walfile_name(pg_lsn)", "text", "'000000010000000000000001'"),
            ("pg_current_wal_lsn()", "pg_lsn", "'0/1'"),
            ("pg_current_wal_flush_lsn()", "pg_lsn", "'0/1'"),
            ("pg_current_wal_insert_lsn()", "pg_lsn", "'0/1'"),
            ("pg_database_size(oid)", "bigint", "1"),
            ("pg_tablespace_location(oid)", "text", "'/evil'"),
            ("has_database_privilege(oid, text)", "boolean", "true"),
            ("clock_timestamp()", "timestamptz", "'2000-01-01'"),
            ("to_char(timestamp, text)", "text", "'2000-01-01T00:00:00Z'"),
            ("substr(text, integer, integer)", "text", "'x'"),
            ("pg_create_physical_replication_slot(name, boolean)", "text", "'x'"),
            ("pg_drop_replication_slot(name)", "void", "NULL"),
            ("texteq_evil(text, text)", "boolean", "true"),
            ("nameeq_evil(name, text)", "boolean", "true"),
            ("textcat_evil(text, text)", "text", "'x'"),
        ] {
            let name = function.split('(').next().unwrap();
            server.sql(&format!(
                "CREATE FUNCTION {schema}.{function} RETURNS {result} LANGUAGE plpgsql AS \
                 $$ BEGIN PERFORM public.spring('{name}'); RETURN {}; END $$",
                if result == "void" { String::new() } else { format!("{value}::{result}") }
            ));
        }
        for (operator, function, left, right) in [
            ("=", "texteq_evil", "text", "text"),
            ("=", "nameeq_evil", "name", "text"),
            ("||", "textcat_evil", "text", "text"),
        ] {
            server.sql(&format!(
                "CREATE OPERATOR {schema}.{operator} \
                 (FUNCTION = {schema}.{function}, LEFTARG = {left}, RIGHTARG = {right})"
            ));
        }
        for view in
            ["pg_settings", "pg_database", "pg_replication_slots", "pg_tablespace", "pg_roles"]
        {
            server.sql(&format!(
                "CREATE VIEW {schema}.{view} AS SELECT public.spring('{view}'), * FROM pg_catalog.{view};;\
                 GRANT SELECT ON {schema}.{view} TO PUBLIC"
            ));
        }
    }
}

/// Makes every session look there first.
fn lure(server: &Server) {
    for of in ["ROLE linker", "DATABASE postgres"] {
        server.sql(&format!(
            "ALTER {of} SET search_path = evil, public, pg_catalog;;\
             ALTER {of} SET client_min_messages = debug1;;\
             ALTER {of} SET standard_conforming_strings = off;;\
             ALTER {of} SET DateStyle = 'German'"
        ));
    }
    if server.tools.installation.major >= 17 {
        server.sql(
            "CREATE FUNCTION evil.at_login() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM set_config('search_path', 'evil, public, pg_catalog', false); END $$;;\
             CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION evil.at_login();;\
             ALTER EVENT TRIGGER at_login ENABLE ALWAYS",
        );
    }
}

fn caught(server: &Server) -> String {
    server.sql("SELECT pg_catalog.string_agg(DISTINCT by, ' ') FROM public.caught")
}

#[test]
fn a_link_steps_into_no_trap() {
    let server = Server::start(&[]);
    lay(&server);
    lure(&server);
    let source = server.source("linker");
    // The traps work.
    let session = source.connect().unwrap();
    session.rows("SET search_path = evil, pg_catalog").unwrap();
    session
        .rows("SELECT current_setting('wal_level'), 1 FROM pg_settings WHERE 'a'::text = 'b'")
        .unwrap();
    assert_eq!(caught(&server), "current_setting pg_settings texteq_evil");
    server.sql("TRUNCATE public.caught");

    let facts = precheck(&source, &installations()).into_result().unwrap();
    assert_eq!((facts.timeline, facts.tablespaces.len()), (1, 0));
    let session = source.connect().unwrap();
    read_facts(&session).unwrap();
    session.rows(SOURCE_SETTINGS_SQL).unwrap();
    create_slot(&session, "offshoot_other").unwrap();
    drop_slot(&session, "offshoot_other").unwrap();
    let place = scratch();
    let receiver = server.receive(&place.path().join("log"));
    receiver.ask_now(PATIENCE).unwrap();
    let target = place.path().join("copy");
    copy_of(&server.tools, &source, &facts, &target);
    give_to_tools(&target);
    drop(receiver);
    assert_eq!(caught(&server), "");
}
