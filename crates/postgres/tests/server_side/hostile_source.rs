//! A source under a hostile load.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use offshoot_postgres::Lsn;
use offshoot_postgres::server::{self, Server};
use offshoot_postgres::session;

use crate::cluster::*;
use crate::hostile_load::{SETTINGS, Session, TABLES, work};

/// Needs log.
const COMMITS: &str = "CREATE TABLE public.mark (); DROP TABLE public.mark";

/// A running source.
pub struct Source {
    pub data: PathBuf,
    pub server: Server,
}

impl Source {
    pub fn start(scratch: &Scratch, bin: &Path) -> Source {
        let data = fresh(scratch, bin, "source");
        std::fs::write(data.join("postgresql.conf"), SETTINGS).unwrap();
        let mut spec = scratch.spec(bin, &data, "source");
        spec.superusers = vec![BOSS.to_owned()];
        let mut server = server::start(spec).unwrap();
        let mut session = server.wait_ready(DEADLINE).unwrap();
        session.execute("CREATE DATABASE shop", DEADLINE).unwrap();
        server.connect_to("shop").unwrap().execute(TABLES, DEADLINE).unwrap();
        Source { data, server }
    }

    pub fn backup(&self, bin: &Path, to: &Path) {
        base_backup(&self.server, bin, to);
    }

    /// Where its log ends, all of it written.
    pub fn end(&self) -> Lsn {
        let mut session = self.server.connect().unwrap();
        session.execute(COMMITS, DEADLINE).unwrap();
        self.end_now(&mut session)
    }

    fn end_now(&self, session: &mut session::Session) -> Lsn {
        let lsn = session.query_column("SELECT pg_current_wal_insert_lsn()", DEADLINE).unwrap();
        // This session commits with a flush, of everything before.
        session.execute(COMMITS, DEADLINE).unwrap();
        lsn[0].parse().unwrap()
    }

    /// Where its log ends, less than a checkpoint's record before one of its files does.
    pub fn end_near_end_of_file(&self, segment_bytes: u64) -> Lsn {
        let fill = format!(
            "DO $$ DECLARE free bigint; BEGIN LOOP \
             free := {segment_bytes} - (pg_current_wal_insert_lsn() - '0/0') % {segment_bytes}; \
             EXIT WHEN free BETWEEN 32 AND 104; \
             PERFORM pg_logical_emit_message(false, '', \
             repeat('x', CASE WHEN free > 20000 THEN (free * 0.99)::int ELSE 1 END)); \
             END LOOP; END $$"
        );
        let mut session = self.server.connect().unwrap();
        session.execute(&fill, DEADLINE).unwrap();
        self.end_now(&mut session)
    }

    /// Works for a while, and leaves prepared transactions open.
    pub fn work(&self, time: Duration) {
        let end = Instant::now() + time;
        let connect = || -> Session {
            let mut session = self.server.connect_to("shop").unwrap();
            Box::new(move |sql| drop(session.execute(sql, DEADLINE)))
        };
        work(&connect, &|| Instant::now() < end);
        let mut session = self.server.connect_to("shop").unwrap();
        let open = "SELECT count(*) FROM pg_prepared_xacts";
        assert_ne!(session.query_column(open, DEADLINE).unwrap(), ["0"]);
    }
}
