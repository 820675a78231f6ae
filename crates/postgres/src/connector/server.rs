//! Servers as the engine sees them.

use crate::handover::hand_over;
use crate::secrets::{self, Keep};
use crate::server::{Server as Launched, StopMode as LaunchedStop};
use crate::session::Session;
use crate::wire::Door;
use crate::{settle, standby, vdb_role};
use jiff::Timestamp;
use offshoot_connector::{DataDir, Grant, Granted, Progress, Server, StopMode};
use offshoot_domain::TiesCut;
use offshoot_os::process::ProcessId;
use offshoot_types::{Failure, LogPosition};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to say where its log ends.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A server on files that the engine reaches by `files`.
pub(super) struct RunningServer {
    process: ProcessId,
    server: Mutex<Launched>,
    files: Arc<dyn DataDir>,
    /// For queries that are repeated.
    session: Mutex<Option<Session>>,
}

impl RunningServer {
    pub(super) fn new(server: Launched, files: Arc<dyn DataDir>) -> RunningServer {
        let process = server.process_id();
        RunningServer { process, server: Mutex::new(server), files, session: Mutex::default() }
    }

    /// A server that this connector has started.
    pub(super) fn of(server: &dyn Server) -> Result<&RunningServer, Failure> {
        (server as &dyn Any)
            .downcast_ref()
            .ok_or_else(|| Failure::internal("the server of another connector"))
    }

    /// Where a server that this connector has started is reached by the engine alone.
    pub(super) fn door(server: &dyn Server) -> Result<Door, Failure> {
        Ok(RunningServer::of(server)?.with(|server| Door::of(server.spec())))
    }

    /// Its data directory.
    pub(super) fn files(&self) -> &dyn DataDir {
        &*self.files
    }

    /// Works with the server, exclusively.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Launched) -> T) -> T {
        work(&self.server.lock())
    }
}

impl Server for RunningServer {
    fn process_id(&self) -> ProcessId {
        self.process
    }

    fn running(&self) -> bool {
        self.server.lock().running()
    }

    fn recovering(&self) -> Option<String> {
        self.server.lock().recovering()
    }

    fn wait_ready(&self, deadline: Duration) -> Result<(), Failure> {
        self.server.lock().wait_ready(deadline).map(drop)
    }

    fn position(&self) -> Result<LogPosition, Failure> {
        let mut session = self.server.lock().connect()?;
        let rows = session.query("SELECT pg_current_wal_flush_lsn()", QUERY_TIMEOUT)?;
        let text = rows.first().and_then(|row| row.first()?.clone()).unwrap_or_default();
        let lsn: crate::lsn::Lsn = text
            .parse()
            .map_err(|error| Failure::internal(format!("the server's position: {error}")))?;
        Ok(lsn.into())
    }

    fn replayed(&self) -> Result<Progress, Failure> {
        let mut open = self.session.lock();
        let session = match &mut *open {
            Some(session) => session,
            None => open.insert(self.server.lock().connect()?),
        };
        match standby::replay_state(session) {
            Ok(state) => Ok(Progress {
                position: state.replayed_lsn.into(),
                epoch: state.timeline,
                last_commit: state
                    .last_commit_micros
                    .and_then(|micros| Timestamp::from_microsecond(micros).ok()),
            }),
            Err(failure) => {
                *open = None;
                Err(failure)
            }
        }
    }

    fn cut_ties(&self) -> Result<TiesCut, Failure> {
        let report = settle::settle(&mut self.server.lock(), &*self.files)?;
        let named = |what: &str, names: Vec<String>| {
            names.into_iter().map(move |name| format!("{what} {name}")).collect::<Vec<_>>()
        };
        let cut = [
            named("the login of", report.disabled_logins),
            named("the subscription", report.disabled_subscriptions),
            named("the replication slot", report.dropped_slots),
            named("the jobs scheduled in database", report.unscheduled),
        ];
        Ok(TiesCut { cut: cut.concat(), warnings: report.warnings })
    }

    fn grant(&self, grant: &Grant, deadline: Duration) -> Result<Granted, Failure> {
        let mut server = self.server.lock();
        drop(server.wait_ready(deadline)?);
        // An earlier release prepared the image.
        if !server.has_engine_role() {
            settle::take_engine_role(&server)?;
            hand_over(&server)?;
        }
        let keep =
            Keep { logins: grant.keep_source_logins, foreign_servers: grant.keep_foreign_servers };
        // Before anybody can log in.
        let ties = secrets::remove(&server, &*self.files, keep)?;
        let mut session = server.connect()?;
        if grant.superuser {
            secrets::wipe_roles(&mut session)?;
        }
        vdb_role::admit(&mut session, grant.password.reveal(), grant.superuser)?;
        let preferred = grant.preferred_database.as_deref();
        let database = vdb_role::main_database(&mut session, preferred)?;
        Ok(Granted { database, ties })
    }

    fn checkpoint(&self, deadline: Duration) -> Result<(), Failure> {
        let mut session = self.server.lock().connect()?;
        session.query("CHECKPOINT", deadline).map(drop)
    }

    fn stop(&self, mode: StopMode, deadline: Duration) -> Result<bool, Failure> {
        *self.session.lock() = None;
        let mode = match mode {
            StopMode::Fast => LaunchedStop::Fast,
            StopMode::Immediate => LaunchedStop::Immediate,
        };
        self.server.lock().stop(mode, deadline)
    }
}
