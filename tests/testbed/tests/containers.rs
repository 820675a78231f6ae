//! The container that is a VDB (docs/testcontainers.md): what it runs, run here without a container, against a real engine.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // another program is started

use offshoot_api::{Status, Vdb, VdbList};
use offshoot_os::process::{Child, Signal, Sink, Spec};
use offshoot_rig::{Database, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, in_repository, wait_until};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

struct World {
    bed: Testbed,
    token: String,
    port: u16,
}

impl World {
    /// With an engine that listens somewhere, and a user.
    fn start(listen: &str, user: &str) -> World {
        let mut options = EngineOptions::new(binary());
        options.cache_size = "64MiB".into();
        options.listen = listen.into();
        let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
        let bed = Testbed::with_engine(source, options).unwrap();
        bed.link("shop").unwrap();
        bed.engine.command(format!("user add tester {user}").split(' ')).unwrap();
        let made = bed.engine.command(["token", "create", "--user", "tester"]).unwrap();
        let token = made["token"].as_str().unwrap().to_owned();
        std::fs::create_dir(bed.scratch.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(binary(), bed.scratch.path().join("bin/offshoot")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        World { bed, token, port }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.bed.scratch.path().join(path)
    }

    /// What the container runs, told by variables.
    fn container(&self, variables: &[(&str, &str)]) -> Child {
        let status: Status = self.bed.engine.ask(["status"]).unwrap();
        let port = status.listen.rsplit_once(':').unwrap().1;
        let scheme = if status.tls_fingerprint.is_some() { "https" } else { "http" };
        let path = std::env::var("PATH").unwrap();
        let mut spec = Spec::new(in_repository("packaging/container/vdb/entrypoint.sh"))
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("OFFSHOOT_SERVER", format!("{scheme}://127.0.0.1:{port}"))
            .env("OFFSHOOT_TOKEN", &self.token)
            .env("OFFSHOOT_FINGERPRINT", status.tls_fingerprint.unwrap_or_default())
            .env("OFFSHOOT_FROM", "shop")
            .env("OFFSHOOT_RUN_DIR", self.path("run"))
            .env("OFFSHOOT_PORT", self.port.to_string())
            .stdout(Sink::File(self.path("said")))
            .stderr(Sink::File(self.path("complained")));
        for (name, value) in variables {
            spec = spec.env(*name, *value);
        }
        spec.spawn().unwrap()
    }

    fn said(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    fn wait_ready(&self) {
        let is_ready = || Ok(self.said("said").contains(" is ready\n"));
        wait_until("it is ready", PATIENCE, is_ready)
            .unwrap_or_else(|error| panic!("{error}: {}", self.said("complained")));
        for file in ["said", "complained"] {
            assert!(!self.said(file).contains(&self.read("password")), "{}", self.said(file));
        }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("run").join(name)).unwrap()
    }

    /// How a client connects that was told nothing but what the container shows.
    fn uri(&self, host: &str) -> String {
        let [user, password, database] = ["user", "password", "database"].map(|one| self.read(one));
        format!("postgresql://{user}:{password}@{host}:{}/{database}", self.port)
    }

    fn vdbs(&self) -> Vec<Vdb> {
        let list: VdbList = self.bed.engine.ask(["vdb", "list"]).unwrap();
        list.vdbs
    }

    fn wait_gone(&self) {
        wait_until("it is deleted", PATIENCE, || Ok(self.vdbs().is_empty())).unwrap();
    }
}

fn end(mut container: Child) {
    container.signal(Signal::Terminate).unwrap();
    let status = container.wait_timeout(Duration::from_secs(60)).unwrap();
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

mod needs_socat {
    use super::*;

    #[test]
    #[ignore = "needs socat"]
    fn a_container_is_a_vdb_until_it_ends() {
        let world = World::start("127.0.0.1:0", "--role developer --parent shop");
        let container = world.container(&[("OFFSHOOT_RENEW_SECONDS", "1")]);
        world.wait_ready();
        let database = Database::connect(&world.uri("127.0.0.1")).unwrap();
        assert_eq!(database.number("SELECT count(*) FROM pgbench_accounts").unwrap(), 100_000);
        let made = &world.vdbs()[0];
        assert_eq!(made.labels.get("made-by").map(String::as_str), Some("container"));
        let expires = made.expires_at.expect("where the container is killed, it goes by itself");
        wait_until("it stays longer", PATIENCE, || Ok(world.vdbs()[0].expires_at > Some(expires)))
            .unwrap();
        drop(database);
        end(container);
        world.wait_gone();

        // One that is told to end before it is ready leaves nothing.
        let container = world.container(&[("OFFSHOOT_NAME", "short")]);
        wait_until("it is provisioned", PATIENCE, || Ok(!world.vdbs().is_empty())).unwrap();
        end(container);
        world.wait_gone();

        // It deletes nothing but what it made.
        world.bed.provision("kept", "shop", &[]).unwrap();
        let mut container = world.container(&[("OFFSHOOT_NAME", "kept")]);
        let status = container.wait_timeout(PATIENCE).unwrap();
        assert!(status.is_some_and(|status| !status.success()), "{status:?}");
        assert_eq!(world.vdbs()[0].name.to_string(), "kept");
    }

    mod needs_root {
        use super::*;

        #[test]
        #[ignore = "needs socat and root"]
        fn a_container_of_another_network_is_a_vdb_by_tls() {
            offshoot_testbed::enter_own_network(&["10.99.0.1/24", "10.98.0.1/24"]).unwrap();
            let world = World::start("0.0.0.0:0", "--role operator");
            let networks = [("OFFSHOOT_LISTEN", "10.99.0.1"), ("OFFSHOOT_ALLOW", "10.99.0.0/24")];
            let container = world.container(&networks);
            world.wait_ready();
            let psql = |tls: &str| {
                let uri = format!("{}?sslmode={tls}", world.uri("10.98.0.1"));
                let query = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
                let spec = Spec::new(find_newest().unwrap().join("psql")).args(["-qXAtc", query]);
                let output = offshoot_os::process::run(&spec.arg(uri), PATIENCE).unwrap();
                output.stdout_text().trim().to_owned()
            };
            assert_eq!(psql("prefer"), "TLSv1.3");
            assert_eq!(psql("disable"), "");
            end(container);
            world.wait_gone();
        }
    }
}
