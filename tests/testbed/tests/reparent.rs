//! VDBs that outlive their dSource, and follow another one.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Job, JobList};
use offshoot_rig::{Source, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, other_server, with_log};

fn options() -> SourceOptions {
    SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] }
}

fn rows(bed: &Testbed, vdb: &str) -> Result<i64> {
    bed.open(vdb)?.number("SELECT count(*) FROM rows")
}

fn last_job(bed: &Testbed, kind: &str) -> Result<Job> {
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    jobs.jobs.into_iter().find(|job| job.kind == kind).with_context(|| format!("a {kind}"))
}

#[test]
fn a_vdb_follows_its_source_when_that_is_linked_again_or_another() {
    let bed = Testbed::with(options()).unwrap();
    let other = Source::start(&bed.scratch, options()).unwrap();
    with_log(&bed.engine, follow_another(&bed, &other)).unwrap();
}

fn follow_another(bed: &Testbed, other: &Source) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE rows AS SELECT 1 AS n")?;
    bed.link("prod")?;
    bed.provision("dev", "prod", &[])?;
    let kept = bed.snapshot("dev")?.id.to_string();
    bed.engine.command(["dsource", "unlink", "prod"])?;
    let orphan = bed.refused(&["vdb", "refresh", "dev"]);
    ensure!(orphan.hint.contains("offshoot vdb reparent dev --to"), "{orphan}");

    // The same database again: the link says who may follow it.
    source.execute("INSERT INTO rows VALUES (2)")?;
    bed.link("again")?;
    let link = last_job(bed, "dsource_link")?;
    ensure!(link.notes.iter().any(|note| note.contains("no parent: dev;")), "{link:?}");
    bed.engine.command(["vdb", "reparent", "dev", "--to", "again"])?;
    ensure!(last_job(bed, "vdb_reparent")?.notes.is_empty(), "it is the same database");
    ensure!(bed.vdb("dev")?.parent == "again" && rows(bed, "dev")? == 1, "it holds what it held");
    bed.engine.command(["vdb", "refresh", "dev"])?;
    ensure!(rows(bed, "dev")? == 2);
    bed.engine.command(["vdb", "rewind", "dev", "--snapshot", &kept])?;
    ensure!(rows(bed, "dev")? == 1);

    // Another database: that is said, and possible.
    other.connect("postgres")?.execute("CREATE TABLE rows AS SELECT generate_series(1, 7) AS n")?;
    bed.link_as("other", &other.link_uri(), other.link_password())?;
    ensure!(last_job(bed, "dsource_link")?.notes.is_empty(), "nobody came from there");
    bed.engine.command(["vdb", "reparent", "dev", "--to", "other"])?;
    let reparent = last_job(bed, "vdb_reparent")?;
    ensure!(reparent.notes.iter().any(|one| one.contains("another database")), "{reparent:?}");
    bed.engine.command(["vdb", "refresh", "dev"])?;
    ensure!(rows(bed, "dev")? == 7);

    let nowhere = bed.refused(&["vdb", "reparent", "dev", "--to", "nowhere"]);
    ensure!(nowhere.code == "not_found", "{nowhere}");
    for name in ["again", "other"] {
        bed.engine.command(["dsource", "unlink", name])?;
    }
    bed.engine.command(["vdb", "delete", "dev"])?;
    bed.assert_no_trace()
}

mod needs_postgres {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn a_parent_of_another_version_is_refused() {
        let bed = Testbed::with(SourceOptions { bin_dir: other_server(18), ..options() }).unwrap();
        let other = Source::start(&bed.scratch, options()).unwrap();
        let refused = (|| {
            bed.link("prod")?;
            bed.provision("dev", "prod", &[])?;
            bed.link_as("other", &other.link_uri(), other.link_password())?;
            let refused = bed.refused(&["vdb", "reparent", "dev", "--to", "other"]);
            ensure!(refused.message.contains("could not be refreshed from there"), "{refused}");
            ensure!(bed.vdb("dev")?.parent == "prod");
            Ok(())
        })();
        with_log(&bed.engine, refused).unwrap();
    }
}
