//! A VDB that shows no real person.

use super::voice::Voice;
use super::{Stage, provision};
use crate::report::Report;
use anyhow::{Context, Result};
use offshoot_api::{Mask, Vdb};
use offshoot_rig::{Database, Source};

/// What production knows and the masked VDB must not: part of each name and e-mail.
const REAL: &str = "Wintergreen";

/// What is masked, and how.
const RULES: &str = r#"version: 1
key: demo
tables:
  "public.customers":
    columns:
      name: full-name
      email: email
      born: {algorithm: date-shift, min: -30d, max: 30d}
"#;

/// Customers of the sample source.
pub(super) fn fill(source: &Source) -> Result<()> {
    source.connect("postgres")?.execute(&format!(
        "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text UNIQUE, born date);
         INSERT INTO customers SELECT n, 'Maria {REAL} ' || n, 'maria.{REAL}.' || n || '@firm.test', \
           date '1960-01-01' + n FROM generate_series(1, 1000) n"
    ))
}

/// Masks the source and looks for what production knows in a VDB of it.
pub(super) fn show(stage: &Stage, voice: &Voice, report: &mut Report) -> Result<Vdb> {
    voice.heading("A copy that shows no real person");
    let rules = stage.scratch.path().join("masking.yaml");
    std::fs::write(&rules, RULES).context("writing the rules of masking")?;
    let rules = rules.display().to_string();
    voice.command("offshoot mask apply masking.yaml --from sample --as safe");
    let arguments = ["mask", "apply", &rules, "--from", "sample", "--as", "safe"];
    let done: Mask = voice.timed(report, "mask three columns", || stage.engine.ask(arguments))?;
    let vdb = provision(stage, voice, report, "masked", "safe", None)?;
    let database = Database::connect(&vdb.uri)?;
    let real = format!("SELECT count(*) FROM customers c WHERE c::text ILIKE '%{REAL}%'");
    let (rows, left) =
        (database.number("SELECT count(*) FROM customers")?, database.number(&real)?);
    let source = stage.source.connect("postgres")?.number(&real)?;
    let ok = rows == 1000 && left == 0 && source == 1000 && done.rows_masked == 1000;
    let seen = format!("{left} of {rows} rows name one; in the source {source} do");
    voice.check(report, "masked names no customer of production", ok, seen);
    Ok(vdb)
}
