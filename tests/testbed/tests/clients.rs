//! The programs of docs/clients.md against a real engine: copied from the document, and run by its commands.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // other programs are started

use offshoot_testbed::text_of;
use sha2::{Digest, Sha256};

/// `scripts/clients.sh` notes what it read and what it wrote.
#[test]
fn the_go_client_is_what_the_generator_makes_of_the_document() {
    let noted = text_of("integrations/go/client.sha256");
    assert_eq!(noted.lines().count(), 3, "{noted}");
    for line in noted.lines() {
        let (sum, file) = line.split_once("  ").unwrap();
        let text = text_of(&format!("integrations/go/{file}"));
        let actual: String =
            Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum, actual, "{file} is another one: run scripts/clients.sh");
    }
}

/// An engine that answers by TLS, a checkout of the repository, and somebody's own directory beside it.
mod world {
    use offshoot_api::{Status, VdbList};
    use offshoot_rig::{EngineOptions, SourceOptions, find_newest};
    use offshoot_testbed::{Testbed, binary, code_blocks, in_repository};
    use std::path::PathBuf;
    use std::process::Command;

    pub const DOCUMENT: &str = "docs/clients.md";

    pub struct World {
        bed: Testbed,
        variables: Vec<(String, String)>,
    }

    impl World {
        pub fn start() -> World {
            let mut options = EngineOptions::new(binary());
            options.cache_size = "64MiB".into();
            options.arguments = ["--listen", "0.0.0.0:0"].map(String::from).into();
            let source =
                SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
            let bed = Testbed::with_engine(source, options).unwrap();
            let orders = "CREATE TABLE orders AS SELECT g AS id FROM generate_series(1, 100) g";
            bed.source.connect("postgres").unwrap().execute(orders).unwrap();
            bed.link("shop").unwrap();
            let mut world = World { bed, variables: Vec::new() };
            std::fs::create_dir(world.path("own")).unwrap();
            std::fs::create_dir(world.path("bin")).unwrap();
            std::os::unix::fs::symlink(binary(), world.path("bin/offshoot")).unwrap();
            // What builds these leaves files in them.
            for part in ["openapi", "integrations"] {
                let to = world.path("offshoot");
                std::fs::create_dir_all(&to).unwrap();
                let copied = Command::new("cp").arg("-r").arg(in_repository(part)).arg(to).status();
                assert!(copied.unwrap().success());
            }

            let pool = world.bed.engine.pool().display().to_string();
            world.variables = vec![("OFFSHOOT_POOL".into(), pool)];
            let token = world.shell(&code_blocks(DOCUMENT, "Five minutes", "")[0]).unwrap();
            world.know(token.lines().last().unwrap());
            world
        }

        /// Sets what the document tells to export.
        fn know(&mut self, token: &str) {
            let status: Status = self.bed.engine.ask(["status"]).unwrap();
            let port = status.listen.rsplit_once(':').unwrap().1;
            let (scheme, fingerprint) = match status.tls_fingerprint {
                Some(fingerprint) => ("https", fingerprint),
                None => ("http", String::new()),
            };
            let exports = &code_blocks(DOCUMENT, "Five minutes", "")[1];
            let values = [format!("{scheme}://127.0.0.1:{port}"), fingerprint, token.to_owned()];
            let names = exports.lines().map(|line| line.strip_prefix("export ").unwrap());
            let names = names.map(|line| line.split_once('=').unwrap().0.to_owned());
            self.variables = names.zip(values).collect();
            assert_eq!(self.variables.len(), 3, "{exports}");
        }

        pub fn path(&self, path: &str) -> PathBuf {
            self.bed.scratch.path().join(path)
        }

        /// Runs commands in the own directory; what they print, or say that is wrong.
        pub fn shell(&self, commands: &str) -> Result<String, String> {
            let path = std::env::var("PATH").unwrap();
            let run = Command::new("timeout")
                .args(["300", "sh", "-e", "-c", commands])
                .env("PATH", format!("{}:{path}", self.path("bin").display()))
                .envs([("PYTHONDONTWRITEBYTECODE", "1"), ("PIP_NO_COMPILE", "1")])
                .env_remove("OFFSHOOT_BIN")
                .envs(self.variables.iter().cloned())
                .current_dir(self.path("own"))
                .output()
                .unwrap();
            let said = String::from_utf8(run.stderr).unwrap();
            if run.status.success() {
                Ok(String::from_utf8(run.stdout).unwrap())
            } else {
                Err(said)
            }
        }

        /// Runs the document's program: by TLS, with another certificate in mind, and on loopback.
        pub fn runs(mut self, program: &str) {
            assert_eq!(self.shell(program).unwrap(), "100\nalready_exists\n");
            self.is_empty();

            let known = self.variables.clone();
            self.variables[1].1 = format!("sha256:{}", "0".repeat(64));
            let refused = self.shell(program).unwrap_err();
            assert!(refused.contains("is not what the engine is known by"), "{refused}");
            self.variables[0].1 = known[0].1.replace("https://127.0.0.1", "http://192.0.2.1");
            let refused = self.shell(program).unwrap_err();
            assert!(refused.contains("or by http on loopback"), "{refused}");
            self.variables = known;
            self.variables[2].1.push('x');
            let refused = self.shell(program).unwrap_err();
            assert!(refused.contains("token"), "{refused}");
            self.variables[2].1.pop();

            self.bed.engine.stop().unwrap();
            self.bed.engine.options.arguments.clear();
            self.bed.engine.restart().unwrap();
            let token = self.variables[2].1.clone();
            self.know(&token);
            assert!(self.variables[0].1.starts_with("http://"));
            assert_eq!(self.shell(program).unwrap(), "100\nalready_exists\n");
            self.is_empty();
        }

        fn is_empty(&self) {
            let list: VdbList = self.bed.engine.ask(["vdb", "list"]).unwrap();
            assert!(list.vdbs.is_empty(), "{:?}", list.vdbs);
        }
    }
}

mod needs_go {
    use super::world::{DOCUMENT, World};
    use offshoot_testbed::code_blocks;

    #[test]
    #[ignore = "needs Go and its modules; scripts/test.sh runs it"]
    fn a_go_program_provisions_uses_and_deletes() {
        let world = World::start();
        let program = &code_blocks(DOCUMENT, "Go", "go")[0];
        std::fs::write(world.path("own/main.go"), program).unwrap();
        let commands = &code_blocks(DOCUMENT, "Go", "")[0];
        let (prepare, run) = commands.trim_end().rsplit_once('\n').unwrap();
        world.shell(prepare).unwrap();
        assert_eq!(run, "go run .");
        // The same in two steps: it is built once.
        world.shell("go vet . && go build -o program .").unwrap();
        world.shell("cd ../offshoot/integrations/go && go vet . && go test .").unwrap();
        world.runs("./program");
    }

    mod whole {
        use offshoot_testbed::in_repository;
        use std::process::Command;

        #[test]
        #[ignore = "needs Go and the generator; scripts/test.sh --full runs it"]
        fn the_generator_makes_the_same_again() {
            let directory = tempfile::tempdir().unwrap();
            let script = in_repository("scripts/clients.sh");
            let run = Command::new("timeout").arg("500").arg(script).arg(directory.path()).output();
            let run = run.unwrap();
            assert!(run.status.success(), "{run:?}");
            for file in ["client.gen.go", "client.sha256"] {
                let made = std::fs::read(directory.path().join(file)).unwrap();
                let kept = std::fs::read(in_repository("integrations/go").join(file)).unwrap();
                assert!(made == kept, "{file} is another one: run scripts/clients.sh");
            }
        }
    }
}

mod needs_pip {
    use super::world::{DOCUMENT, World};
    use offshoot_testbed::code_blocks;

    #[test]
    #[ignore = "needs Python 3.11 with pip and its packages; scripts/test.sh runs it"]
    fn a_python_program_provisions_uses_and_deletes() {
        let world = World::start();
        world.shell(&code_blocks(DOCUMENT, "Python", "")[0]).unwrap();
        let failure = "venv/bin/python ../offshoot/integrations/python-client/tests/failure.py";
        assert_eq!(world.shell(failure).unwrap(), "invalid_input\n");
        let program = &code_blocks(DOCUMENT, "Python", "python")[0];
        std::fs::write(world.path("own/provision.py"), program).unwrap();
        world.runs("venv/bin/python provision.py");
    }
}
