//! Throw-away servers, and gateways in front of them.

use offshoot_gateway::{Backend, Control, Hold, Options, Request, Status, Tls, Why, run};
use offshoot_os::process::{Child, Signal, Sink, Spec, User};
use offshoot_os::{Clock, SystemClock, unused_port};
use offshoot_rig::{Initdb, Scratch, wait_until};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification};

/// A long time for this machine; every wait ends by then.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Of every role.
pub const PASSWORD: &str = "a pass word";

const HBA: &str = "host all md5er 127.0.0.1/32 md5\n\
    host all trusty 127.0.0.1/32 trust\n\
    host all plain 127.0.0.1/32 password\n\
    host all all 127.0.0.1/32 scram-sha-256\n\
    host replication all 127.0.0.1/32 scram-sha-256\n";
const ROLES: &str =
    "CREATE ROLE app LOGIN PASSWORD 'a pass word'; CREATE ROLE other; GRANT other TO app;
    CREATE ROLE trusty LOGIN; CREATE ROLE plain LOGIN PASSWORD 'a pass word';
    SET password_encryption = 'md5'; CREATE ROLE md5er LOGIN PASSWORD 'a pass word';
    CREATE TABLE things (id int PRIMARY KEY, what text); GRANT ALL ON things TO PUBLIC;
    INSERT INTO things VALUES (1, 'one')";

/// Directories of programs, one of each major version.
pub fn bin_dirs() -> Vec<PathBuf> {
    let mut found: BTreeMap<u32, PathBuf> =
        offshoot_rig::find_installations().into_iter().collect();
    let more = std::env::var_os("OFFSHOOT_TEST_PG_BINS").unwrap_or_default();
    for bin in std::env::split_paths(&more) {
        if let Ok(major) = offshoot_rig::major_version(&bin) {
            found.insert(major, bin);
        }
    }
    assert!(!found.is_empty(), "no PostgreSQL to test with; set OFFSHOOT_TEST_PG_BINS");
    found.into_values().collect()
}

/// The newest of them.
pub fn newest() -> PathBuf {
    bin_dirs().pop().unwrap()
}

/// A server.
pub struct Cluster {
    pub scratch: Scratch,
    pub port: u16,
    bin: PathBuf,
    user: Option<User>,
    server: Option<Child>,
}

impl Cluster {
    /// One that runs, with a few roles and a table.
    pub async fn start(bin: &Path) -> Cluster {
        let scratch = Scratch::new("gateway").unwrap();
        let user = User::own_is_root().then(|| User::lookup("postgres").unwrap().unwrap());
        let home = scratch.path().join("home");
        std::fs::create_dir(&home).unwrap();
        if let Some(user) = &user {
            chown(&home, Some(user.uid), Some(user.gid)).unwrap();
        }
        let initdb =
            Initdb { bin_dir: bin, superuser: "boss", password: Some(PASSWORD), more: &[] };
        let data = home.join("data");
        initdb.make(user.as_ref(), &data).unwrap();
        let conf = data.join("postgresql.conf");
        let text = std::fs::read_to_string(&conf).unwrap()
            + "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\n\
               shared_buffers = 16MB\nmax_connections = 60\nwal_level = replica\n";
        std::fs::write(&conf, text).unwrap();
        std::fs::write(data.join("pg_hba.conf"), HBA).unwrap();
        let port = unused_port().unwrap();
        let mut cluster = Cluster { scratch, port, bin: bin.to_owned(), user, server: None };
        cluster.run().await;
        cluster.admin().await.batch_execute(ROLES).await.unwrap();
        cluster
    }

    /// Starts the stopped server and waits until it answers.
    pub async fn run(&mut self) {
        self.launch();
        let deadline = SystemClock.elapsed() + PATIENCE;
        while config(self.port, "boss").connect(NoTls).await.is_err() {
            assert!(SystemClock.elapsed() < deadline, "the server does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts the stopped server.
    pub fn launch(&mut self) {
        assert!(self.server.is_none());
        let home = self.scratch.path().join("home");
        let spec = Spec::new(self.bin.join("postgres"))
            .user(self.user.clone())
            .cwd(&home)
            .env("LC_ALL", "C")
            .arg("-D")
            .arg(home.join("data"))
            .args(["-p", &self.port.to_string()])
            .stderr(Sink::File(home.join("log")))
            .die_with_parent(true);
        self.server = Some(spec.spawn().unwrap());
    }

    /// Stops it ("fast"), and has it on another port next time.
    pub fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        server.signal(Signal::Interrupt).unwrap();
        let ended = server.wait_timeout(PATIENCE).unwrap();
        server.kill_group();
        assert!(ended.is_some(), "the server does not stop");
        self.port = unused_port().unwrap();
    }

    /// A connection of the superuser's, past the gateway.
    pub async fn admin(&self) -> Client {
        connect(self.port, "boss").await.client
    }

    /// The verifiers of all roles.
    pub async fn logins(&self) -> BTreeMap<String, String> {
        let query =
            "SELECT rolname::text, rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL";
        let rows = self.admin().await.query(query, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.scratch.path().join("home/log");
            let lines = offshoot_os::process::last_lines(&log, 15);
            eprintln!("the server's log ends in:\n{}", lines.join("\n"));
        }
        if let Some(server) = &mut self.server {
            let _ = server.signal(Signal::Interrupt);
            let _ = server.wait_timeout(Duration::from_secs(5));
            server.kill_group();
        }
    }
}

/// A gateway in a thread.
pub struct Gateway {
    pub port: u16,
    pub socket: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// One that holds.
    pub fn start(scratch: &Scratch) -> Gateway {
        let port = unused_port().unwrap();
        let socket = scratch.path().join("control");
        let controller = std::fs::metadata("/proc/self").unwrap().uid();
        let listen = vec![([127, 0, 0, 1], port).into()];
        let options = Options { name: "shop".into(), listen, control: socket.clone(), controller };
        let thread = std::thread::spawn(move || run(options).unwrap());
        let answers = || {
            let control = Control::connect(&socket, PATIENCE);
            Ok(control.and_then(|mut it| it.ask(&Request::Status, PATIENCE)).is_ok())
        };
        wait_until("it listens", PATIENCE, Duration::from_millis(2), answers).unwrap();
        Gateway { port, socket, thread: Some(thread) }
    }

    pub fn control(&self) -> Control {
        Control::connect(&self.socket, PATIENCE).unwrap()
    }

    pub fn ask(&self, request: &Request) -> Status {
        self.control().ask(request, PATIENCE).unwrap()
    }

    pub fn status(&self) -> Status {
        self.ask(&Request::Status)
    }

    pub fn hold(&self, grace_ms: u64, why: Why) -> Status {
        self.ask(&Request::Hold(Hold { grace_ms, why }))
    }

    pub async fn serve(&self, cluster: &Cluster) {
        self.serve_by(cluster, None).await;
    }

    pub async fn serve_by(&self, cluster: &Cluster, tls: Option<Tls>) {
        let logins = cluster.logins().await;
        self.ask(&Request::Serve(Backend { port: cluster.port, tls, allow: vec![], logins }));
    }

    /// Waits until it stands so.
    pub async fn wait_for(&self, what: &str, so: impl Fn(&Status) -> bool) {
        let deadline = SystemClock.elapsed() + PATIENCE;
        loop {
            let status = self.status();
            if so(&status) {
                return;
            }
            assert!(SystemClock.elapsed() < deadline, "waited too long for {what}: {status:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let asked = Control::connect(&self.socket, PATIENCE)
            .and_then(|mut control| control.ask(&Request::End, PATIENCE));
        // Without a word it would never end; the process ends it.
        let ended = asked.and_then(|_| {
            let thread = self.thread.take().unwrap();
            thread.join().map_err(|_| offshoot_types::Failure::internal("it panicked"))
        });
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// A server and a gateway that serves it.
pub async fn start(bin: &Path) -> (Cluster, Gateway) {
    let cluster = Cluster::start(bin).await;
    let gateway = Gateway::start(&cluster.scratch);
    gateway.serve(&cluster).await;
    (cluster, gateway)
}

pub fn config(port: u16, user: &str) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user(user).password(PASSWORD).dbname("postgres");
    config
}

/// A client, what its server tells it unasked, and what it was told last.
pub struct Connected {
    pub client: Client,
    pub heard: tokio::sync::mpsc::UnboundedReceiver<Notification>,
    last: tokio::task::JoinHandle<Option<tokio_postgres::Error>>,
}

impl Connected {
    /// Code and detail of the error that ends the connection.
    pub async fn end(self) -> (String, String) {
        let last = tokio::time::timeout(PATIENCE, self.last).await.unwrap().unwrap();
        let error = last.unwrap();
        let error = error.as_db_error().unwrap();
        (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
    }
}

pub async fn connect(port: u16, user: &str) -> Connected {
    connect_by(&config(port, user)).await
}

pub async fn connect_by(config: &Config) -> Connected {
    let (client, mut connection) = config.connect(NoTls).await.unwrap();
    let (told, heard) = tokio::sync::mpsc::unbounded_channel();
    let last = tokio::spawn(async move {
        loop {
            match poll_fn(|cx| connection.poll_message(cx)).await? {
                Ok(AsyncMessage::Notification(notification)) => {
                    let _ = told.send(notification);
                }
                Ok(_) => {}
                Err(error) => return Some(error),
            }
        }
    });
    Connected { client, heard, last }
}

pub async fn text(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.and_then(|row| row.get(0)).unwrap_or_default().to_owned()
}

/// The SQLSTATE that an error brought, or nothing for a connection that was merely closed.
pub fn code(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", |code| code.code())
}
