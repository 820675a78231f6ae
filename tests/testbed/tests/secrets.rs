//! Passwords: whoever has the pool has none of them, and whoever has the key loses none.

use anyhow::{Context, Result, ensure};
use offshoot_api::{Secrets, Vdb};
use offshoot_os::process::{Spec, run};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, wait_until, with_log};
use std::path::Path;

fn testbed() -> Result<Testbed> {
    Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] })
}

/// Files below a directory that have one of these texts in them. Mounts are left out: nobody answers there when the
/// engine was killed.
fn holders(directory: &Path, texts: &[&str]) -> Result<Vec<String>> {
    let patterns = texts.iter().flat_map(|text| ["-e", text]);
    let grep = Spec::new("grep")
        .args(["-rlaF", "--devices=skip", "--exclude-dir=mnt"])
        .args(patterns)
        .arg(directory);
    let output = run(&grep, PATIENCE)?;
    // Two: it failed, unless it only met files that vanished.
    Ok(output.stdout_text().lines().map(str::to_owned).collect())
}

fn password(vdb: &Vdb) -> Result<String> {
    let login = vdb.uri.split('@').next().context("a login")?;
    Ok(login.rsplit(':').next().context("a password")?.to_owned())
}

fn check_absent(bed: &Testbed, when: &str, texts: &[&str]) -> Result<()> {
    let found = holders(bed.engine.pool(), texts)?;
    ensure!(found.is_empty(), "{when}: a password is in {found:?}");
    let log = std::fs::read_to_string(bed.engine.pool().with_extension("log"))?;
    ensure!(!texts.iter().any(|text| log.contains(text)), "{when}: a password was logged");
    Ok(())
}

fn works(bed: &Testbed) -> Result<()> {
    let result = bed.engine.command(["dsource", "sync", "prod"]).map(drop);
    with_log(&bed.engine, result.map_err(Into::into))?;
    ensure!(bed.open("dev")?.number("SELECT 1")? == 1);
    Ok(())
}

#[test]
fn no_hook_is_in_the_pool() -> Result<()> {
    let bed = testbed()?;
    bed.link("prod")?;
    let hook = bed.scratch.path().join("hook.sql");
    let text = "hunter2-of-the-hook";
    std::fs::write(&hook, format!("SET app.password = '{text}';\nSELECT 1/0"))?;
    let hook = format!("after-provision={}", hook.display());
    // It fails, and the server logs why.
    let failed = bed.engine.command(["vdb", "provision", "dev", "--from", "prod", "--hook", &hook]);
    ensure!(failed.is_err_and(|error| error.message.contains("division by zero")));
    let kept = bed.engine.command(["vdb", "hooks", "dev", "after-provision"])?;
    ensure!(kept["sql"].as_str().is_some_and(|sql| sql.contains(text)), "{kept}");
    let log = bed.engine.command(["vdb", "logs", "dev"])?;
    ensure!(log["text"].as_str().is_some_and(|log| log.contains("division by zero")), "{log}");
    check_absent(&bed, "failed", &[text])?;
    bed.engine.command(["vdb", "delete", "dev"])?;
    check_absent(&bed, "deleted", &[text])
}

#[test]
fn no_password_is_in_the_pool() -> Result<()> {
    let mut bed = testbed()?;
    bed.link("prod")?;
    let of_source = bed.source.link_password().to_owned();
    let first = password(&bed.provision("dev", "prod", &[])?)?;
    // The search finds what is there: the name of a secret in the catalog or its log.
    let catalog = holders(bed.engine.pool(), &["vdb-1/password"])?;
    ensure!(catalog.iter().any(|file| file.contains("catalog.db")), "{catalog:?}");
    check_absent(&bed, "running", &[&of_source, &first])?;
    bed.engine.command(["vdb", "reset-password", "dev"])?;
    let second = password(&bed.vdb("dev")?)?;
    ensure!(second != first);
    check_absent(&bed, "another password", &[&of_source, &first, &second])?;
    bed.engine.kill()?;
    check_absent(&bed, "killed", &[&of_source, &first, &second])?;
    bed.engine.restart()?;
    works(&bed)?;
    bed.engine.command(["vdb", "delete", "dev"])?;
    bed.engine.command(["dsource", "unlink", "prod"])?;
    check_absent(&bed, "deleted", &[&of_source, &first, &second])?;
    bed.engine.stop()?;
    check_absent(&bed, "stopped", &[&of_source, &first, &second])
}

#[test]
fn without_the_key_nothing_starts_and_nothing_is_lost() -> Result<()> {
    let mut bed = testbed()?;
    bed.link("prod")?;
    bed.provision("dev", "prod", &[])?;
    bed.engine.stop()?;
    let pool = bed.engine.pool().to_owned();
    let (key, away) = (pool.with_extension("key"), pool.with_extension("away"));
    let before = std::fs::read(pool.join("catalog.db"))?;
    std::fs::rename(&key, &away)?;
    for other in [None, Some("00".repeat(32))] {
        if let Some(other) = other {
            std::fs::write(&key, other)?;
        }
        let refused = bed.engine.restart().err().context("it started with another key")?;
        let said = format!("{refused:#}");
        ensure!(said.contains("sealed with the key") && said.contains("--secret-key"), "{said}");
        ensure!(std::fs::read(pool.join("catalog.db"))? == before, "the catalog was changed");
    }
    std::fs::rename(&away, &key)?;
    bed.engine.restart()?;
    works(&bed)
}

#[test]
fn another_key_opens_everything() -> Result<()> {
    let mut bed = testbed()?;
    bed.link("prod")?;
    let dev = bed.provision("dev", "prod", &[])?;
    let key = bed.engine.pool().with_extension("key");
    let before: Secrets = bed.engine.ask(["secret", "show"])?;
    ensure!(before.keys.len() == 1 && before.changeable, "{before:?}");
    ensure!(before.place == key.display().to_string(), "{before:?}");
    ensure!(before.sealed == 3, "of the source; the VDB's, and its database: {before:?}");

    let after: Secrets = bed.engine.ask(["secret", "rotate"])?;
    ensure!(after.keys.len() == 2 && after.keys[1] == before.keys[0], "{after:?}");
    ensure!(after.sealed == before.sealed, "{after:?}");
    bed.engine.kill()?;
    bed.engine.restart()?;
    works(&bed)?;
    let alone: Secrets = bed.engine.ask(["secret", "rotate", "--forget-old"])?;
    ensure!(alone.keys.len() == 1 && !after.keys.contains(&alone.keys[0]), "{alone:?}");
    let lines = std::fs::read_to_string(&key)?;
    ensure!(lines.lines().filter(|line| !line.starts_with('#')).count() == 1, "one key");
    bed.engine.stop()?;
    bed.engine.restart()?;
    works(&bed)?;
    // The passwords are what they were.
    ensure!(Database::connect(&dev.uri)?.number("SELECT 1")? == 1);
    Ok(())
}

/// Starts the engine with `--forget-secrets`, this time only.
fn start_forgetting(bed: &mut Testbed) -> Result<()> {
    bed.engine.options.arguments.push("--forget-secrets".into());
    let started = bed.engine.restart();
    bed.engine.options.arguments.pop();
    started
}

#[test]
fn a_pool_whose_key_is_lost_goes_on_once_its_passwords_are_forgotten() -> Result<()> {
    let mut bed = testbed()?;
    bed.link("prod")?;
    let dev = bed.provision("dev", "prod", &[])?;
    bed.provision("other", "prod", &[])?;
    bed.open("dev")?.execute("CREATE TABLE kept (id int)")?;
    bed.engine.stop()?;
    // An option that is left in a unit's file must not forget what can still be read.
    let refused = start_forgetting(&mut bed).err().context("nothing is lost")?;
    ensure!(format!("{refused:#}").contains("nothing to forget"), "{refused:#}");
    bed.engine.restart()?;
    works(&bed)?;
    bed.engine.stop()?;

    std::fs::remove_file(bed.engine.pool().with_extension("key"))?;
    let refused = bed.engine.restart().err().context("it started without its key")?;
    ensure!(format!("{refused:#}").contains("--forget-secrets"), "{refused:#}");
    start_forgetting(&mut bed)?;
    let left: Secrets = bed.engine.ask(["secret", "show"])?;
    ensure!(left.sealed == 0 && left.keys.len() == 1, "{left:?}");
    // Whoever has the VDB's password goes on.
    ensure!(Database::connect(&dev.uri)?.number("SELECT count(*) FROM kept")? == 0);
    let shown = bed.vdb("dev")?;
    let told = shown.warnings.iter().any(|one| one.hint.contains("vdb reset-password"));
    ensure!(shown.uri.is_empty() && told, "{shown:?}");
    bed.engine.command(["vdb", "reset-password", "dev"])?;
    ensure!(bed.vdb("dev")?.warnings.is_empty());
    ensure!(bed.open("dev")?.number("SELECT count(*) FROM kept")? == 0);
    ensure!(Database::connect(&dev.uri).is_err(), "the old password works");

    let asks =
        || Ok(bed.dsource("prod")?.error.is_some_and(|one| one.hint.contains("dsource set")));
    wait_until("the source's password is asked for", PATIENCE, asks)?;
    let file = bed.scratch.path().join("password");
    std::fs::write(&file, bed.source.link_password())?;
    let file = file.to_str().context("a path of text")?;
    bed.engine.command(["dsource", "set", "prod", "--password-file", file])?;
    works(&bed)?;
    // What is opened anew gets a password of its own.
    bed.engine.command(["vdb", "refresh", "other"])?;
    ensure!(bed.open("other")?.number("SELECT 1")? == 1);
    bed.engine.stop()?;
    bed.engine.restart()?;
    works(&bed)
}
