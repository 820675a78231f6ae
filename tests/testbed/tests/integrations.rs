//! Databases where they are used: the packages of `integrations/` against a real engine.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // other programs are started

use offshoot_testbed::{PATIENCE, Testbed, Two, code_blocks, in_repository, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn integration(path: &str) -> PathBuf {
    in_repository("integrations").join(path)
}

/// What the engine tells those who watch it, asked for as the owner of its socket.
fn metrics(bed: &Testbed) -> String {
    let mut stream = UnixStream::connect(bed.engine.pool().join("engine.socket")).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// The names of our figures in a text.
fn figures(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    words.filter(|word| word.starts_with("offshoot_")).map(str::to_owned).collect()
}

/// Alerts and dashboard ask for figures that an engine has.
#[test]
fn the_figures_that_are_looked_at_are_there() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.here.provision("dev", "shop", &[]).unwrap();
    two.know().unwrap();
    two.create("nightly", &["--include", "all"]).unwrap();
    let shown = figures(&metrics(&two.here));
    assert!(shown.len() > 20, "{shown:?}");
    for file in ["prometheus/offshoot.rules.yml", "grafana/offshoot.json"] {
        let text = std::fs::read_to_string(integration(file)).unwrap();
        let asked = figures(&text);
        assert!(asked.len() > 4, "{file}: {asked:?}");
        let missing: Vec<_> = asked.difference(&shown).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}");
    }
}

mod needs_promtool {
    use super::*;

    #[test]
    #[ignore = "needs promtool; scripts/test.sh runs it"]
    fn alerts_fire_when_they_should() {
        let program = std::env::var("OFFSHOOT_TEST_PROMTOOL").unwrap();
        for what in
            [["check", "rules", "offshoot.rules.yml"], ["test", "rules", "offshoot.rules.test.yml"]]
        {
            let run =
                Command::new(&program).args(what).current_dir(integration("prometheus")).output();
            let run = run.unwrap();
            assert!(run.status.success(), "{what:?}: {run:?}");
        }
    }

    /// A server of Prometheus. Dropping it ends it.
    struct Prometheus {
        server: Child,
        address: SocketAddr,
    }

    impl Prometheus {
        fn start(dir: &Path, settings: &str) -> Prometheus {
            let file = dir.join("prometheus.yml");
            std::fs::write(&file, settings).unwrap();
            // Free until it takes it: it cannot say which one it chose itself.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let tool = PathBuf::from(std::env::var("OFFSHOOT_TEST_PROMTOOL").unwrap());
            let log = File::create(dir.join("prometheus.log")).unwrap();
            let server = Command::new(tool.with_file_name("prometheus"))
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()))
                .arg(format!("--web.listen-address={address}"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .unwrap();
            Prometheus { server, address }
        }

        /// What its API has at a path; null where it does not answer yet.
        fn ask(&self, path: &str) -> Value {
            let Ok(mut stream) = TcpStream::connect(self.address) else { return Value::Null };
            let request = format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            serde_json::from_str::<Value>(body).map_or(Value::Null, |answer| answer["data"].clone())
        }

        /// The figures that a question gives; they stand behind their times.
        fn values(&self, query: &str) -> Vec<f64> {
            let result = self.ask(&format!("query?query={query}"))["result"].take();
            let all = result.as_array().into_iter().flatten();
            all.map(|one| one["value"][1].as_str().unwrap().parse().unwrap()).collect()
        }
    }

    impl Drop for Prometheus {
        fn drop(&mut self) {
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
    }

    /// Set up as docs/operations.md says.
    #[test]
    #[ignore = "needs promtool, and Prometheus beside it; scripts/test.sh runs it"]
    fn prometheus_reads_an_engine_and_its_alerts() {
        let mut bed = Testbed::start().unwrap();
        bed.link("shop").unwrap();
        bed.provision("dev", "shop", &[]).unwrap();
        bed.engine.command(["user", "add", "prometheus", "--role", "auditor"]).unwrap();
        let made = bed.engine.command(["token", "create", "--user", "prometheus"]).unwrap();
        let token = bed.scratch.path().join("offshoot.token");
        std::fs::write(&token, made["token"].as_str().unwrap()).unwrap();

        let address = std::fs::read_to_string(bed.engine.pool().join("engine.address")).unwrap();
        let documented = &code_blocks("docs/operations.md", "Monitoring", "yaml")[0];
        let here = documented
            .replace("/etc/prometheus/offshoot.token", token.to_str().unwrap())
            .replace("127.0.0.1:7640", address.trim());
        assert!(here.contains(address.trim()) && !here.contains("/etc/"), "{here}");
        let rules = integration("prometheus/offshoot.rules.yml");
        let settings = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\n\
             rule_files: ['{}']\n{here}",
            rules.display()
        );
        let prometheus = Prometheus::start(bed.scratch.path(), &settings);

        let is_up = || Ok(prometheus.values("up{job=\"offshoot\"}") == [1.0]);
        wait_until("the engine is read", PATIENCE, is_up).unwrap();
        for (query, expected) in [
            ("offshoot_vdbs_running", 1.0),
            ("offshoot_vdb_running{vdb=\"dev\",parent=\"shop\"}", 1.0),
            ("offshoot_dsource_following{dsource=\"shop\"}", 1.0),
            ("offshoot_commit_seconds_bucket{le=\"%2BInf\"}>bool+0", 1.0),
            ("offshoot_cache_hits_total>bool+0", 1.0),
            ("histogram_quantile(0.99,offshoot_log_flush_seconds_bucket)>bool+0", 1.0),
        ] {
            assert_eq!(prometheus.values(query), [expected], "{query}");
        }
        let targets = prometheus.ask("targets");
        assert_eq!(targets["activeTargets"][0]["lastError"], "", "{targets}");

        let rule = |name: &str| {
            let groups = prometheus.ask("rules")["groups"].take();
            let all = groups.as_array().into_iter().flatten();
            let mut rules = all.flat_map(|group| group["rules"].as_array().cloned().unwrap());
            rules.find(|rule| rule["name"] == name).unwrap_or_default()
        };
        let evaluated = || {
            let groups = prometheus.ask("rules")["groups"].take();
            let all: Vec<&Value> = groups.as_array().into_iter().flatten().collect();
            let rules = all.iter().flat_map(|group| group["rules"].as_array().unwrap());
            Ok(!all.is_empty() && rules.into_iter().all(|rule| rule["health"] == "ok"))
        };
        wait_until("all alerts are looked at", PATIENCE, evaluated).unwrap();
        assert_eq!(rule("OffshootDown")["state"], "inactive");
        bed.engine.kill().unwrap();
        let alarmed = || Ok(rule("OffshootDown")["state"] == "pending");
        wait_until("it is noticed that the engine is away", PATIENCE, alarmed).unwrap();
        assert_eq!(prometheus.values("up{job=\"offshoot\"}"), [0.0]);
    }
}

mod needs_pytest {
    use super::*;
    use offshoot_testbed::binary;

    #[test]
    #[ignore = "needs pytest and psycopg2; scripts/test.sh runs it"]
    fn each_python_test_has_a_database() {
        let package = integration("python");
        let bed = Testbed::start().unwrap();
        let source = bed.source.connect("postgres").unwrap();
        source
            .execute("CREATE TABLE orders AS SELECT g AS id FROM generate_series(1, 100) g")
            .unwrap();
        bed.link("shop").unwrap();
        bed.engine.command(["policy", "set", "shop", "--warm", "2"]).unwrap();
        // All of the moment of the run, or each of its own.
        for moments in [&[][..], &["--offshoot-fresh"]] {
            // That of the system: packages of the distribution are its own.
            let tried = Command::new("/usr/bin/python3")
                .args([
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "offshoot_pytest.plugin",
                ])
                .args(["--offshoot-from", "shop"])
                .arg("--offshoot-pool")
                .arg(bed.engine.pool())
                .arg("--offshoot-program")
                .arg(binary())
                .arg(package.join("tests"))
                .args(moments)
                .env("PYTHONPATH", package.join("src"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .current_dir(bed.scratch.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&tried.stdout);
            assert!(tried.status.success(), "{text}\n{}", String::from_utf8_lossy(&tried.stderr));
            assert!(text.contains("11 passed"), "{text}");
        }
        let names = || {
            let list: offshoot_api::VdbList = bed.engine.ask(["vdb", "list"])?;
            Ok(list.vdbs.is_empty())
        };
        wait_until("all are deleted", PATIENCE, names).unwrap();
    }

    mod needs_pip {
        use super::*;

        /// The package, installed and set up as its README says.
        #[test]
        #[ignore = "needs pip, pytest and psycopg2; scripts/test.sh runs it"]
        fn the_five_minutes_of_the_readme_are_true() {
            let readme = "integrations/python/README.md";
            let bed = Testbed::start().unwrap();
            let source = bed.source.connect("postgres").unwrap();
            source.execute("CREATE TABLE orders (id int)").unwrap();
            bed.link("shop").unwrap();
            let path = |path: &str| bed.scratch.path().join(path);
            let pool = bed.engine.pool().to_str().unwrap();
            for directory in ["bin", "integrations", "tests"] {
                std::fs::create_dir(path(directory)).unwrap();
            }
            std::os::unix::fs::symlink(binary(), path("bin/offshoot")).unwrap();
            let settings = code_blocks(readme, "", "ini")[0].replace("/data/pool", pool);
            std::fs::write(path("pytest.ini"), settings).unwrap();
            let test = &code_blocks(readme, "", "python")[0];
            std::fs::write(path("tests/test_orders.py"), test).unwrap();

            let run = |commands: &str| {
                let tools = std::env::var("PATH").unwrap();
                let mut command = Command::new("timeout");
                command.args(["200", "sh", "-ec", commands]).current_dir(bed.scratch.path());
                command.env("PATH", format!("venv/bin:{}:{tools}", path("bin").display()));
                let run =
                    command.env("OFFSHOOT_POOL", pool).env("PIP_NO_COMPILE", "1").output().unwrap();
                let (out, err) = (
                    String::from_utf8(run.stdout).unwrap(),
                    String::from_utf8(run.stderr).unwrap(),
                );
                assert!(run.status.success(), "{commands}: {out}{err}");
                out
            };
            // What builds it leaves files in it; pytest and psycopg2 are the system's.
            run(&format!("cp -r '{}' integrations/", integration("python").display()));
            run("/usr/bin/python3 -m venv --system-site-packages venv");
            run(&code_blocks(readme, "", "")[0]);
            let tried = run("python -m pytest -q -p no:cacheprovider tests");
            assert!(tried.contains("1 passed"), "{tried}");
            let warm = bed.engine.command(["policy", "show", "shop"]).unwrap();
            assert!(warm.to_string().contains("\"warm\":4"), "{warm}");
        }
    }
}
