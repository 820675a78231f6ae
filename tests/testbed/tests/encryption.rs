//! Encrypted pools: their files tell nothing, and whoever has the key loses nothing.

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use offshoot_api::{PoolStatus, Secrets};
use offshoot_rig::{Engine, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, binary, check_refusal};
use std::path::Path;

/// What a source and a VDB are told, as SQL writes it: sixteen bytes that no codec shortens.
const OF_SOURCE: &str = "9c41e07bd3586fa21e94c7305ab8d16f";
const OF_VDB: &str = "71d2a95e0c3b864ff8126ed49b07c5a3";
/// Names of objects.
const NAMES: [&str; 3] = ["wombat", "numbat", "quokka"];

fn testbed(arguments: &[&str]) -> Result<Testbed> {
    let mut engine = EngineOptions::new(binary());
    engine.cache_size = "64MiB".into();
    engine.arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    let source = SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] };
    Testbed::with_engine(source, engine)
}

/// A table whose rows have a marker among bytes that do not compress.
fn mark(database: &offshoot_rig::Database, marker: &str) -> Result<()> {
    let random =
        "(SELECT string_agg(sha256((g * 50 + i)::text::bytea), '') FROM generate_series(1, 40) i)";
    database.execute(&format!(
        "CREATE TABLE quokka AS SELECT g, {random} || '\\x{marker}'::bytea AS filler \
         FROM generate_series(1, 300) g"
    ))?;
    database.execute("CHECKPOINT")
}

fn marker(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map_or(0, |digit| digit as u8);
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Files of the pool that have the text; not what `run` keeps of servers, nor what is mounted there.
fn holders(directory: &Path, text: &[u8]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("run") {
            found.extend(holders(&path, text)?);
        } else if path.is_file() {
            // It may have been removed meanwhile.
            let bytes = std::fs::read(&path).unwrap_or_default();
            if memmem::find(&bytes, text).is_some() {
                found.push(path.display().to_string());
            }
        }
    }
    Ok(found)
}

/// What can be read of markers and names in the pool's files.
fn told(bed: &Testbed) -> Result<Vec<(String, Vec<String>)>> {
    let markers = [OF_SOURCE, OF_VDB].map(|hex| (hex.to_owned(), marker(hex)));
    let names = NAMES.map(|name| (name.to_owned(), name.as_bytes().to_vec()));
    let mut told = Vec::new();
    for (what, bytes) in markers.into_iter().chain(names) {
        let files = holders(bed.engine.pool(), &bytes)?;
        if !files.is_empty() {
            told.push((what, files));
        }
    }
    Ok(told)
}

/// A dSource and a VDB with markers in them.
fn fill(bed: &Testbed) -> Result<()> {
    mark(&bed.source.connect("postgres")?, OF_SOURCE)?;
    bed.link("wombat")?;
    bed.provision("numbat", "wombat", &[])?;
    let vdb = bed.open("numbat")?;
    vdb.execute("DROP TABLE quokka")?;
    mark(&vdb, OF_VDB)?;
    bed.engine.command(["bookmark", "create", "quokka-mark", "--on", "numbat"]).map(drop)?;
    Ok(())
}

fn rows(bed: &Testbed) -> Result<i64> {
    bed.open("numbat")?.number("SELECT count(*) FROM quokka")
}

#[test]
fn the_files_of_an_encrypted_pool_tell_nothing() -> Result<()> {
    let mut bed = testbed(&["--encrypt"])?;
    fill(&bed)?;
    for when in ["running", "killed", "again", "stopped"] {
        match when {
            "killed" => bed.engine.kill()?,
            "again" => bed.engine.restart()?,
            "stopped" => drop(bed.engine.stop()?),
            _ => {}
        }
        let told = told(&bed)?;
        ensure!(told.is_empty(), "{when}: {told:?}");
    }
    bed.engine.restart()?;
    ensure!(rows(&bed)? == 300);
    Ok(())
}

/// The search finds what is there.
#[test]
fn those_of_another_pool_do() -> Result<()> {
    let mut bed = testbed(&[])?;
    fill(&bed)?;
    bed.engine.stop()?;
    let told = told(&bed)?;
    ensure!(told.len() == 2 + NAMES.len(), "{told:?}");
    Ok(())
}

#[test]
fn it_opens_with_the_key_alone_and_the_key_may_change() -> Result<()> {
    let mut bed = testbed(&["--encrypt"])?;
    fill(&bed)?;
    let key_of = |engine: &Engine| -> Result<String> {
        let status: PoolStatus = engine.ask(["pool", "status"])?;
        Ok(status.encryption.context("it is encrypted")?.key_id)
    };
    let first = key_of(&bed.engine)?;
    let after: Secrets = bed.engine.ask(["secret", "rotate", "--forget-old"])?;
    ensure!(after.keys.len() == 1 && after.keys[0] != first, "{after:?}");
    ensure!(key_of(&bed.engine)? == after.keys[0]);
    bed.kill_all()?;
    // It need not be said again.
    bed.engine.options.arguments.clear();
    bed.engine.restart()?;
    ensure!(rows(&bed)? == 300 && key_of(&bed.engine)? == after.keys[0]);
    bed.engine.stop()?;

    let pool = bed.engine.pool().to_owned();
    let (key, away) = (pool.with_extension("key"), pool.with_extension("away"));
    let file = std::fs::read(pool.join("encryption"))?;
    std::fs::rename(&key, &away)?;
    // There is nothing to be had by forgetting passwords, either.
    for arguments in [vec![], vec!["--forget-secrets".to_owned()]] {
        bed.engine.options.arguments = arguments;
        let refused = bed.engine.restart().err().context("it started without its key")?;
        let said = format!("{refused:#}");
        ensure!(said.contains("encrypted with the key") && said.contains(&after.keys[0]), "{said}");
        ensure!(!said.contains("--forget-secrets"), "{said}");
        ensure!(std::fs::read(pool.join("encryption"))? == file, "it was changed");
    }
    bed.engine.options.arguments.clear();
    let check = ["pool", "check", "--secret-key"].map(str::to_owned);
    let with = |file: &Path| [&check[..], &[file.display().to_string()]].concat();
    check_refusal(bed.engine.command(with(&key)));
    bed.engine.command(with(&away))?;
    std::fs::rename(&away, &key)?;
    bed.engine.restart()?;
    ensure!(rows(&bed)? == 300);
    bed.engine.command(["dsource", "sync", "wombat"])?;
    bed.check_pool()
}

#[test]
fn a_pool_that_is_there_is_not_encrypted() -> Result<()> {
    let mut bed = testbed(&[])?;
    let status: PoolStatus = bed.engine.ask(["pool", "status"])?;
    ensure!(status.encryption.is_none());
    bed.engine.stop()?;
    bed.engine.options.arguments = vec!["--encrypt".to_owned()];
    let refused = bed.engine.restart().err().context("it was encrypted afterwards")?;
    ensure!(format!("{refused:#}").contains("only a new pool can be"), "{refused:#}");
    bed.engine.options.arguments.clear();
    bed.engine.restart()
}
