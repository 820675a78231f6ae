use crate::{Catalog, Error, Job, JobState, Keyring, Progress, SecretKey};
use crate::{StepRecord, StepState, Subject};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, JobId};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

fn keys() -> Keyring {
    SecretKey::of([7; 32]).into()
}

fn job(id: JobId, settled: bool) -> Job {
    Job {
        id,
        kind: "vdb.provision".to_owned(),
        object: Subject::named("dev"),
        of_engine: false,
        state: if settled { JobState::Done } else { JobState::Running },
        settled,
        cancel_requested: false,
        progress: Progress { done: 1, total: 2, unit: "bytes".to_owned() },
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: None,
        steps: vec![StepRecord {
            name: "clone".to_owned(),
            state: StepState::Running,
            started_at: Some(Timestamp::UNIX_EPOCH),
            ended_at: None,
        }],
        input: json!({"name": "dev"}),
        bag: serde_json::Map::from_iter([("dataset".to_owned(), json!("dataset-4"))]),
        locks: vec!["vdb-1".to_owned()],
        error: Some(Failure::new(ErrorKind::PoolFull, "full", "free space")),
        notes: vec!["late".to_owned()],
    }
}

#[test]
fn jobs_survive_a_reopen_unchanged() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("catalog.db");
    let catalog = Catalog::open(&path, keys()).expect("opened");
    let mut first = catalog.add_job(|id| job(id, false)).expect("kept");
    let second = catalog.add_job(|id| job(id, false)).expect("kept");
    assert!(second.id > first.id);
    first.bag.insert("port".to_owned(), json!(5433));
    catalog.save_job(&first).expect("saved");
    drop(catalog);

    let catalog = Catalog::open(&path, keys()).expect("opened");
    assert_eq!(catalog.job(first.id).expect("there"), first);
    assert_eq!(catalog.unsettled_jobs().expect("readable"), [first.clone(), second.clone()]);
    (first.settled, first.state) = (true, JobState::Done);
    catalog.save_job(&first).expect("saved");
    assert_eq!(catalog.unsettled_jobs().expect("readable"), vec![second.clone()]);
    assert_eq!(catalog.jobs(10).expect("readable"), [second, first]);
    assert!(matches!(catalog.job(JobId(99)), Err(Error::NotFound(_))));
    assert!(matches!(catalog.save_job(&job(JobId(99), true)), Err(Error::NotFound(_))));
}

/// Lets the file have so many pages more than it has.
fn limit_pages(catalog: &Catalog, more: u32) {
    let limit = |tx: &crate::Transaction<'_>| {
        let pages: u32 = tx.sql().pragma_query_value(None, "page_count", |row| row.get(0))?;
        let sql = format!("PRAGMA max_page_count = {}", pages + more);
        Ok(tx.sql().query_row(&sql, [], |row| row.get::<_, u32>(0))?)
    };
    catalog.transaction(limit).expect("limited");
}

#[test]
fn the_end_of_a_job_is_recorded_once_room_was_made() {
    let dir = TempDir::new().expect("a directory");
    let catalog = Arc::new(Catalog::open(&dir.path().join("catalog.db"), keys()).expect("opened"));
    let mut ended = catalog.add_job(|id| job(id, false)).expect("kept");
    (ended.settled, ended.state) = (true, JobState::Failed);
    ended.bag.insert("long".to_owned(), json!("x".repeat(100_000)));
    limit_pages(&catalog, 0);
    assert!(matches!(catalog.save_job(&ended), Err(Error::Full(_))));
    let (same, steps) = (Arc::downgrade(&catalog), AtomicU32::new(0));
    catalog.on_full(move || {
        // Not enough at once.
        let step = steps.fetch_add(1, Ordering::Relaxed);
        limit_pages(&same.upgrade().expect("in use"), 12 * step);
        step < 8
    });
    catalog.save_job(&ended).expect("saved");
    assert_eq!(catalog.job(ended.id).expect("there"), ended);
}

#[test]
fn only_old_settled_jobs_are_forgotten() {
    let dir = TempDir::new().expect("a directory");
    let catalog = Catalog::open(&dir.path().join("catalog.db"), keys()).expect("opened");
    let stuck = catalog.add_job(|id| job(id, false)).expect("kept");
    // One transaction for the bulk: a disk flush for each would take long.
    catalog
        .transaction(|tx| {
            for _ in 0..1005 {
                let done = job(JobId(tx.next_number("job")?), true);
                let body = serde_json::to_string(&done).expect("JSON");
                tx.sql().execute(
                    "INSERT INTO job VALUES (?1, 1, ?2)",
                    rusqlite::params![done.id.0, body],
                )?;
            }
            Ok(())
        })
        .expect("kept");
    let last = catalog.add_job(|id| job(id, false)).expect("kept");
    catalog.save_job(&job(last.id, true)).expect("saved");
    let kept = catalog.jobs(u32::MAX).expect("readable");
    assert_eq!(kept.len(), 1001);
    assert_eq!(kept.first().map(|job| job.id), Some(last.id));
    assert_eq!(kept.last().map(|job| job.id), Some(stuck.id), "what is not settled stays");
}

#[test]
fn jobs_of_the_engine_push_out_only_each_other() {
    let dir = TempDir::new().expect("a directory");
    let catalog = Catalog::open(&dir.path().join("catalog.db"), keys()).expect("opened");
    let of_user = catalog.add_job(|id| job(id, true)).expect("added");
    let insert = |settled: bool| {
        let add = |tx: &crate::Transaction<'_>| {
            let own = Job { of_engine: true, ..job(JobId(tx.next_number("job")?), settled) };
            let body = serde_json::to_string(&own).expect("JSON");
            let row = rusqlite::params![own.id.0, settled, body];
            tx.sql().execute("INSERT INTO job VALUES (?1, ?2, ?3)", row)?;
            Ok(own)
        };
        catalog.transaction(|tx| (1..205).try_fold(add(tx)?, |_, _| add(tx)))
    };
    let last = insert(true).and_then(|_| insert(false)).expect("added");
    catalog.save_job(&Job { settled: true, ..last }).expect("saved");
    let kept = catalog.jobs(u32::MAX).expect("readable");
    assert_eq!(kept.iter().filter(|job| job.settled && job.of_engine).count(), 200);
    assert!(kept.iter().any(|job| job.id == of_user.id));
}

#[test]
fn the_stored_form_names_states_as_the_api_does() {
    for state in [
        JobState::Running,
        JobState::Undoing,
        JobState::Done,
        JobState::Failed,
        JobState::Cancelled,
    ] {
        assert_eq!(json!(state), json!(state.as_str()));
        assert_eq!(state.is_final(), !matches!(state.as_str(), "running" | "undoing"));
    }
}
