//! What docs/ci.md tells GitHub and GitLab to run for a pull request, and the action, run as they would: by a shell, step by
//! step, against a real engine that answers by TLS. Nothing is put in but what these systems put in, and the engine's address.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // other programs are started

use offshoot_api::{Status, Vdb, VdbList};
use offshoot_rig::{Database, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, binary, code_blocks, text_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const DOCUMENT: &str = "docs/ci.md";
/// The address in the document.
const EXAMPLE: &str = "https://engine.example:7640";
/// What is tested: it sees its database by what programs that know libpq read, and the one of the last run again.
const MAKEFILE: &str = "migrate:\n\tpsql -qXv ON_ERROR_STOP=1 -c 'CREATE TABLE IF NOT EXISTS runs (n int)' -c 'INSERT INTO runs VALUES (1)'\n\
                        test:\n\tpsql -qXv ON_ERROR_STOP=1 -c 'SELECT count(*) FROM pgbench_accounts'\n";

/// The name that the action gives the VDB of number 17 of Acme/Web.Shop.
const ACTIONS: &str = "pr-17-acme-web-shop";

type Variables = BTreeMap<String, String>;

/// An engine, and a runner of the same host with a home, a work tree and the programs it needs.
struct Runner {
    bed: Testbed,
    /// What the system puts into expressions and variables.
    given: Variables,
}

impl Runner {
    fn start() -> Runner {
        let mut options = EngineOptions::new(binary());
        options.cache_size = "64MiB".into();
        options.arguments = ["--listen", "0.0.0.0:0"].map(String::from).into();
        let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
        let bed = Testbed::with_engine(source, options).unwrap();
        bed.link("shop-masked").unwrap();
        let mut runner = Runner { bed, given: Variables::new() };
        for directory in ["bin", "home", "work", "temp"] {
            std::fs::create_dir(runner.path(directory)).unwrap();
        }
        std::os::unix::fs::symlink(binary(), runner.path("bin/offshoot")).unwrap();
        std::fs::write(runner.path("work/Makefile"), MAKEFILE).unwrap();

        // Whoever runs the engine does what the document begins with.
        let pool = runner.bed.engine.pool().display().to_string();
        let commands = &code_blocks(DOCUMENT, "", "")[0];
        let token = runner.shell(commands, &[("OFFSHOOT_POOL".to_owned(), pool)].into());
        let token = token.lines().last().unwrap().to_owned();
        let status: Status = runner.bed.engine.ask(["status"]).unwrap();
        let port = status.listen.rsplit_once(':').unwrap().1;
        let given = [
            ("server", format!("https://127.0.0.1:{port}")),
            ("secrets.OFFSHOOT_TOKEN", token),
            ("vars.OFFSHOOT_FINGERPRINT", status.tls_fingerprint.unwrap()),
            ("github.event.number", "17".to_owned()),
            ("github.repository", "Acme/Web.Shop".to_owned()),
        ];
        runner.given = given.map(|(name, value)| (name.to_owned(), value)).into();
        runner
    }

    fn path(&self, path: &str) -> PathBuf {
        self.bed.scratch.path().join(path)
    }

    /// Runs commands as a step, which succeeds; what they print.
    fn shell(&self, commands: &str, variables: &Variables) -> String {
        self.run(commands, variables)
            .unwrap_or_else(|said| panic!("{commands}\nwith {variables:?}:\n{said}"))
    }

    /// What a step prints, or what one printed that failed.
    fn run(&self, commands: &str, variables: &Variables) -> Result<String, String> {
        let tools = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let run = Command::new("timeout")
            .args(["120", "bash", "-e", "-o", "pipefail", "-c", commands])
            .env_clear()
            .env("PATH", tools)
            .env("HOME", self.path("home"))
            .env("RUNNER_TEMP", self.path("temp"))
            .env("GITHUB_ENV", self.path("temp/environment"))
            .env("GITHUB_OUTPUT", self.path("temp/output"))
            .envs(variables)
            .current_dir(self.path("work"))
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        // But for the line that hides it, no log has the password of a database.
        for line in out.lines().chain(err.lines()).filter(|line| !line.starts_with("::add-mask::"))
        {
            assert!(!line.contains("postgresql://"), "{commands} printed {line}");
        }
        if run.status.success() { Ok(out.into_owned()) } else { Err(format!("{out}{err}")) }
    }

    /// A text with the expressions in it replaced, as `${{ github.event.number }}`.
    fn expand(&self, text: &str) -> String {
        let mut text = text.replace(EXAMPLE, &self.given["server"]);
        while let Some((before, rest)) = text.split_once("${{") {
            let (expression, after) = rest.split_once("}}").unwrap();
            text = format!("{before}{}{after}", self.evaluate(expression.trim()));
        }
        text
    }

    fn evaluate(&self, expression: &str) -> String {
        for (sign, same) in [(" == ", true), (" != ", false)] {
            if let Some((left, right)) = expression.split_once(sign) {
                let right = right.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
                return ((self.evaluate(left) == right) == same).to_string();
            }
        }
        let value = self.given.get(expression);
        value.unwrap_or_else(|| panic!("{expression} is not known")).clone()
    }

    fn variables(&self, of: &Value) -> Variables {
        let all = of["env"].as_object().into_iter().flatten();
        all.map(|(name, value)| (name.clone(), self.expand(value.as_str().unwrap()))).collect()
    }

    /// Runs steps as GitHub does, until one fails: those of a job, or of an action that a job uses.
    fn steps(&mut self, steps: &Value, variables: &Variables) -> Result<(), String> {
        for step in steps.as_array().unwrap() {
            let when = step["if"].as_str().unwrap_or("github.event.number == '17'");
            if self.evaluate(when) != "true" {
                continue;
            }
            if let Some(commands) = step["run"].as_str() {
                let mut variables = variables.clone();
                let set = std::fs::read_to_string(self.path("temp/environment"));
                let set = set.unwrap_or_default();
                let pairs = set.lines().map(|line| line.split_once('=').unwrap());
                variables.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
                variables.extend(self.variables(step));
                let _ = std::fs::remove_file(self.path("temp/output"));
                self.run(&self.expand(commands), &variables)?;
                let set = std::fs::read_to_string(self.path("temp/output")).unwrap_or_default();
                for (name, value) in set.lines().map(|line| line.split_once('=').unwrap()) {
                    let name = format!("steps.{}.outputs.{name}", step["id"].as_str().unwrap());
                    self.given.insert(name, value.to_owned());
                }
            } else if step["uses"] == "./.github/actions/offshoot" {
                self.action(&step["with"])?;
            } else {
                assert_eq!(step["uses"], "actions/checkout@v4");
            }
        }
        Ok(())
    }

    fn action(&mut self, with: &Value) -> Result<(), String> {
        let action = yaml(&text_of("integrations/github/action.yml"));
        let known = action["inputs"].as_object().unwrap();
        for name in with.as_object().unwrap().keys() {
            assert!(known.contains_key(name), "the action has no input {name}");
        }
        for (name, input) in known {
            let value = with[name].as_str().or(input["default"].as_str());
            let value = self.expand(value.unwrap_or_else(|| panic!("{name} is not given")));
            self.given.insert(format!("inputs.{name}"), value);
        }
        let steps = &action["runs"]["steps"];
        assert!(steps.as_array().unwrap().iter().all(|step| step["shell"] == "bash"));
        self.steps(steps, &Variables::new())?;
        assert_eq!(self.expand(action["outputs"]["name"]["value"].as_str().unwrap()), ACTIONS);
        Ok(())
    }

    /// What GitHub runs of the workflow below a heading when something happens to pull request 17.
    fn github(&mut self, heading: &str, event: &str) -> Result<(), String> {
        let workflow = yaml(&code_blocks(DOCUMENT, heading, "yaml")[0]);
        let events = workflow["on"]["pull_request"]["types"].as_array().unwrap();
        assert!(events.contains(&event.into()), "{events:?}");
        // Each job has an empty one.
        let _ = std::fs::remove_file(self.path("temp/environment"));
        self.given.insert("github.event.action".into(), event.into());
        let variables = self.variables(&workflow);
        self.steps(&workflow["jobs"]["database"]["steps"], &variables)
    }

    /// What GitLab runs of a job.
    fn gitlab(&self, job: &str) -> Result<String, String> {
        let file = yaml(&code_blocks(DOCUMENT, "GitLab", "yaml")[0]);
        let token = self.path("temp/token");
        std::fs::write(&token, &self.given["secrets.OFFSHOOT_TOKEN"]).unwrap();
        let mut variables: Variables = [
            ("OFFSHOOT_TOKEN_FILE", token.display().to_string()),
            ("OFFSHOOT_FINGERPRINT", self.given["vars.OFFSHOOT_FINGERPRINT"].clone()),
            ("CI_PIPELINE_SOURCE", "merge_request_event".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in file["variables"].as_object().unwrap() {
            let value = value.as_str().unwrap().replace("$CI_MERGE_REQUEST_IID", "17");
            variables.insert(name.clone(), self.expand(&value));
        }
        let lines = [&file["default"]["before_script"], &file[job]["script"]];
        let lines = lines.into_iter().flat_map(|lines| lines.as_array().unwrap());
        let script: Vec<_> = lines.map(|line| line.as_str().unwrap()).collect();
        self.run(&script.join("\n"), &variables)
    }

    /// Runs what closes a pull request with another token; what it says. The VDB stays.
    fn closes_in_vain(&mut self, close: impl FnOnce(&mut Runner) -> Result<(), String>) {
        let name = "secrets.OFFSHOOT_TOKEN".to_owned();
        let right = self.given.insert(name.clone(), "no-token-of-this-engine".to_owned()).unwrap();
        let before = self.vdbs();
        let said = close(self).unwrap_err();
        assert!(said.contains("\"unauthorized\""), "{said}");
        assert_eq!(self.vdbs(), before);
        self.given.insert(name, right);
    }

    fn vdbs(&self) -> Vec<String> {
        let list: VdbList = self.bed.engine.ask(["vdb", "list"]).unwrap();
        list.vdbs.into_iter().map(|vdb| vdb.name.to_string()).collect()
    }

    /// The one VDB there is has been tested so many times.
    fn check(&self, name: &str, runs: i64) -> Vdb {
        assert_eq!(self.vdbs(), [name]);
        let file = self.path("temp/reader");
        std::fs::write(&file, &self.given["secrets.OFFSHOOT_TOKEN"]).unwrap();
        // It is the user's own: nobody else is shown the password.
        let words = ["vdb", "show", name, "--token-file", file.to_str().unwrap()];
        let vdb: Vdb = self.bed.engine.ask(words).unwrap();
        let database = Database::connect(&vdb.uri).unwrap();
        assert_eq!(database.number("SELECT count(*) FROM runs").unwrap(), runs);
        assert_eq!(vdb.labels.get("pr").map(String::as_str), Some(name));
        assert!(vdb.expires_at.is_some());
        vdb
    }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

#[test]
fn a_pull_request_has_a_database_from_the_first_run_until_it_is_closed() {
    let mut runner = Runner::start();
    for (heading, name) in [("GitHub, by the action", ACTIONS), ("GitHub, by hand", "shop-pr-17")] {
        runner.github(heading, "opened").unwrap();
        let opened = runner.check(name, 1);
        runner.bed.engine.command(["vdb", "stop", name]).unwrap();
        runner.github(heading, "synchronize").unwrap();
        let changed = runner.check(name, 2);
        assert_eq!((opened.id, opened.uri), (changed.id, changed.uri));
        assert!(changed.expires_at > opened.expires_at, "it stays for longer");
        runner.closes_in_vain(|runner| runner.github(heading, "closed"));
        runner.github(heading, "closed").unwrap();
        assert!(runner.vdbs().is_empty());
        // Where it has expired there is nothing to delete, and nothing wrong.
        runner.github(heading, "closed").unwrap();
    }

    runner.gitlab("test").unwrap();
    let opened = runner.check("shop-mr-17", 1);
    runner.bed.engine.command(["vdb", "stop", "shop-mr-17"]).unwrap();
    runner.gitlab("test").unwrap();
    assert_eq!(runner.check("shop-mr-17", 2).id, opened.id);
    runner.closes_in_vain(|runner| runner.gitlab("delete").map(drop));
    runner.gitlab("delete").unwrap();
    assert!(runner.vdbs().is_empty());
    runner.gitlab("delete").unwrap();
}
