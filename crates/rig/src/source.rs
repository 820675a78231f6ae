//! A sample PostgreSQL source: an ordinary server in a directory of its own.

use crate::cluster::random_password;
use crate::running::run_to_success;
use crate::{Database, Initdb, Scratch, Writer, bytes_below, cluster, writer};
use anyhow::{Context, Result, bail};
use offshoot_os::process::{self, Child, Signal, Sink, Spec, User};
use offshoot_os::{Clock, SystemClock, unused_port};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest a server may take to start or stop.
const SERVER_SECONDS_MAX: u64 = 120;

/// How to make a source.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// The directory with PostgreSQL's programs.
    pub bin_dir: PathBuf,
    /// The scale of the pgbench data (about 15 MiB each); 0 for none.
    pub scale: u32,
    /// Settings over those of [`Source`], as in `postgresql.conf`.
    pub settings: Vec<(String, String)>,
}

/// A running PostgreSQL with a superuser `postgres`, a role `offshoot_link` that may replicate and
/// connect but nothing else, and tables for a [`Writer`]. The server ends with this value.
#[derive(Debug)]
pub struct Source {
    options: SourceOptions,
    directory: PathBuf,
    port: u16,
    password: String,
    link_password: String,
    user: Option<User>,
    server: Option<Child>,
}

impl Source {
    /// Makes the files below `scratch`, starts the server and loads the data.
    ///
    /// # Errors
    /// What failed, with the last lines of the server's log.
    pub fn start(scratch: &Scratch, options: SourceOptions) -> Result<Self> {
        let user = if User::own_is_root() {
            Some(User::lookup("postgres")?.context("there is no user postgres on this host")?)
        } else {
            None
        };
        let port = unused_port().context("no TCP port of this host is free")?;
        let mut source = Source {
            directory: scratch.path().join(format!("source-{port}")),
            options,
            port,
            password: cluster::password()?,
            link_password: random_password(),
            user,
            server: None,
        };
        source.make_files()?;
        source.start_server()?;
        source.load()?;
        Ok(source)
    }

    fn make_files(&self) -> Result<()> {
        std::fs::create_dir(&self.directory)?;
        self.give_to_server(&self.directory)?;
        let initdb = Initdb {
            bin_dir: &self.options.bin_dir,
            superuser: "postgres",
            password: Some(&self.password),
            more: &[],
        };
        initdb.make(self.user.as_ref(), &self.data_dir())?;
        let own = [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", self.port.to_string()),
            ("unix_socket_directories", String::new()),
            ("max_wal_senders", "8".to_owned()),
            ("checkpoint_timeout", "1min".to_owned()),
            ("max_wal_size", "512MB".to_owned()),
        ];
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
        let lines: String = own
            .chain(self.options.settings.iter().cloned())
            .map(|(key, value)| format!("{key} = '{value}'\n"))
            .collect();
        let conf = self.data_dir().join("postgresql.conf");
        let text = std::fs::read_to_string(&conf)? + &lines;
        std::fs::write(&conf, text).context("writing the source's settings")
    }

    fn load(&self) -> Result<()> {
        let db = self.connect("postgres")?;
        db.execute(&format!(
            "CREATE ROLE offshoot_link LOGIN REPLICATION PASSWORD '{}';",
            self.link_password
        ))?;
        db.execute(writer::SCHEMA)?;
        if self.options.scale > 0 {
            let spec = self
                .pgbench(&["--initialize", "--quiet"])
                .arg(format!("--scale={}", self.options.scale));
            run_to_success(&spec, 60 + 10 * u64::from(self.options.scale))?;
        }
        Ok(())
    }

    /// Starts the server, waits until it answers.
    ///
    /// # Errors
    /// If it did not, with the last lines of its log.
    pub fn start_server(&mut self) -> Result<()> {
        anyhow::ensure!(self.server.is_none(), "the source runs already");
        let spec = self
            .program("postgres")
            .arg("-D")
            .arg(self.data_dir())
            .stderr(Sink::File(self.log()))
            .die_with_parent(true);
        self.server = Some(spec.spawn()?);
        let clock = SystemClock;
        let deadline = clock.elapsed() + Duration::from_secs(SERVER_SECONDS_MAX);
        loop {
            let error = match self.connect("postgres") {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let ended = self.server.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || clock.elapsed() > deadline {
                self.kill_server();
                let log = process::last_lines(&self.log(), 5).join("\n");
                return Err(error.context(format!("the source does not start; its log:\n{log}")));
            }
            clock.sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server cleanly ("fast").
    ///
    /// # Errors
    /// When it does not stop in time; it is killed then.
    pub fn stop_server(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        server.signal(Signal::Interrupt)?;
        if server.wait_timeout(Duration::from_secs(SERVER_SECONDS_MAX))?.is_none() {
            server.kill_group();
            bail!("the source did not stop within {SERVER_SECONDS_MAX} s");
        }
        Ok(())
    }

    /// Kills the server and its children.
    pub fn kill_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill_group();
        }
    }

    /// Connects as the superuser.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn connect(&self, database: &str) -> Result<Database> {
        Database::connect(&self.superuser_uri(database))
    }

    /// Starts steady writes, one transaction every `every`.
    pub fn start_writes(&self, every: Duration) -> Writer {
        Writer::start(self.superuser_uri("postgres"), every)
    }

    /// A pgbench command against this source, ready to run or spawn, with further arguments.
    pub fn pgbench(&self, arguments: &[&str]) -> Spec {
        self.program("pgbench")
            .args(arguments)
            .args(["--host=127.0.0.1", "--username=postgres"])
            .arg(format!("--port={}", self.port))
            .env("PGPASSWORD", &self.password)
            .env("PGDATABASE", "postgres")
    }

    /// A pgbench command against another database that holds the same data, by its URI.
    pub fn pgbench_on(&self, uri: &str, arguments: &[&str]) -> Spec {
        self.program("pgbench").args(arguments).arg(uri)
    }

    /// A program of PostgreSQL as the user that the server runs as.
    pub fn program(&self, name: &str) -> Spec {
        Spec::new(self.options.bin_dir.join(name))
            .user(self.user.clone())
            .cwd(&self.directory)
            .env("LC_ALL", "C")
    }

    /// The superuser's URI, password included.
    pub fn superuser_uri(&self, database: &str) -> String {
        format!("postgresql://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The URI to link, without a password.
    pub fn link_uri(&self) -> String {
        format!("postgresql://offshoot_link@127.0.0.1:{}/postgres", self.port)
    }

    /// The password of the role that links.
    pub fn link_password(&self) -> &str {
        &self.link_password
    }

    /// The superuser's password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory with PostgreSQL's programs.
    pub fn bin_dir(&self) -> &Path {
        &self.options.bin_dir
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// What its data directory takes on disk without the log of changes, in bytes.
    pub fn data_bytes(&self) -> u64 {
        bytes_below(&self.data_dir()).saturating_sub(bytes_below(&self.data_dir().join("pg_wal")))
    }

    /// Makes a directory beside the data that the server may use, as for a tablespace.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        std::fs::create_dir(&path)?;
        self.give_to_server(&path)?;
        Ok(path)
    }

    fn give_to_server(&self, path: &Path) -> Result<()> {
        if let Some(user) = &self.user {
            chown(path, Some(user.uid), Some(user.gid))?;
        }
        let mode = if path.is_dir() { 0o755 } else { 0o600 };
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?;
        Ok(())
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.kill_server();
    }
}
