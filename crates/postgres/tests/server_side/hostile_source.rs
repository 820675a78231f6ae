//! A source under a hostile load.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use offshoot_postgres::Lsn;
use offshoot_postgres::server::{self, Server};

use crate::cluster::*;
use crate::hostile_load::{SETTINGS, Session, TABLES, work};

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
        const COMMITS: &str = "CREATE TABLE public.mark (); DROP TABLE public.mark";
        let mut session = self.server.connect().unwrap();
        session.execute(COMMITS, DEADLINE).unwrap();
        let lsn = session.query_column("SELECT pg_current_wal_insert_lsn()", DEADLINE).unwrap();
        // This session commits with a flush, of everything before.
        session.execute(COMMITS, DEADLINE).unwrap();
        lsn[0].parse().unwrap()
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
