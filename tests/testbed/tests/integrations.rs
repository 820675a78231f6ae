//! Databases where they are used: the packages of `integrations/` against a real engine.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // other programs are started

use offshoot_testbed::{PATIENCE, Testbed, code_blocks, in_repository, wait_until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

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
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    let shown = figures(&metrics(&bed));
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
        // That of the system: packages of the distribution are its own.
        let tried = Command::new("/usr/bin/python3")
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "offshoot_pytest.plugin"])
            .args(["--offshoot-from", "shop"])
            .arg("--offshoot-pool")
            .arg(bed.engine.pool())
            .arg("--offshoot-program")
            .arg(binary())
            .arg(package.join("tests"))
            .env("PYTHONPATH", package.join("src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(bed.scratch.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&tried.stdout);
        assert!(tried.status.success(), "{text}\n{}", String::from_utf8_lossy(&tried.stderr));
        assert!(text.contains("9 passed"), "{text}");
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
