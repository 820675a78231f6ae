//! The [`Connector`] of PostgreSQL: what the engine asks for, in terms of the other modules of this
//! crate.

mod differing;
mod gateway;
mod host;
mod image;
mod inquiry;
mod keepsakes;
mod log;
mod masking;
mod point;
mod script;
mod server;
mod source;
mod state;
mod stream;
mod wal_target;

pub use self::host::Postgres;
use self::log::WalLog;
use self::server::RunningServer;
use self::source::PostgresSource;
use self::state::archive;
use crate::config::{self, VdbOptions as ConfiguredVdb};
use crate::control::{self, Control};
use crate::lsn::Lsn;
use crate::recovery::{self, Target, Timeline};
use crate::rounds::{self, Point};
use crate::server::{ServerSpec as LaunchSpec, adopt, start_vacated, stop_leftover, vacate};
use crate::settle::VDB_ROLE;
use crate::source::{Password, Source as SourceLogin, SourceAddress};
use crate::{access, base_backup, standby, superuser, tls, vdb_role};
use offshoot_connector::{
    Connector, DataDir, Differ, Gateways, ImageChecker, Inquirer, Keepsakes, Layout, Masker,
    PointMaker, ReceivedLog, Replay, Replayed, Role, ScriptRunner, Server, ServerSpec, Source,
    SourceUri, StopMode,
};
use offshoot_domain::{ConnectorState, Secret};
use offshoot_os::process::User;
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to stop after it did something wrong.
const STOP_DEADLINE: Duration = Duration::from_secs(20);
/// Its own directory, that of its control file, its log, what it knows of transactions, and what it writes
/// at each checkpoint.
const VITAL: [&str; 13] = [
    "",
    "global",
    "pg_logical",
    "pg_notify",
    "pg_replslot",
    "pg_stat",
    "pg_twophase",
    "pg_wal",
    "pg_xact",
    "pg_subtrans",
    "pg_commit_ts",
    "pg_multixact/members",
    "pg_multixact/offsets",
];

/// The least memory of a VDB: its processes and the smallest buffers take about 30 MiB.
const MEMORY_MIN: u64 = 64 << 20;

fn read_control(spec: &LaunchSpec) -> Result<Control, Failure> {
    control::read(&spec.bin_dir, &spec.data_dir, spec.launcher.user_of(&spec.data_dir)?.as_ref())
}

/// Whether a clone is that of a recovery point, or else of an image as taken.
///
/// # Errors
/// `WrongState` for one that was opened.
fn as_taken(files: &dyn DataDir, control: &Control, name: &str) -> Result<Option<Point>, Failure> {
    let point = Point::read(files, control.wal_segment_bytes)?;
    let opened = control.was_opened() && base_backup::recovery_start(files)?.is_none();
    if opened && point.is_none() {
        let message = format!("the clone of {name} was opened before");
        return Err(Failure::new(ErrorKind::WrongState, message, "clone the image anew"));
    }
    Ok(point)
}

/// The log that must at least be replayed into an image as taken, or a point: from where replay begins up to where the
/// pages of its files may be from.
fn replayed_span(point: Option<&Point>, control: &Control) -> (Lsn, Lsn) {
    let Some(end) = point.map(Point::end) else {
        return (control.redo_lsn, control.min_recovery_lsn);
    };
    // A standby may have gone on from it.
    (end.replay_from(), end.position().max(control.min_recovery_lsn))
}

impl Connector for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn layout(&self) -> Layout {
        Layout { data: "data", log: "wal", index: "index", vital: &VITAL }
    }

    fn server_user(&self) -> Option<&User> {
        self.launcher.user()
    }

    fn login(&self) -> &'static str {
        VDB_ROLE
    }

    fn check_programs(&self, version: &str) -> Result<(), Failure> {
        self.tools(version).map(drop)
    }

    fn parse_source(&self, uri: &str, secret: Option<Secret>) -> Result<SourceUri, Failure> {
        let given = secret.map(|secret| Password::new(secret.reveal()));
        let source = SourceLogin::parse(uri, given)?;
        let secret = source.password.map(|password| Secret::new(password.expose()));
        Ok(SourceUri { uri: source.address.to_string(), secret })
    }

    fn local_ways(&self, uri: &str) -> Result<Vec<String>, Failure> {
        Ok(SourceAddress::parse(uri)?.0.local_ways())
    }

    fn source(&self, uri: &SourceUri) -> Result<Box<dyn Source>, Failure> {
        let password = uri.secret.as_ref().map(|secret| Password::new(secret.reveal()));
        let source = SourceLogin::parse(&uri.uri, password)?;
        Ok(Box::new(PostgresSource::new(self.clone(), source)))
    }

    fn open_log(
        &self,
        state: &ConnectorState,
        log: Arc<dyn DataDir>,
        index: Arc<dyn DataDir>,
    ) -> Result<Arc<dyn ReceivedLog>, Failure> {
        Ok(Arc::new(WalLog::open(archive(state, log)?, index)?))
    }

    fn write_position(&self, _: &ConnectorState, position: LogPosition) -> String {
        Lsn::from(position).to_string()
    }

    fn read_position(&self, _: &ConnectorState, text: &str) -> Result<LogPosition, Failure> {
        text.parse::<Lsn>().map(LogPosition::from).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                error.to_string(),
                "give a position of the source's log, e.g. what pg_current_wal_lsn() says there",
            )
        })
    }

    fn memory_min(&self) -> u64 {
        MEMORY_MIN
    }

    fn validate_settings(
        &self,
        version: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let tools = self.tools(version)?;
        config::validate(&tools.installation.bin_dir, tools.user.as_ref(), settings)
    }

    fn check_network(&self, version: &str) -> Result<(), Failure> {
        let tools = self.tools(version)?;
        config::check_tls(&tools.installation.bin_dir, tools.user.as_ref())
    }

    fn replay_begins(&self, spec: &ServerSpec) -> Result<LogPosition, Failure> {
        // The control file of a point names the end of a log that is thrown away.
        if let Some(point) = Point::read_stopped(&*spec.files)? {
            return Ok(point.end().replay_from().into());
        }
        // The control file of a copy that was never started may give a later position than its label.
        let labelled = base_backup::recovery_start(&*spec.files)?;
        Ok(match labelled {
            Some(start) => start,
            None => self.control(spec)?.redo_lsn,
        }
        .into())
    }

    fn start(&self, spec: ServerSpec, role: Role) -> Result<Arc<dyn Server>, Failure> {
        let files = spec.files.clone();
        let mut launch = self.launch(spec)?;
        vacate(&launch)?;
        config::check_files(&*files)?;
        let control = read_control(&launch)?;
        match role {
            Role::Staging { buffers } => {
                launch.superusers = superuser::candidates(&*files);
                standby::prepare(&*files, &control, buffers)?;
            }
            // A clone of a running VDB contains that server's pid file and its settings.
            Role::Private => config::write_private(&*files, &control)?,
            Role::Vdb(options) => {
                let configured = ConfiguredVdb {
                    settings: options.settings,
                    memory_bytes: options.memory_bytes,
                };
                launch.memory_bytes = configured.memory_bytes;
                config::write_vdb(&*files, &control, &configured)?;
                launch.processes_max = config::processes_of(&*files);
                let exposure = options.network.as_ref().map(|network| &network.exposure);
                access::write_vdb(&*files, options.keep_source_logins, exposure)?;
                tls::write(&*files, options.network.as_ref())?;
                launch.reaches = options.reaches;
                launch.exposure = options.network.map(|network| network.exposure);
            }
        }
        Ok(Arc::new(RunningServer::new(start_vacated(launch)?, files)))
    }

    fn replay(&self, spec: ServerSpec, replay: Replay<'_>) -> Result<Replayed, Failure> {
        let (files, name) = (spec.files.clone(), spec.name.clone());
        let mut launch = self.launch(spec)?;
        vacate(&launch)?;
        config::check_files(&*files)?;
        let mut control = read_control(&launch)?;
        let point = as_taken(&*files, &control, &name)?;
        let (from, least) = replayed_span(point.as_ref(), &control);
        let to = replay.to.max(least.into());
        replay.log.place(replay.target, from.into(), to)?;
        if let Some(point) = &point {
            rounds::resume(&*files, control.wal_segment_bytes, point)?;
            control = read_control(&launch)?;
        }
        launch.superusers = superuser::candidates(&*files);
        let recovered = recovery::run(
            &*files,
            launch,
            &control,
            Target::EndOfWal,
            Timeline::Latest,
            replay.deadline,
            &mut |position| (replay.tick)(position.map(LogPosition::from)),
        )?;
        let (end, took) = (recovered.end_lsn, recovered.took);
        let server = RunningServer::new(recovered.server, files);
        // A record that begins before `to` and whose rest is zeros is whole although it was cut. It may be
        // replayed, unless it is a commit.
        let last = |at: LogPosition| replay.log.last_at(at);
        let same = || matches!((last(end.into()), last(to)), (Ok(a), Ok(b)) if a == b);
        if LogPosition::from(end) > to && !same() {
            let _ = server.stop(StopMode::Immediate, STOP_DEADLINE);
            let to = Lsn::from(to);
            return Err(Failure::internal(format!("recovery went to {end}, past {to}")));
        }
        Ok(Replayed { server: Arc::new(server), end: LogPosition::from(end).min(to), took })
    }

    fn finish_image(&self, files: &dyn DataDir) -> Result<(), Failure> {
        recovery::finish(files)
    }

    fn adopt(&self, spec: ServerSpec) -> Result<Option<Arc<dyn Server>>, Failure> {
        let files = spec.files.clone();
        let found = adopt(self.launch(spec)?)?;
        Ok(found.map(|found| Arc::new(RunningServer::new(found, files)) as Arc<dyn Server>))
    }

    fn stop_leftover(&self, runtime_dir: &Path, deadline: Duration) -> Result<(), Failure> {
        crate::gateway::end(&*self.launcher, runtime_dir, deadline)?;
        crate::program::end(&*self.launcher, runtime_dir, deadline)?;
        stop_leftover(&*self.launcher, runtime_dir, deadline).map(drop)
    }

    fn new_password(&self) -> String {
        vdb_role::new_password()
    }

    fn vdb_uri(&self, port: u16, password: &Secret, database: &str) -> String {
        vdb_role::uri(port, password.reveal(), database)
    }

    fn database_of(&self, source: &str) -> Option<String> {
        SourceLogin::parse(source, None).ok().map(|source| source.address.database)
    }

    fn image_checker(&self) -> Option<&dyn ImageChecker> {
        Some(self)
    }

    fn point_maker(&self) -> Option<&dyn PointMaker> {
        Some(self)
    }

    fn masker(&self) -> Option<&dyn Masker> {
        Some(self)
    }

    fn differ(&self) -> Option<&dyn Differ> {
        Some(self)
    }

    fn inquirer(&self) -> Option<&dyn Inquirer> {
        Some(self)
    }

    fn keepsakes(&self) -> Option<&dyn Keepsakes> {
        Some(self)
    }

    fn script_runner(&self) -> Option<&dyn ScriptRunner> {
        Some(self)
    }

    fn gateways(&self) -> Option<&dyn Gateways> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
