//! PostgreSQL's own recovery of a base copy to a position: nothing of Offshoot is in it.

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{Child, Sink, Spec, last_lines, run};
use offshoot_os::{Clock, SystemClock, unused_port};
use offshoot_postgres::Lsn;
use offshoot_rig::{Database, Source};
use offshoot_testbed::PATIENCE;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What can lie between the end of a record and the next one: the header of a page.
const BETWEEN_RECORDS_MAX: u64 = 40;

/// A base copy of a source that `pg_basebackup` made, whose log the source keeps.
pub struct Honest<'a> {
    source: &'a Source,
    place: PathBuf,
    made: AtomicU32,
}

impl<'a> Honest<'a> {
    pub fn copy(source: &'a Source) -> Result<Honest<'a>> {
        let honest =
            Honest { source, place: source.make_directory("honest")?, made: AtomicU32::new(0) };
        let base = honest.base();
        honest.succeed(
            source
                .program("pg_basebackup")
                .args([
                    "--wal-method=none",
                    "--checkpoint=fast",
                    "--no-sync",
                    "--username=postgres",
                ])
                .args(["--host=127.0.0.1", &format!("--port={}", source.port())])
                .arg(format!("--pgdata={}", base.display()))
                .env("PGPASSWORD", source.password()),
        )?;
        honest.succeed(source.program("/bin/touch").arg(base.join("recovery.signal")))?;
        let settings = format!(
            "restore_command = 'cp \"{}/pg_wal/%f\" \"%p\"'\nrecovery_target_inclusive = off\n\
             recovery_target_action = promote\nhot_standby = off\nfsync = off\nautovacuum = off\n\
             wal_keep_size = 0\n",
            source.data_dir().display()
        );
        let auto = base.join("postgresql.auto.conf");
        std::fs::File::options().append(true).open(auto)?.write_all(settings.as_bytes())?;
        Ok(honest)
    }

    fn base(&self) -> PathBuf {
        self.place.join("base")
    }

    fn succeed(&self, spec: Spec) -> Result<()> {
        let output = run(&spec, PATIENCE)?;
        ensure!(output.success(), "{}: {}", spec.name(), output.stderr_text());
        Ok(())
    }

    /// Recovers a fresh clone of the base copy: all records that end at or before this end of a record.
    pub fn replay(&self, to: Lsn) -> Result<Replayed<'_>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let data = self.place.join(format!("to-{number}"));
        let copy = self.source.program("/bin/cp").args(["-a", "--reflink=auto"]);
        self.succeed(copy.arg(self.base()).arg(&data))?;
        let port = unused_port().context("no port is free")?;
        let log = data.with_extension("log");
        let server = self
            .source
            .program("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string()])
            .args(["-c", &format!("recovery_target_lsn={to}")])
            .stderr(Sink::File(log.clone()))
            .die_with_parent(true)
            .spawn()?;
        let mut replayed = Replayed { honest: self, data, log, port, server };
        let ready = replayed.wait(to);
        ready.with_context(|| last_lines(&replayed.log, 8).join("\n"))?;
        Ok(replayed)
    }
}

/// A server that was recovered to a position. It ends with this value, and its files go.
pub struct Replayed<'a> {
    honest: &'a Honest<'a>,
    data: PathBuf,
    log: PathBuf,
    port: u16,
    server: Child,
}

impl Replayed<'_> {
    pub fn connect(&self, database: &str) -> Result<Database> {
        let password = self.honest.source.password();
        let port = self.port;
        Database::connect(&format!("postgresql://postgres:{password}@127.0.0.1:{port}/{database}"))
    }

    fn wait(&mut self, to: Lsn) -> Result<()> {
        let clock = SystemClock;
        let deadline = clock.elapsed() + PATIENCE;
        // Without hot_standby nobody is let in before recovery has ended.
        let session = loop {
            match self.connect("postgres") {
                Ok(session) => break session,
                Err(error) if clock.elapsed() > deadline => return Err(error),
                Err(_) => ensure!(self.server.try_wait()?.is_none(), "it ended"),
            }
            clock.sleep(Duration::from_millis(20));
        };
        ensure!(session.text("SELECT pg_is_in_recovery()")? == "f", "it is not promoted");
        let reached: Lsn = session.text("SELECT pg_last_wal_replay_lsn()")?.parse()?;
        ensure!(reached.0.abs_diff(to.0) <= BETWEEN_RECORDS_MAX, "it ended at {reached}, not {to}");
        Ok(())
    }
}

impl Drop for Replayed<'_> {
    fn drop(&mut self) {
        self.server.kill_group();
        let _ = std::fs::remove_dir_all(&self.data);
        let _ = std::fs::remove_file(&self.log);
    }
}
